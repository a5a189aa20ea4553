"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nasrlm.cli.verbs import LIST
from nasrlm.engines.names import EngineName
from spaces import SearchSpace, UnknownSpaceError, get_space

SpaceOption = Annotated[
    str | None,
    typer.Option("--space", help="Name of a search space (see `nasrlm spaces`), or path/to/file.py:ClassName."),
]
CheckpointOption = Annotated[
    Path | None, typer.Option("--checkpoint", help="Checkpoint folder; default: the released checkpoint.")
]
ArchitecturesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="Architectures in the space's published notation, files (.onnx, or ONNX text as .onnxtxt or .txt), or "
        "functions that return torch modules (pkg.module:factory)."
    ),
]
TableOption = Annotated[
    Path | None, typer.Option("--table", help="Parquet, CSV or JSONL file with a column architecture or text.")
]
TablesOption = Annotated[
    list[Path], typer.Option("--table", help="Table of labelled architectures or texts; may be repeated.")
]
ObjectivesOption = Annotated[
    str | None,
    typer.Option("--objectives", metavar=LIST, help="Objectives, separated by commas; default: all known ones."),
]
InputShapeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input-shape",
        help="Input shape of a torch module, or of an ONNX model with open sizes, such as 1,3,32,32. Once for each of "
        "several inputs.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
NewCheckpointOption = Annotated[Path, typer.Option("--out", help="Folder of the new checkpoint.")]
DeviceOption = Annotated[str, typer.Option("--device", help="Torch device, such as cpu or cuda.")]
EngineOption = Annotated[
    EngineName, typer.Option("--engine", help="Engine that runs the model; auto: ONNX Runtime on a CPU, else torch.")
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, max=2**32 - 1, metavar="<int>", help="Seed of all random draws.")
]


def listed(names: str | None, option: str) -> tuple[str, ...]:
    """Return the names in an option's comma-separated list; empty if the option was left out.

    Raises:
        ValueError: the list is empty, or has a name twice.
    """
    if names is None:
        return ()
    found = tuple(name.strip() for name in names.split(",") if name.strip())
    if not found:
        raise ValueError(f"{option}: expected names separated by commas, got {names!r}.")
    if len(set(found)) < len(found):
        raise ValueError(f"{option}: expected different names, got {names!r}. Name each once.")
    return found


def require_space(name: str | None, verb: str) -> SearchSpace[Any]:
    """Open the space that ``--space`` names.

    Raises:
        ValueError: the option was left out, or there is no such space.
    """
    if name is None:
        raise ValueError(f"{verb}: expected --space, got none. `nasrlm spaces` lists them.")
    return get_space(name)


def space_or_none(name: str) -> SearchSpace[Any] | None:
    """Open a space by name; None if there is no such space, because a space of texts alone has only a name."""
    try:
        return get_space(name)
    except UnknownSpaceError:
        return None
