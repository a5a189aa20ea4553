"""From a space's architecture to the faithful graph, the canonical graph and the canonical text."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from converters.canonical import canonicalise
from converters.graph import Graph
from converters.outline import outline
from converters.simplify import simplify
from converters.text import write
from spaces.space import SearchSpace


def to_graph(space: SearchSpace[Any], architecture: Any) -> Graph:
    """The network as its reference builds it: batch norms, ``none`` edges and dead branches included.

    A space of this package is built by the module of the same name in ``converters``; a space of a user's own
    by its method ``build(architecture) -> Graph``.
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


def _builder(space: SearchSpace[Any]) -> Callable[[Any], Graph]:
    build = getattr(space, "build", None)
    if callable(build):
        return build  # type: ignore[no-any-return]
    try:
        module = import_module(f"converters.{space.name}")
    except ModuleNotFoundError as e:
        if e.name != f"converters.{space.name}":
            raise
        raise ValueError(
            f"converter of space {space.name!r}: expected a module converters/{space.name}.py or a method "
            f"{type(space).__name__}.build(architecture), got neither. Write one with converters.builder.GraphBuilder."
        ) from e
    return lambda architecture: module.build(space, architecture)
