"""A network as one word on the command line names it: a notation, a file with an ONNX model or text, or a function."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

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
from nasrlm.cli.users_code import one_line_of_users, see_own_modules
from nasrlm.named_function import FUNCTION_NAME, named_function
from spaces import get_space

if TYPE_CHECKING:
    import torch

NETWORK_ARGUMENT = typer.Argument(
    help="An architecture in the space's published notation, model.onnx, text.onnxtxt, or pkg.module:factory."
)
LARGEST_SIZE = 2**31 - 1  # of an axis


class Kind(Enum):
    """What a word names a network by; files by their ending."""

    MODEL = ".onnx"
    ONNX_TEXT = ".onnxtxt"
    TEXT = ".txt"  # ONNX text, or whatever else the checkpoint reads, such as source code
    MODULE = "pkg.module:factory"  # a function that makes a torch module
    ARCHITECTURE = "a notation"


def kind_of(word: str, space: str | None = None) -> Kind:
    """Tell what a word names; of a space, ``a:b`` is a notation and no function."""
    ending = Path(word).suffix.lower()
    if ending in (".onnx", ".onnxtxt", ".txt"):
        return Kind(ending)
    return Kind.MODULE if space is None and FUNCTION_NAME.fullmatch(word) else Kind.ARCHITECTURE


def parse_shape(text: str) -> Shape:
    """Read sizes separated by commas.

    Raises:
        ValueError: these are none.
    """
    sizes = text.split(",")
    if not all(size.strip().isdecimal() and 0 < int(size) <= LARGEST_SIZE for size in sizes):
        raise ValueError(f"--input-shape: expected sizes such as 1,3,32,32, got {text!r:.60}.")
    return tuple([int(size) for size in sizes])


def read_network(given: str, space: str | None, input_shape: str | None, verb: str) -> Graph:
    """Read the faithful graph of a network.

    Args:
        given: an architecture, a model's or ONNX text's file, or ``pkg.module:factory``.
        space: of an architecture.
        input_shape: of a model's or module's input, where that does not say it.
        verb: with which messages begin.

    Raises:
        ValueError: it is none of these, or cannot be read; one line.
    """
    shape = None if input_shape is None else parse_shape(input_shape)
    kind = kind_of(given, space)
    if kind in (Kind.MODEL, Kind.ONNX_TEXT) and space is not None:
        raise ValueError(f"{verb} {given}: expected no --space with a model's file, got {space}.")
    if kind is Kind.MODEL:
        return model_to_graph(given, shape)
    if kind is Kind.MODULE:
        return _module_graph(given, shape, f"{verb} {given}")
    if shape is not None:
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


def read_text(given: str, shape: Shape | None = None) -> str:
    """Read the text in a file, or write that of a model's file or of the torch module that a function makes.

    Raises:
        ValueError: it cannot be read, or is none.
    """
    kind = kind_of(given)
    if kind is Kind.MODULE:
        return canonical_text(_module_graph(given, shape, given), given)
    if kind is Kind.MODEL:
        return model_to_onnx_text(given, shape)
    path = Path(given)
    if not path.is_file():
        raise ValueError(f"{path}: expected a text file, got {instead_of_file(path)}.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as e:
        raise ValueError(f"{path}: expected UTF-8 text, got {e.reason} at byte {e.start}.") from e
    text = text.removesuffix(f"\n{prelude()}")  # which `nasrlm convert --out` adds
    if kind is Kind.ONNX_TEXT:
        try:
            to_model(text)
        except OnnxTextError as e:
            raise ValueError(f"{path}: {e}") from e
    return text


def _module_graph(name: str, shape: Shape | None, place: str) -> Graph:
    """Export the torch module that ``pkg.module:factory`` makes; ``place`` begins the message about a missing shape."""
    if shape is None:
        raise ValueError(f"{place}: expected --input-shape, such as 1,3,32,32, got none.")
    module = users_module(name)
    try:
        return model_to_graph(export_module(module, shape))
    except OnnxModelError as e:
        raise OnnxModelError(f"{name}: {e}") from e


def users_module(name: str) -> torch.nn.Module:
    """Call ``pkg.module:factory``, a function of the user's without arguments that returns a torch module.

    Raises:
        ValueError: there is no such function, it fails, or returns something else; one line.
    """
    from torch.nn import Module  # takes seconds, and who converts ONNX files needs none

    see_own_modules()
    expected = f"module {name}: expected a function that takes no arguments and returns a torch.nn.Module"
    with one_line_of_users(expected):
        module = named_function(name, "module")()
    if not isinstance(module, Module):
        raise ValueError(f"{expected}, got one that returns {type(module).__name__}.")
    return module


def canonical_text(faithful: Graph, name: str) -> str:
    """The text of a network that was read, under the name that it was given by.

    Raises:
        ValueError: it has none; the message names it.
    """
    return checked(graph_to_onnx_text(faithful), name)


def count_tokens(texts: Sequence[str], checkpoint: Path | None) -> list[int]:
    """Count the tokens of each text as a checkpoint reads it; as the released one does if ``checkpoint`` is None."""
    tokenizer = read_tokenizer(folder_or_released(checkpoint))
    return [len(token_ids) for token_ids in tokenizer.to_ids(texts)]
