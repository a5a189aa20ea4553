"""What commands are given: spaces, architectures, tables, checkpoints. Everything becomes texts."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from converters import model_to_onnx_text
from converters.bulk import to_onnx_texts
from converters.text import prelude
from nasrlm.cli.output import show_progress
from nasrlm.table import label_columns, objective_columns, read_table
from spaces import get_space
from spaces.space import SearchSpace

SpaceOption = Annotated[str | None, typer.Option("--space", help="A registered space or path/to/file.py:ClassName.")]
CheckpointOption = Annotated[
    Path | None, typer.Option("--checkpoint", help="Checkpoint folder; the released one if left out.")
]
ArchitecturesArgument = Annotated[
    list[str] | None,
    typer.Argument(help="Architectures in the space's published notation, or files: ONNX text, .onnx."),
]
TableOption = Annotated[
    Path | None, typer.Option("--table", help="Parquet, CSV or JSONL with a column architecture or text.")
]

TEXT_ENDINGS = (".txt", ".onnxtxt")
MODEL_ENDINGS = (".onnx",)


@dataclass(frozen=True)
class Inputs:
    """Names as the user gave them, their texts, and their spaces, empty where none is known."""

    names: list[str]
    texts: list[str]
    spaces: list[str]


def see_own_modules() -> None:
    """Let the user's modules in the working directory be imported, as ``python -m`` does."""
    sys.path.insert(0, os.getcwd())


def listed(names: str | None) -> tuple[str, ...]:
    """Names that an option lists, separated by commas; none if it was left out."""
    return tuple(name.strip() for name in names.split(",") if name.strip()) if names else ()


def require_space(name: str | None, what: str) -> SearchSpace[Any]:
    """The space that ``--space`` names.

    Raises:
        ValueError: there is no such option, or no such space.
    """
    if name is None:
        raise ValueError(f"{what}: expected --space, got none. `nasrlm spaces` lists them.")
    return get_space(name)


def read_inputs(given: Sequence[str] | None, table: Path | None, space: str | None) -> Inputs:
    """Texts of architectures, of files with ONNX text or models, or of all rows of a table.

    Raises:
        ValueError: nothing or both were given, a notation is malformed, a file cannot be read.
    """
    if bool(given) == (table is not None):
        raise ValueError("input: expected architectures or --table, and not both. See --help.")
    if table is not None:
        frame = read_rows(table, space)
        columns = [name for name in ("architecture", "text") if name in frame]
        described = frame[columns].bfill(axis="columns").iloc[:, 0]
        spaces = frame["space"].fillna("").astype(str).tolist() if "space" in frame else [""] * len(frame)
        return Inputs(described.astype(str).tolist(), table_texts(frame, table), spaces)
    names = list(given or [])
    if all(Path(name).suffix in TEXT_ENDINGS + MODEL_ENDINGS for name in names):
        return Inputs(names, [_read_text(Path(name)) for name in names], [space or ""] * len(names))
    chosen = require_space(space, "architecture")
    parsed = [chosen.parse(name) for name in names]
    texts = to_onnx_texts(chosen, parsed, measured=True, progress=show_progress())
    return Inputs(names, texts, [chosen.address] * len(names))


def read_rows(path: Path, space: str | None, *, require: Sequence[str] = ()) -> pd.DataFrame:
    """A table whose column ``space`` is ``--space``: only its rows, where the table says which those are.

    Raises:
        ValueError: the table is none, or has no row of the space.
    """
    frame = read_table(path, require=require)
    if space is None:
        return frame
    if "space" not in frame:
        return frame.assign(space=space)
    rows = frame[frame["space"] == space]
    if rows.empty:
        raise ValueError(f"{path}: expected rows of space {space}, got {', '.join(map(str, frame['space'].unique()))}.")
    return rows


def require_labels(frames: Sequence[pd.DataFrame], paths: Sequence[Path], names: Sequence[str]) -> None:
    """Complain of names that are no label column of any of these tables."""
    known = dict.fromkeys(name for frame in frames for name in label_columns(frame))
    if missing := [name for name in names if name not in known]:
        labels, tables = ", ".join(known) or "none", ", ".join(map(str, paths))
        raise ValueError(f"{tables}: expected a column {', '.join(missing)}, got labels {labels}.")


def all_objectives(frames: Sequence[pd.DataFrame], paths: Sequence[Path]) -> tuple[str, ...]:
    """Every objective that any of these tables has, in the order of their columns.

    Raises:
        ValueError: there is none.
    """
    names = tuple(dict.fromkeys(name for frame in frames for name in objective_columns(frame)))
    if not names:
        tables = ", ".join(map(str, paths))
        raise ValueError(f"{tables}: expected label columns named metric_unit@context, got none.")
    return names


def only_space(frame: pd.DataFrame) -> str:
    """The space of all rows; empty if they are of several, or of none that is named."""
    spaces = frame["space"].unique().tolist() if "space" in frame else []
    return str(spaces[0]) if len(spaces) == 1 and isinstance(spaces[0], str) else ""


def table_texts(frame: pd.DataFrame, path: Path, *, measured: bool = True) -> list[str]:
    """The column ``text``; where it is empty, the texts of ``space`` and ``architecture``, as measured or canonical.

    Raises:
        ValueError: no space is named, or a row's notation is malformed; the message names file and row.
    """
    texts = written_texts(frame)
    spelled = frame[~frame.index.isin(list(texts))]
    if len(spelled) and "space" not in frame:
        raise ValueError(f"{path}: expected a column space, got none. Name it with --space.")
    for name, rows in spelled.groupby("space", dropna=False) if len(spelled) else ():
        if pd.isna(name):
            raise ValueError(f"{path}: expected a space in every row without text, got none in row {rows.index[0]}.")
        space = get_space(str(name))
        architectures = [_parse_row(space, notation, path, row) for row, notation in rows["architecture"].items()]
        converted = to_onnx_texts(space, architectures, measured=measured, progress=show_progress())
        texts |= zip(rows.index, converted, strict=True)
    return [texts[row] for row in frame.index]


def written_texts(frame: pd.DataFrame) -> dict[Hashable, str]:
    """By row, the column ``text`` where it is not empty."""
    if "text" not in frame:
        return {}
    written = frame["text"][frame["text"].notna() & (frame["text"] != "")].astype(str)
    return dict(zip(written.index, written, strict=True))


def _parse_row(space: SearchSpace[Any], notation: object, path: Path, row: Hashable) -> Any:
    try:
        return space.parse(notation if isinstance(notation, str) else json.dumps(notation))
    except ValueError as e:
        raise ValueError(f"{path}, row {row}: {e}") from e


def _read_text(path: Path) -> str:
    if path.suffix in MODEL_ENDINGS:
        return model_to_onnx_text(path)
    if not path.is_file():
        raise ValueError(f"{path}: expected a text file, got no such file.")
    try:
        text = path.read_text()
    except UnicodeDecodeError as e:
        raise ValueError(f"{path}: expected UTF-8 text, got {e.reason} at byte {e.start}.") from e
    return text.removesuffix(f"\n{prelude()}")  # which `nasrlm convert --out` adds
