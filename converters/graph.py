"""The graph that converters build and passes rewrite: nodes over named values, layers without weight values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Shape = tuple[int, ...]


class Reference(NamedTuple):
    """An attribute of a function's node that takes its value from the call."""

    name: str
    kind: str  # "int", "ints", "float", "floats", "string" or "strings"


AttributeValue = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Reference
Attributes = tuple[tuple[str, AttributeValue], ...]  # sorted by name
CALL = "block."  # the domain of functions


def kind_of(value: AttributeValue) -> str:
    """ONNX's name for the type of an attribute: ``int``, ``ints``, …; of a reference, that of its value."""
    if isinstance(value, Reference):
        return value.kind
    if isinstance(value, tuple):
        return f"{kind_of(value[0])}s" if value else "ints"
    return {int: "int", float: "float", str: "string"}[type(value)]


class Node(NamedTuple):
    """One operator call.

    ``op_type`` carries its domain (``Relu``, ``nn.ConvBias``, ``block.B0``). ``weights`` names the tensors that a
    layer owns: two nodes compute the same only if they own the same tensors.
    """

    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Attributes = ()
    weights: tuple[str, ...] = ()

    def attribute(self, name: str, default: AttributeValue | None = None) -> AttributeValue | None:
        """The value of one attribute, or ``default`` where the node leaves it out."""
        for key, value in self.attributes:
            if key == name:
                return value
        return default

    @property
    def callee(self) -> str:
        """The name of the function that it calls; "" if it calls none."""
        return self.op_type.removeprefix(CALL) if self.op_type.startswith(CALL) else ""

    def reading(self, source: Mapping[str, str]) -> Node:
        """The same node, reading what stands in for its inputs."""
        if source.keys().isdisjoint(self.inputs):
            return self
        op_type, inputs, outputs, attributes, weights = self
        return Node(op_type, tuple([source.get(x, x) for x in inputs]), outputs, attributes, weights)


def depth_of(nodes: Iterable[Node]) -> int:
    """Nodes on the longest path."""
    depth: dict[str, int] = {}
    for node in nodes:
        depth.update(dict.fromkeys(node.outputs, 1 + max((depth.get(x, 0) for x in node.inputs), default=0)))
    return max(depth.values(), default=0)


def is_dropout_at_inference(node: Node) -> bool:
    """Does it only hand on its first input? A third one says that it is training."""
    return node.op_type == "Dropout" and len(node.inputs) < 3


class Function(NamedTuple):
    """A repeated block: ``block.name`` with the attributes that differ between its calls."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A network: nodes in topological order. Passes take one and return another.

    ``shapes`` holds the shape of every value that is known, inputs included. Functions stand in the order in
    which the nodes first call them. ``types`` spells the types of values that are not float tensors of known
    shape, as ONNX text does (``int64[1,16]``, ``float[?,4]``). ``domains`` holds the versions of the operator sets
    that nodes call beyond ONNX's own and ours. An input that a node leaves out is the empty name. ``params`` says of
    the weights that a layer owns, by their name, of which learned arrays they are made, and how many numbers these
    have; of others it is what the layer says.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    functions: tuple[Function, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    domains: Mapping[str, int] = field(default_factory=dict)
    params: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
