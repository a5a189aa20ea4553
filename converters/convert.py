"""To the faithful graph, the canonical graph and the canonical text, from whatever describes a network."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from converters.errors import OnnxModelError
from converters.graph import Graph, Shape
from converters.models.onnx_graph import read_graph
from converters.models.onnx_model import prepare, read_model
from converters.models.torch_module import export_module
from converters.passes.canonical import canonicalise
from converters.passes.executed import executed_blocks
from converters.passes.normalise import normalise
from converters.passes.outline import outline
from converters.passes.simplify import remove_dead_nodes, simplify
from converters.text import OnnxTextError, to_model, write
from spaces.space import SearchSpace
from spaces.spellings import Spellings

if TYPE_CHECKING:
    import torch


def to_graph(space: SearchSpace[Any], architecture: Any) -> Graph:
    """The network as its reference builds it: batch norms, ``none`` edges and dead branches included.

    A space of this package is built by the module in ``converters`` that has its name or that of its file; a space
    of a user's own by its method ``build(architecture) -> Graph``, which may spell layers as it likes.

    Raises:
        ValueError: no space, no architecture of it but a notation, the space has no such converter, or its method
            returns something else.

    Whatever a method of a user's own raises carries the architecture as a note.
    """
    if not isinstance(space, SearchSpace):
        raise ValueError(f"to_graph: expected a search space, got {space!r:.60}. spaces.get_space opens one by name.")
    if isinstance(architecture, str) and not _is_users(space):
        raise ValueError(
            f"to_graph: expected an architecture of {space.name}, got text, {architecture[:60]!r}. "
            "The space's method parse makes one of a notation."
        )
    try:
        graph = _built(space, architecture)
        return normalise(graph) if _is_users(space) else graph  # ours spell each layer in one way
    except Exception as e:
        with suppress(Exception):  # an architecture of another space has no notation
            e.add_note(f"architecture {space.format(architecture)}")
        raise


def _built(space: SearchSpace[Any], architecture: Any) -> Graph:
    graph = _builder(space)(architecture)
    if not isinstance(graph, Graph):
        raise ValueError(
            f"{type(space).__name__}.build: expected a converters.graph.Graph, got {type(graph).__name__}. "
            f"End it with {_ending(graph)}."
        )
    return graph


def _ending(built: object) -> str:
    """How a ``build`` that returns this would return a graph."""
    if isinstance(built, ModelProto):
        return "`return model_to_graph(model)` of converters"
    torch = sys.modules.get("torch")  # whose modules nobody has who has not imported it
    if torch is not None and isinstance(built, torch.nn.Module):
        return "`return model_to_graph(export_module(module, input_shape))` of converters"
    return "`return g.build(output)` of a GraphBuilder `g`"


def to_canonical_graph(graph: Graph) -> Graph:
    """What a graph computes, simplified and in canonical order, repeated blocks still written out."""
    return canonicalise(simplify(graph))


def to_onnx_text(space: SearchSpace[Any], architecture: Any) -> str:
    """Canonical ONNX text: the same for every spelling of the same network.

    But for the order of concatenations: networks of NAS-Bench-101, NDS, Inception and Two-Path that are isomorphic may
    differ in it.

    Cost: some milliseconds.

    Example:
        >>> from spaces import get_space
        >>> space = get_space("nasbench201")
        >>> text = to_onnx_text(space, space.decode((1, 0, 0, 0, 1, 0)))
        >>> "nn.ConvBias" in text
        True
    """
    return graph_to_onnx_text(to_graph(space, architecture))


def graph_to_onnx_text(graph: Graph) -> str:
    """Canonical ONNX text of a faithful graph."""
    return canonical_to_onnx_text(to_canonical_graph(graph))


def canonical_to_onnx_text(canonical: Graph) -> str:
    """The text of what ``to_canonical_graph`` gives."""
    return write(outline(canonical))


def model_to_graph(model: ModelProto | Path | str, input_shape: Shape | None = None) -> Graph:
    """The faithful graph of any ONNX model, each computation in our operators.

    Nodes that no output depends on are left out, as runtimes leave them out: nothing is spelled as if they read it.

    Args:
        model: a model or the path of a file. Weight values are not read, nor is their external data.
        input_shape: of the first input, where the model leaves more sizes open than the batch, which is then 1.

    Raises:
        OnnxModelError: no ONNX model, or one that cannot be read as a network; one line.
    """
    if not isinstance(model, ModelProto):
        path, model = model, read_model(model)
        place = str(path)
    else:
        place = "model"
    try:
        return normalise(remove_dead_nodes(read_graph(prepare(model, input_shape))))
    except OnnxModelError as e:
        raise OnnxModelError(f"{place}: {' '.join(str(e).split())}") from e  # names may hold line ends


def model_to_onnx_text(model: ModelProto | Path | str, input_shape: Shape | None = None) -> str:
    """Canonical ONNX text of any ONNX model, see ``model_to_graph``; it passes the full checker.

    Cost: about a tenth of a second.
    """
    name = "model" if isinstance(model, ModelProto) else str(model)
    return checked(graph_to_onnx_text(model_to_graph(model, input_shape)), name)


def module_to_onnx_text(module: torch.nn.Module, input_shape: Shape) -> str:
    """Canonical ONNX text of a torch module in evaluation mode.

    Args:
        module: takes one tensor.
        input_shape: of that tensor, batch included.

    Raises:
        OnnxModelError: torch cannot export the module.

    Cost: a second for a ResNet-50.
    """
    return model_to_onnx_text(export_module(module, input_shape))


def checked(onnx_text: str, name: str = "model") -> str:
    """``onnx_text``, if it is a valid model.

    Args:
        onnx_text: canonical.
        name: of what it was made of, for messages.

    Raises:
        OnnxModelError: it is no valid model, as may be where an operator of the original takes what ours does not.
    """
    try:
        to_model(onnx_text)
    except OnnxTextError as e:
        raise OnnxModelError(f"{name}: expected a network that ONNX text can say, got another. {e}") from e
    return onnx_text


def to_measured_text(space: SearchSpace[Any], architecture: Any) -> str:
    """The text to predict published latencies from: canonical, and behind it what else the reference runs.

    Where a space's networks run operations whose results are lost, the innermost blocks as they are run follow, see
    ``executed``; isomorphic architectures can differ in them.
    """
    faithful = to_graph(space, architecture)
    return measured_text(space, faithful, to_canonical_graph(faithful))


def measured_text(space: SearchSpace[Any], faithful: Graph, canonical: Graph) -> str:
    """``to_measured_text`` of an architecture whose two graphs are made already."""
    outlined = outline(canonical)
    if space.runs_lost_operations:
        outlined = replace(outlined, functions=outlined.functions + executed_blocks(faithful))
    return write(outlined)


def _builder(space: SearchSpace[Any]) -> Callable[[Any], Any]:
    if isinstance(space, Spellings):
        return _builder(space.space)
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
    """Names of modules in this folder that may build a space of this package: its name, and that of its file.

    A file may hold a family of spaces.

    A space belongs where it got its name: a user's file may be called like any of our modules.
    """
    owner = next((base for base in type(space).__mro__ if "name" in vars(base)), type(space))
    package, _, stem = owner.__module__.rpartition(".")
    return (space.name, stem) if package == "spaces" else ()
