"""A network as the command line has it: an architecture, a file with an ONNX model or text, or a module's function."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from converters import Graph, graph_to_onnx_text, model_to_graph, to_graph, to_model
from converters.convert import checked
from nasrlm.checkpoint_folder import folder_or_released, read_tokenizer
from nasrlm.cli.inputs import MODEL_ENDINGS, ONNX_TEXT_ENDING, ending_of, named_graph, parse_shape, read_text
from nasrlm.named_function import FUNCTION_NAME
from spaces import get_space

NETWORK_ARGUMENT = typer.Argument(
    help="An architecture in the space's published notation, model.onnx, text.onnxtxt, or pkg.module:factory."
)


def read_network(given: str, space: str | None, input_shape: str | None, what: str) -> Graph:
    """The faithful graph of what is given.

    Raises:
        ValueError: it is none of these, or cannot be read; one line.
    """
    shape = None if input_shape is None else parse_shape(input_shape)
    suffix = ending_of(given)
    if suffix in (*MODEL_ENDINGS, ONNX_TEXT_ENDING) and space is not None:
        raise ValueError(f"{what} {given}: expected no --space with a model's file, got {space}.")
    if suffix in MODEL_ENDINGS:
        return model_to_graph(given, shape)
    if space is None and FUNCTION_NAME.fullmatch(given):
        return named_graph(given, shape, f"{what} {given}")
    if shape is not None:
        raise ValueError(f"--input-shape: expected model.onnx or pkg.module:factory with it, got {given}.")
    if suffix == ONNX_TEXT_ENDING:
        return model_to_graph(to_model(read_text(given)))
    if space is None:
        endings = " or ".join((ONNX_TEXT_ENDING, *MODEL_ENDINGS))
        raise ValueError(
            f"{what} {given}: expected an architecture with --space, a file ending in {endings}, or "
            "pkg.module:factory. `nasrlm spaces` lists the spaces."
        )
    chosen = get_space(space)
    return to_graph(chosen, chosen.parse(given))


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
