"""Read a network named by a word on the command line: a notation, a file with an ONNX model or text, or a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from tqdm import tqdm

from converters import (
    Graph,
    OnnxModelError,
    OnnxTextError,
    graph_to_onnx_text,
    model_to_graph,
    model_to_onnx_text,
    to_graph,
    to_model,
)
from converters.convert import checked
from converters.errors import instead_of_file
from converters.graph import Shape
from converters.models.torch_module import export_module
from converters.text import prelude
from nasrlm.checkpoints.folder import folder_or_released, read_tokenizer
from nasrlm.cli.output import warn
from nasrlm.cli.users_code import add_working_directory, one_line_of_users
from nasrlm.named_function import FUNCTION_NAME, named_function
from spaces import get_space

if TYPE_CHECKING:
    import torch

NETWORK_ARGUMENT = typer.Argument(
    help="Architecture in the space's published notation, file (.onnx or .onnxtxt), or function that returns a torch "
    "module (pkg.module:factory)."
)
LARGEST_SIZE = 2**31 - 1  # of an axis of a shape
Read = TypeVar("Read")


class Kind(Enum):
    """The kinds of words that name a network; values are examples, for files their endings."""

    MODEL = ".onnx"
    ONNX_TEXT = ".onnxtxt"
    TEXT = ".txt"  # ONNX text, or other text that the checkpoint reads, such as source code
    MODULE = "pkg.module:factory"  # a function that makes a torch module
    ARCHITECTURE = "a notation"


def kind_of(word: str, space: str | None = None) -> Kind:
    """Return the kind of a word; if a space is given, ``a:b`` is a notation instead of a function."""
    ending = Path(word).suffix.lower()
    if ending in (".onnx", ".onnxtxt", ".txt"):
        return Kind(ending)
    return Kind.MODULE if space is None and FUNCTION_NAME.fullmatch(word) else Kind.ARCHITECTURE


def parse_shapes(given: Sequence[str] | None) -> list[Shape] | None:
    """Parse the shape of each input, sizes separated by commas; None if no shapes are given.

    Raises:
        ValueError: one of ``given`` has another form.
    """
    return None if given is None else [_parse_shape(shape) for shape in given]


def _parse_shape(text: str) -> Shape:
    sizes = text.split(",")
    if not all(size.strip().isdecimal() and 0 < int(size) <= LARGEST_SIZE for size in sizes):
        raise ValueError(f"--input-shape: expected sizes such as 1,3,32,32, got {text!r:.60}.")
    return tuple([int(size) for size in sizes])


def read_each(
    names: Sequence[str], read: Callable[[str], Read], title: str, *, leave_out: bool = True
) -> tuple[list[str], list[Read], dict[str, str]]:
    """Read several networks, with a progress bar.

    Args:
        names: of the networks.
        read: reads one of them, and raises ValueError if it cannot.
        title: of the bar.
        leave_out: leave out files and modules that cannot be read, if others can; there are no notations then.

    Returns:
        Names of the networks that were read, what was read, and by name the reasons why others were not.

    Raises:
        ValueError: a network, or with ``leave_out`` each of them, cannot be read; or a file cannot be found, which is
            noticed before others are read.
    """
    for name in names if leave_out else ():
        kind = kind_of(name)
        if kind is Kind.ARCHITECTURE or (kind is not Kind.MODULE and not Path(name).is_file()):
            read(name)  # raises
    found, values, failed = list[str](), list[Read](), dict[str, str]()
    for name in tqdm(names, title, unit="network", disable=len(names) == 1):
        try:
            values.append(read(name))
            found.append(name)
        except ValueError as e:
            if not leave_out:
                raise
            failed[name] = str(e)
    if not found:
        more = f" All {len(names):,} networks failed." if len(names) > 1 else ""
        raise ValueError(f"{next(iter(failed.values()))}{more}")
    return found, values, failed


def warn_of_failed(failed: Mapping[Any, str]) -> None:
    """Print on stderr, for each network that was left out, the reason."""
    for reason in failed.values():
        warn(f"left out: {reason}")


def read_network(given: str, space: str | None, shapes: Sequence[Shape] | None, verb: str) -> Graph:
    """Read the faithful graph of a network.

    Args:
        given: an architecture, a file with a model or ONNX text, or ``pkg.module:factory``.
        space: of the architecture.
        shapes: of each input of a model or module that does not give it.
        verb: error messages begin with it.

    Raises:
        ValueError: ``given`` is none of these, or cannot be read; one line.
    """
    kind = kind_of(given, space)
    if kind in (Kind.MODEL, Kind.ONNX_TEXT) and space is not None:
        raise ValueError(f"{verb} {given}: expected no --space with a model's file, got {space}.")
    if kind is Kind.MODEL:
        return model_to_graph(given, shapes)
    if kind is Kind.MODULE:
        return _module_graph(given, shapes, f"{verb} {given}")
    if shapes is not None:
        raise ValueError(f"--input-shape: expected model.onnx or pkg.module:factory with it, got {given}.")
    if kind is Kind.ONNX_TEXT:
        return model_to_graph(to_model(read_text(given)))
    if space is None:
        raise ValueError(
            f"{verb} {given}: expected an architecture with --space, a file ending in .onnxtxt or .onnx, or "
            "pkg.module:factory. `nasrlm spaces` lists the spaces."
        )
    chosen = get_space(space)
    return to_graph(chosen, chosen.parse(given))


def read_text(given: str, shapes: Sequence[Shape] | None = None) -> str:
    """Return the text in a file, or convert a file with a model, or the torch module that a function makes, to text.

    Raises:
        ValueError: it cannot be read or converted.
    """
    kind = kind_of(given)
    if kind is Kind.MODULE:
        return canonical_text(_module_graph(given, shapes, given), given)
    if kind is Kind.MODEL:
        return model_to_onnx_text(given, shapes)
    path = Path(given)
    if not path.is_file():
        raise ValueError(f"{path}: expected a text file, got {instead_of_file(path)}.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as e:
        raise ValueError(f"{path}: expected UTF-8 text, got {e.reason} at byte {e.start}.") from e
    if not text.strip():
        raise ValueError(f"{path}: expected text, got an empty file.")
    text = text.removesuffix(f"\n{prelude()}")  # which `nasrlm convert --out` adds
    if kind is Kind.ONNX_TEXT:
        try:
            to_model(text)
        except OnnxTextError as e:
            raise ValueError(f"{path}: {e}") from e
    return text


def _module_graph(name: str, shapes: Sequence[Shape] | None, place: str) -> Graph:
    """Export the torch module that ``pkg.module:factory`` makes; ``place`` starts the message about a missing shape."""
    if shapes is None:
        raise ValueError(f"{place}: expected --input-shape, such as 1,3,32,32, got none.")
    module = users_module(name)
    try:
        return model_to_graph(export_module(module, shapes))
    except OnnxModelError as e:
        raise OnnxModelError(f"{name}: {e}") from e


def users_module(name: str) -> torch.nn.Module:
    """Call ``pkg.module:factory``, a user's function without arguments that returns a torch module.

    Raises:
        ValueError: there is no such function, it fails, or returns something else; one line.
    """
    from torch.nn import Module  # here: takes seconds, and converting ONNX files does not need it

    add_working_directory()
    expected = f"module {name}: expected a function that takes no arguments and returns a torch.nn.Module"
    with one_line_of_users(expected):
        module = named_function(name, "module")()
    if not isinstance(module, Module):
        raise ValueError(f"{expected}, got one that returns {type(module).__name__}.")
    return module


def canonical_text(faithful: Graph, name: str) -> str:
    """Return the canonical text of a network; ``name`` is for errors.

    Raises:
        ValueError: it has no canonical text; the message names it.
    """
    return checked(graph_to_onnx_text(faithful), name)


def count_tokens(texts: Sequence[str], checkpoint: Path | None) -> list[int]:
    """Count the tokens of each text with a checkpoint's tokenizer, the released one's if ``checkpoint`` is None."""
    tokenizer = read_tokenizer(folder_or_released(checkpoint))
    return [len(token_ids) for token_ids in tokenizer.to_ids(texts)]
