"""Rewriting of graphs node by node with spellings.

A *spelling* is a function that returns the nodes that replace a given node, or None to keep it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from converters.graph import AttributeValue, Graph, Node, Shape, union
from converters.tensor_types import with_sizes


class Surroundings:
    """What a spelling can look up about the graph around a node; the nodes before it are already rewritten."""

    def __init__(self, graph: Graph) -> None:
        self.made: dict[str, Node] = {}
        self.shapes = dict(graph.shapes)
        self.types = dict(graph.types)
        self.params = dict(graph.params)
        self._uses = Counter(chain(graph.outputs, *[node.inputs for node in graph.nodes]))

    def producer(self, x: str, *op_types: str) -> Node | None:
        """Return the node that makes ``x`` if its operator is one of ``op_types``, else None."""
        node = self.made.get(x)
        return node if node and node.op_type in op_types else None

    def is_read(self, x: str) -> bool:
        """Return whether any node reads ``x`` or it is an output."""
        return self._uses[x] > 0

    def read_once(self, x: str) -> bool:
        """Return whether ``x`` has exactly one reader; an output of the graph counts as a reader."""
        return self._uses[x] == 1

    def is_float(self, x: str) -> bool:
        """Return whether ``x`` is known to be a float tensor of known shape."""
        return x in self.shapes and x not in self.types

    def same_shape(self, x: str, y: str) -> bool:
        """Return whether shapes are equal or both unknown; broadcasting with a constant may have added axes to one."""
        return self.shapes.get(x) == self.shapes.get(y)

    def constant(self, x: str) -> AttributeValue | None:
        """Return the number or tuple of numbers in ``x`` if a ``Constant`` makes it, else None."""
        node = self.producer(x, "Constant")
        return node.attributes[0][1] if node else None

    def number(self, x: str) -> float | None:
        """Return the float in ``x`` if it is a constant of one element, of any rank, else None."""
        view = self.producer(x, "nn.Reshape")
        value = self.constant(view.inputs[0] if view else x)
        if isinstance(value, tuple):
            value = value[0] if len(value) == 1 else None
        return value if isinstance(value, float) else None

    def integers(self, x: str) -> tuple[int, ...] | None:
        """Return the integers in ``x`` if it is a constant integer or list of integers, else None."""
        value = self.constant(x)
        values = value if isinstance(value, tuple) else (value,)
        return as_integers(values) if all(isinstance(number, int) for number in values) else None

    def describe(self, x: str, like: str) -> None:
        """Give a value whose shape is not known shape and type of another, if that one's shape is known."""
        if like in self.shapes and x not in self.shapes:
            self.shapes[x] = self.shapes[like]
            self.types.pop(x, None)
            if like in self.types:
                self.types[x] = self.types[like]

    def join(self, names: Sequence[str]) -> tuple[str]:
        """Return one name for several weight tensors, so that a single layer can own them together."""
        joined = ",".join(names)
        if self.params.keys() >= set(names):
            self.params[joined] = union(self.params[name] for name in names)
        return (joined,)

    def define(self, name: str, shape: Shape, like: str) -> str:
        """Register a new value with a shape and the element type of ``like``; return its name."""
        self.shapes[name] = shape
        if like in self.types:
            self.types[name] = with_sizes(self.types[like].partition("[")[0], shape)
        return name


def as_integers(value: object) -> tuple[int, ...]:
    """Return a tuple of integers unchanged, and an empty tuple for anything else."""
    return tuple([int(number) for number in value]) if isinstance(value, tuple) else ()


def both_orders(node: Node | None, *op_types: str) -> tuple[tuple[str, str], ...]:
    """Return the two operands of a node in both orders; nothing if it has more or another operator than those given."""
    if node is None or (op_types and node.op_type not in op_types) or len(node.inputs) != 2:
        return ()
    first, second = node.inputs
    return (first, second), (second, first)


Spelling = Callable[[Node, Surroundings], Sequence[Node] | None]


def rewrite(graph: Graph, spelling: Spelling) -> Graph:
    """Apply a spelling to every node of a graph.

    An ``Identity`` among the new nodes is replaced by its input. Nodes whose only readers were replaced are removed.
    """
    at = Surroundings(graph)
    source: dict[str, str] = {}
    nodes: list[Node] = []
    for old in graph.nodes:
        node = old.reading(source)
        for spelled in spelling(node, at) or (node,):
            new = spelled.reading(source)  # it may read an Identity from the same spelling
            if new.op_type == "Identity":
                source[new.outputs[0]] = new.inputs[0]
                at.describe(new.inputs[0], like=new.outputs[0])
            else:
                nodes.append(new)
                at.made.update(dict.fromkeys(new.outputs, new))
    outputs = tuple([source.get(x, x) for x in graph.outputs])
    rewritten = replace(graph, outputs=outputs, nodes=tuple(nodes), shapes=at.shapes, types=at.types, params=at.params)
    return _without_orphans(rewritten, graph)


def _without_orphans(graph: Graph, before: Graph) -> Graph:
    """Remove nodes that were read in ``before`` and are not any more; nodes that were dead before stay."""
    was_read = {x for node in before.nodes for x in node.inputs}.union(before.outputs)
    was_made = {x for node in before.nodes for x in node.outputs}
    needed = set(graph.outputs)
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        was_dead = was_read.isdisjoint(node.outputs) and not was_made.isdisjoint(node.outputs)
        if was_dead or not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes[::-1]))
