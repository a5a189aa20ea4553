"""Converts an architecture, ONNX model or torch module to a faithful graph, a canonical graph and canonical text.

The *faithful graph* holds every operator that the reference implementation or the given model runs. The *canonical
graph* holds only what the outputs depend on, simplified and in one fixed order. The *canonical text* is the ONNX text
of the canonical graph with repeated blocks as functions. The *measured text* also has the blocks as they are executed,
including operations whose results are unused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto

from converters.errors import OnnxModelError
from converters.graph import Graph
from converters.models.input_sizes import InputShape
from converters.models.onnx_graph import read_graph
from converters.models.onnx_model import prepare, read_model
from converters.models.torch_module import export_module
from converters.passes.canonical import canonicalise
from converters.passes.executed import executed_blocks
from converters.passes.normalise import normalise
from converters.passes.outline import outline
from converters.passes.simplify import remove_dead_nodes, simplify
from converters.text import OnnxTextError, to_model, write
from spaces.genotype_space import Choices, GenotypeSpace
from spaces.space import SearchSpace
from spaces.spellings import Spellings

if TYPE_CHECKING:
    import torch


def to_graph(space: SearchSpace[Any], architecture: Any) -> Graph:
    """Return the faithful graph: the network as its reference builds it, including dead branches and ``none`` edges.

    The space decides what builds the graph. For a space of this package it is the module in ``converters`` named after
    the space or after the space's file. For a user's space it is the space's method ``build(architecture) -> Graph``;
    the layers in its graph may use any ONNX operators, since they are normalised afterwards.

    Raises:
        ValueError: ``space`` is no space, ``architecture`` is a notation, a genotype or of another space, there is no
            converter for the space, or its ``build`` does not return a ``Graph``.

    An exception raised while building gets the architecture's notation as a note.
    """
    if not isinstance(space, SearchSpace):
        raise ValueError(
            f"to_graph: expected a search space, got {space!r:.60}. Load one by name with spaces.get_space."
        )
    while isinstance(space, Spellings):
        space = space.space
    if not isinstance(architecture, _kind_of_architectures(space)):
        got = f"text, {architecture[:60]!r}" if isinstance(architecture, str) else f"{architecture!r:.60}"
        raise ValueError(
            f"to_graph: expected an architecture of {space.name}, got {got}. Convert a notation with the space's "
            "method parse, integers with its method decode."
        )
    try:
        graph = _built(space, architecture)
        return normalise(graph) if _is_users(space) else graph  # our converters build normalised graphs
    except Exception as e:
        with suppress(Exception):  # an architecture of another space has no notation
            e.add_note(f"architecture {space.format(architecture)}")
        raise


def _kind_of_architectures(space: SearchSpace[Any]) -> type[Any]:
    """Return the class of a space's architectures; ``object`` for a user's, which may be of several classes."""
    if isinstance(space, GenotypeSpace):
        return Choices
    return object if _is_users(space) else _kind_of_sampled(space)


@lru_cache(maxsize=64)
def _kind_of_sampled(space: SearchSpace[Any]) -> type[Any]:
    return type(space.sample(np.random.default_rng(0)))


def _built(space: SearchSpace[Any], architecture: Any) -> Graph:
    graph = _builder(space)(architecture)
    if not isinstance(graph, Graph):
        raise ValueError(
            f"{type(space).__name__}.build: expected a converters.graph.Graph, got {type(graph).__name__}. "
            f"End it with {_ending(graph)}."
        )
    return graph


def _ending(built: object) -> str:
    """Return the statement with which a ``build`` that returned ``built`` should end instead."""
    if isinstance(built, ModelProto):
        return "`return model_to_graph(model)` of converters"
    torch = sys.modules.get("torch")  # if torch was never imported, ``built`` cannot be a torch module
    if torch is not None and isinstance(built, torch.nn.Module):
        return "`return model_to_graph(export_module(module, input_shape))` of converters"
    return "`return g.build(output)` of a GraphBuilder `g`"


def to_canonical_graph(graph: Graph) -> Graph:
    """Return the canonical graph: only what the outputs depend on, in canonical order, with repeated blocks inline.

    Raises:
        ValueError: ``graph`` is no Graph, but for example an ONNX model.
    """
    if not isinstance(graph, Graph):
        raise ValueError(
            f"graph: expected a converters.Graph, got {type(graph).__name__}. Convert architectures with to_graph, "
            "ONNX models with model_to_graph."
        )
    return canonicalise(simplify(graph))


def to_onnx_text(space: SearchSpace[Any], architecture: Any) -> str:
    """Return the canonical ONNX text of an architecture; equivalent networks have the same text.

    The exception is the operand order of concatenations: isomorphic networks of NAS-Bench-101, NDS, Inception and
    Two-Path may differ in it.

    Cost: a few milliseconds.

    Raises:
        ValueError: as for ``to_graph``.

    Example:
        >>> from spaces import get_space
        >>> space = get_space("nasbench201")
        >>> text = to_onnx_text(space, space.decode((1, 0, 0, 0, 1, 0)))
        >>> "nn.ConvBias" in text
        True
    """
    return graph_to_onnx_text(to_graph(space, architecture))


def graph_to_onnx_text(graph: Graph) -> str:
    """Return the canonical ONNX text of a faithful graph; raises what ``to_canonical_graph`` does."""
    return canonical_to_onnx_text(to_canonical_graph(graph))


def canonical_to_onnx_text(canonical: Graph) -> str:
    """Return the canonical ONNX text of a canonical graph."""
    return write(outline(canonical))


def model_to_graph(model: ModelProto | Path | str, input_shape: InputShape | None = None) -> Graph:
    """Return the faithful graph of any ONNX model, normalised to our operators.

    Nodes that no output depends on are removed first, as runtimes do, so that they do not count as readers of a value
    when patterns are matched.

    Args:
        model: a model or the path of a file. Weight values are not read, nor is their external data.
        input_shape: shape of the first input, or a list of shapes; needed if the model leaves sizes other than the
            batch open. An open batch size alone is taken as 1.

    Raises:
        OnnxModelError: the file is no ONNX model, or the model cannot be read as a network. The message is one line.
    """
    if not isinstance(model, ModelProto):
        path, model = model, read_model(model)
        place = str(path)
    else:
        place = "model"
    try:
        return normalise(remove_dead_nodes(read_graph(prepare(model, input_shape))))
    except OnnxModelError as e:
        raise OnnxModelError(f"{place}: {' '.join(str(e).split())}") from e  # value names may contain line breaks


def model_to_onnx_text(model: ModelProto | Path | str, input_shape: InputShape | None = None) -> str:
    """Return the canonical ONNX text of any ONNX model, checked by ``onnx.checker``; see ``model_to_graph``.

    Cost: about a tenth of a second.
    """
    name = "model" if isinstance(model, ModelProto) else str(model)
    return checked(graph_to_onnx_text(model_to_graph(model, input_shape)), name)


def module_to_onnx_text(module: torch.nn.Module, input_shape: InputShape) -> str:
    """Return the canonical ONNX text of a torch module in evaluation mode.

    Args:
        module: a module that takes tensors.
        input_shape: shape of its tensor, batch included, or a list of shapes if it takes several.

    Raises:
        OnnxModelError: as for ``export_module``, or the model cannot be read as a network.

    Cost: a second for a ResNet-50.
    """
    return model_to_onnx_text(export_module(module, input_shape))


def checked(onnx_text: str, name: str = "model") -> str:
    """Return ``onnx_text`` unchanged if it is a valid model.

    Args:
        onnx_text: canonical text.
        name: name of the original model, for messages.

    Raises:
        OnnxModelError: the text is no valid model. This happens if an operator of the original accepts operands which
            the operator that replaces it does not.
    """
    try:
        to_model(onnx_text)
    except OnnxTextError as e:
        raise OnnxModelError(f"{name}: expected a network that ONNX text can represent, got another. {e}") from e
    return onnx_text


def to_measured_text(space: SearchSpace[Any], architecture: Any) -> str:
    """Return the measured text, from which published latencies are predicted.

    It is the canonical text. If the networks of the space run operations whose results are unused
    (``space.runs_lost_operations``), the innermost blocks follow as they are executed, see ``passes/executed.py``;
    isomorphic architectures can differ in these blocks.

    Raises:
        ValueError: as for ``to_graph``.
    """
    faithful = to_graph(space, architecture)
    return measured_text(space, faithful, to_canonical_graph(faithful))


def measured_text(space: SearchSpace[Any], faithful: Graph, canonical: Graph) -> str:
    """Return the measured text of an architecture from its faithful and its canonical graph."""
    outlined = outline(canonical)
    if space.runs_lost_operations:
        outlined = replace(outlined, functions=outlined.functions + executed_blocks(faithful))
    return write(outlined)


def _builder(space: SearchSpace[Any]) -> Callable[[Any], Any]:
    if _is_users(space):
        return space.build  # type: ignore[attr-defined, no-any-return]
    for stem in _stems(space):
        try:
            module = import_module(f"converters.{stem}")
        except ModuleNotFoundError as e:
            if e.name != f"converters.{stem}":
                raise
        else:
            return lambda architecture: module.build(space, architecture)
    raise ValueError(
        f"converter of space {space.name!r}: expected a module converters/{space.name}.py or a method "
        f"{type(space).__name__}.build(architecture), got neither. Write one with converters.builder.GraphBuilder."
    )


def _is_users(space: SearchSpace[Any]) -> bool:
    return callable(getattr(space, "build", None))


def _stems(space: SearchSpace[Any]) -> tuple[str, ...]:
    """Return the names of modules in this folder that may build a space: the space's name, then that of its file.

    The file's name serves for files that hold a family of spaces. A space counts as one of this package only if the
    class that defines its ``name`` is in ``spaces``, because a user's file may have the same name as one of ours.
    """
    owner = next((base for base in type(space).__mro__ if "name" in vars(base)), type(space))
    package, _, stem = owner.__module__.rpartition(".")
    return (space.name, stem) if package == "spaces" else ()
