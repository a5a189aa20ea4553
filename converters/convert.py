"""From a space's architecture to the faithful graph, the canonical graph and the canonical text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from converters.canonical import canonicalise
from converters.executed import executed_blocks
from converters.graph import Graph
from converters.outline import outline
from converters.simplify import simplify
from converters.text import write
from spaces.space import SearchSpace


def to_graph(space: SearchSpace[Any], architecture: Any) -> Graph:
    """The network as its reference builds it: batch norms, ``none`` edges and dead branches included.

    A space of this package is built by the module in ``converters`` that has its name or that of its file; a space
    of a user's own by its method ``build(architecture) -> Graph``.
    """
    return _builder(space)(architecture)


def to_canonical_graph(graph: Graph) -> Graph:
    """What a graph computes, simplified and in canonical order, repeated blocks still written out."""
    return canonicalise(simplify(graph))


def to_onnx_text(space: SearchSpace[Any], architecture: Any) -> str:
    """Canonical ONNX text: the same for every spelling of the same network.

    Cost: some milliseconds.

    Example:
        >>> from spaces import get_space
        >>> space = get_space("nasbench201")
        >>> text = to_onnx_text(space, space.decode((1, 0, 0, 0, 1, 0)))
        >>> "nn.ConvBias" in text
        True
    """
    return write(outline(to_canonical_graph(to_graph(space, architecture))))


def to_measured_text(space: SearchSpace[Any], architecture: Any) -> str:
    """Canonical text, and behind it the blocks as the reference runs them, where these hold lost operations.

    The text to predict published latencies from, see ``executed``; isomorphic architectures can differ in it.
    """
    faithful = to_graph(space, architecture)
    outlined = outline(to_canonical_graph(faithful))
    functions = outlined.functions + executed_blocks(faithful, outlined)
    return write(replace(outlined, functions=functions))


def _builder(space: SearchSpace[Any]) -> Callable[[Any], Graph]:
    build = getattr(space, "build", None)
    if callable(build):
        return build  # type: ignore[no-any-return]
    for stem in (space.name, type(space).__module__.rpartition(".")[2]):  # a file may hold a family of spaces
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
