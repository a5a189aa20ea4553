"""The graph that converters build and passes rewrite: nodes that read and make named values, without weight values.

A *layer* is a node that owns weights (``nn.Conv``). A *block* is a sequence of nodes that occurs more than once and is
moved into a function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Shape = tuple[int, ...]


class Reference(NamedTuple):
    """The value of an attribute inside a function that is set by each call of the function."""

    name: str
    kind: str  # "int", "ints", "float", "floats", "string" or "strings"


AttributeValue = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Reference
Attributes = tuple[tuple[str, AttributeValue], ...]  # sorted by name
CALL = "block."  # prefix of the op_type of calls: the domain of functions


def attributes(**values: AttributeValue | None) -> Attributes:
    """Return the attributes of a node sorted by name, without those that are None."""
    return tuple([(name, value) for name, value in sorted(values.items()) if value is not None])


def kind_of(value: AttributeValue) -> str:
    """Return ONNX's name for the type of an attribute that is no reference: ``int``, ``ints`` and so on."""
    if isinstance(value, tuple):
        return f"{kind_of(value[0])}s" if value else "ints"
    return {int: "int", float: "float", str: "string"}[type(value)]


class Node(NamedTuple):
    """One call of an operator or function.

    ``op_type`` includes the domain (``Relu``, ``nn.ConvBias``, ``block.B0``). ``weights`` names the weight tensors that
    a layer owns; two nodes compute the same only if they own the same tensors.
    """

    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Attributes = ()
    weights: tuple[str, ...] = ()

    def attribute(self, name: str, default: AttributeValue | None = None) -> AttributeValue | None:
        """Return the value of an attribute, or ``default`` if the node does not have it."""
        for key, value in self.attributes:
            if key == name:
                return value
        return default

    def with_attributes(self, **changed: AttributeValue | None) -> Node:
        """Return the node with these attributes added or changed; None removes one."""
        return self._replace(attributes=attributes(**{**dict(self.attributes), **changed}))

    @property
    def callee(self) -> str:
        """The name of the function that the node calls; "" if it calls none."""
        return self.op_type.removeprefix(CALL) if self.op_type.startswith(CALL) else ""

    def reading(self, source: Mapping[str, str]) -> Node:
        """Return the node with its inputs renamed by ``source``; inputs that are not in it stay."""
        if source.keys().isdisjoint(self.inputs):
            return self
        op_type, inputs, outputs, attributes, weights = self
        return Node(op_type, tuple([source.get(x, x) for x in inputs]), outputs, attributes, weights)


def trimmed(inputs: Iterable[str]) -> tuple[str, ...]:
    """Return the inputs without omitted ones at the end."""
    kept = list(inputs)
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept)


def union(params: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the learned arrays of several weights."""
    return {name: size for own in params for name, size in own.items()}


def depth_of(nodes: Iterable[Node]) -> int:
    """Return the number of nodes on the longest path."""
    depth: dict[str, int] = {}
    for node in nodes:
        depth.update(dict.fromkeys(node.outputs, 1 + max((depth.get(x, 0) for x in node.inputs), default=0)))
    return max(depth.values(), default=0)


def is_dropout_at_inference(node: Node) -> bool:
    """Return whether a node is a Dropout that passes on its first input; a third input may switch on training."""
    return node.op_type == "Dropout" and len(node.inputs) < 3


class Function(NamedTuple):
    """A repeated block, called as ``block.name``; ``parameters`` are the attributes that differ between its calls."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A network. Passes take a graph and return a new one.

    Attributes:
        inputs: names of the input values.
        outputs: names of the output values.
        nodes: in topological order. An optional input that a node leaves out is the empty name.
        shapes: shape by value name, for inputs and all other values whose shape is known.
        functions: in the order in which the nodes first call them.
        types: ONNX type by value name, as in ONNX text (``int64[1,16]``, ``float[?,4]``), for values that are not
            float tensors of known shape.
        domains: versions of the operator sets that nodes use besides ONNX's own and ours.
        params: for each weight tensor in ``Node.weights``, the learned arrays that it is computed from and their
            numbers of elements. For a tensor that is not listed, the layer's attributes give the number.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    shapes: Mapping[str, Shape]
    functions: tuple[Function, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    domains: Mapping[str, int] = field(default_factory=dict)
    params: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
