"""Spellings (rewrite rules, see ``rewriting``) of sums, and of sums and products with a number."""

from __future__ import annotations

import numpy as np

from converters.graph import Node, attributes
from converters.passes.rewriting import Surroundings, both_orders
from converters.passes.spell_activations import spell_activation

ELEMENTWISE = frozenset({"Add", "Div", "Max", "Min", "Mul", "Pow", "Sub"})


def spell_number(node: Node, at: Surroundings) -> list[Node] | None:
    """Rewrite arithmetic of a value with a constant number.

    A product becomes ``nn.Scale``, a square ``Mul``, one divided by the value ``Reciprocal``, and the maximum with 0
    ``Relu``. Operations without effect become Identity. Other operators keep the number, as a scalar.
    """
    for x, other in both_orders(node, *ELEMENTWISE) if at.is_float(node.outputs[0]) else ():
        number = at.number(other)
        if number is not None and at.same_shape(x, node.outputs[0]) and at.is_float(x):
            return _with_number(node, x, number, is_first=other == node.inputs[0])
    return None


def spell_gemm(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace ``Gemm`` of two matrices by ``MatMul``, with ``Transpose`` before it; not if it transposes a weight."""
    if node.op_type != "Gemm" or len(node.inputs) != 2 or node.attribute("alpha", 1.0) != 1.0:
        return None
    nodes: list[Node] = []
    operands: list[str] = []
    for x, flag in zip(node.inputs, ("transA", "transB"), strict=True):
        if not node.attribute(flag):
            operands.append(x)
        elif at.producer(x, "nn.Weight") or x not in at.shapes:
            return None
        else:
            operands.append(at.define(f"{node.outputs[0]}.{flag}", at.shapes[x][::-1], like=x))
            nodes.append(Node("Transpose", (x,), (operands[-1],), attributes(perm=(1, 0))))
    return [*nodes, Node("MatMul", tuple(operands), node.outputs)]


def spell_product(node: Node, at: Surroundings) -> list[Node] | None:
    """Move scales of operands behind their product and merge consecutive scales, unless they end an activation."""
    if node.op_type == "nn.Scale" and (inner := _scale_of(node.inputs[0], at)):
        return [_scaled(inner.inputs[0], _factor(inner) * _factor(node), node.outputs[0])]
    if node.op_type not in ("Mul", "MatMul") or not at.is_float(node.outputs[0]):
        return None
    factor, operands = 1.0, list(node.inputs)
    for index, x in enumerate(node.inputs):
        if at.read_once(x) and (inner := _scale_of(x, at)):
            operands[index] = inner.inputs[0]
            factor *= _factor(inner)
    if factor == 1.0:
        return None
    product = at.define(f"{node.outputs[0]}.product", at.shapes[node.outputs[0]], like=node.outputs[0])
    return [node._replace(inputs=tuple(operands), outputs=(product,)), _scale(product, factor, node.outputs[0])]


def write_out_sum(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace ``Sum`` by a chain of ``Add``."""
    if node.op_type != "Sum":
        return None
    total, *others = node.inputs
    nodes: list[Node] = []
    for index, other in enumerate(others, start=1):
        output = f"{node.outputs[0]}.sum{index}" if index < len(others) else node.outputs[0]
        if at.is_float(total) and at.is_float(other) and output != node.outputs[0]:
            at.define(output, np.broadcast_shapes(at.shapes[total], at.shapes[other]), like=total)
        nodes.append(Node("Add", (total, other), (output,)))
        total = output
    return nodes


def spell_sum(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace ``Add`` of floats of equal shape by ``Sum``, which may get more operands when sums are flattened."""
    values = (*node.inputs, *node.outputs)
    if node.op_type != "Add" or not all(at.is_float(x) for x in values) or len({at.shapes[x] for x in values}) > 1:
        return None
    return [node._replace(op_type="Sum")]


def round_scale(node: Node, at: Surroundings) -> list[Node] | None:
    """Round factors to six digits, so that different ways to compute a factor give the same one.

    The same scale may come as ``x / 8 ** 0.5``, as ``x * 8 ** -0.5``, or as two scales by the root of the factor.
    """
    if node.op_type != "nn.Scale":
        return None
    return [_scaled(node.inputs[0], float(f"{_factor(node):.6g}"), node.outputs[0])]


def _scale_of(x: str, at: Surroundings) -> Node | None:
    """Return the scale that makes ``x``, unless it is the last operator of an activation such as ``Gelu``."""
    scale = at.producer(x, "nn.Scale")
    return None if scale is None or spell_activation(scale, at) else scale


def _scaled(x: str, factor: float, output: str) -> Node:
    return Node("Identity", (x,), (output,)) if factor == 1 else _scale(x, factor, output)


def _scale(x: str, factor: float, output: str) -> Node:
    return Node("nn.Scale", (x,), (output,), attributes(factor=factor))


def _with_number(node: Node, x: str, number: float, *, is_first: bool) -> list[Node]:
    """Return the nodes for ``x`` and a number; ``is_first`` if the number is the first operand."""
    output = node.outputs[0]
    if node.op_type == "Mul" and number == 0:
        return _with_constant(node, x, 0.0)
    if node.op_type == "Mul" or (node.op_type == "Div" and number != 0 and not is_first):
        factor = number if node.op_type == "Mul" else 1 / number
        return [_scaled(x, factor, output)]
    if node.op_type == "Div" and number == 1 and is_first:
        return [Node("Reciprocal", (x,), node.outputs)]
    if node.op_type == "Pow" and number == 2 and not is_first:
        return [Node("Mul", (x, x), node.outputs)]
    if node.op_type == "Max" and number == 0:
        return [Node("Relu", (x,), node.outputs)]
    if node.op_type == "Add" or (node.op_type == "Sub" and not is_first):
        added = number if node.op_type == "Add" else -number
        return [Node("Identity", (x,), node.outputs)] if added == 0 else _with_constant(node, x, added, "Add")
    return _with_constant(node, x, number, is_first=is_first)


def _with_constant(
    node: Node, x: str, number: float, op_type: str | None = None, *, is_first: bool = False
) -> list[Node]:
    constant = f"{node.outputs[0]}.number"
    inputs = (constant, x) if is_first else (x, constant)
    return [
        Node("Constant", (), (constant,), attributes(value_float=number)),
        Node(op_type or node.op_type, inputs, node.outputs),
    ]


def _factor(node: Node) -> float:
    factor = node.attribute("factor")
    assert isinstance(factor, float), f"{node} has no factor"
    return factor
