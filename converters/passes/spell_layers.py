"""Spellings of layers (rewrite rules, see ``rewriting``), which absorb biases and recognise norms and global pools."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from converters.graph import AttributeValue, Node, Shape, attributes
from converters.passes.rewriting import Surroundings, as_integers, both_orders

BIASABLE = ("nn.Conv", "nn.Linear")
GLOBAL_POOLS = {"ReduceMax": "GlobalMaxPool", "ReduceMean": "GlobalAveragePool"}  # over all axes but the first two


def absorb_bias(node: Node, at: Surroundings) -> list[Node] | None:
    """Make a weight that is added to a convolution or linear layer its bias, if nothing else reads the layer."""
    for x, other in both_orders(node, "Add"):
        layer = at.producer(x, *BIASABLE)
        same_shape = x in at.shapes and at.same_shape(x, node.outputs[0])
        if layer and same_shape and at.read_once(x) and _is_bias(other, layer, at):
            made = at.made[other]
            weights = at.join([*layer.weights, *(made.weights or (other,))])
            return [layer._replace(op_type=f"{layer.op_type}Bias", outputs=node.outputs, weights=weights)]
    return None


def absorb_layer_norm(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace ``(x - mean) / (variance + epsilon) ** 0.5 * scale + bias`` over the last axis by a layer norm."""
    for quotient, scale, shift in _scaled_and_shifted(node, at):
        shape, normed = _weight_shape(scale, at), _normed(quotient, at)
        if normed and shape == _weight_shape(shift, at):
            x, epsilon = normed
            if shape == at.shapes.get(x, ())[-1:]:
                weights = at.join([*scale.weights, *shift.weights])
                values = attributes(epsilon=epsilon, weight_shape=shape)
                return [Node("nn.LayerNormalization", (x,), node.outputs, values, weights)]
    return None


def absorb_unbiased_layer_norm(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace ``(x - mean) / (variance + epsilon) ** 0.5 * scale`` over the last axis by ``LayerNormalization``.

    There is no ``nn`` function for a layer norm without bias.
    """
    for x, scale in both_orders(node, "Mul"):
        normed = _normed(x, at) if at.producer(scale, "nn.Weight") else None
        if normed and at.shapes[scale] == at.shapes.get(normed[0], ())[-1:]:
            return [Node("LayerNormalization", (normed[0], scale), node.outputs, attributes(epsilon=normed[1]))]
    return None


def absorb_group_norm(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace an instance norm over groups of channels, with one scale and bias per channel, by ``GroupNormalization``.

    The instance norm's own scale and bias are dropped, since those per channel include them.
    """
    for normed, scale, shift in _scaled_and_shifted(node, at):
        rows = _normed_groups(normed, at)
        if rows and _weight_shape(scale, at) == _weight_shape(shift, at) == rows.of_channels:
            output, shape = node.outputs[0], rows.of_channels[:1]
            names = [at.define(f"{output}.{name}", shape, like=scale.outputs[0]) for name in ("scale", "bias")]
            flat = [weight.with_attributes(weight_shape=shape) for weight in (scale, shift)]
            own = [weight._replace(outputs=(name,)) for weight, name in zip(flat, names, strict=True)]
            values = attributes(epsilon=rows.epsilon, num_groups=rows.num_groups)
            return [*own, Node("GroupNormalization", (rows.x, *names), node.outputs, values)]
    return None


def _scaled_and_shifted(node: Node, at: Surroundings) -> Iterator[tuple[str, Node, Node]]:
    """Yield x, scale and bias if a node is ``x * scale + bias`` with weights, for each order of operands that fits."""
    for product, shift in both_orders(node, "Add"):
        shift_weight = at.producer(shift, "nn.Weight")
        for x, scale in both_orders(at.producer(product, "Mul")):
            if shift_weight and (scale_weight := at.producer(scale, "nn.Weight")):
                yield x, scale_weight, shift_weight


def _weight_shape(weight: Node, at: Surroundings) -> Shape:
    return at.shapes[weight.outputs[0]]


class _Groups(NamedTuple):
    """A value whose channels are normalised in groups, and the shape of a weight with one number per channel."""

    x: str
    num_groups: int
    epsilon: AttributeValue | None
    of_channels: Shape


def _normed_groups(normed: str, at: Surroundings) -> _Groups | None:
    """Return the groups if ``normed``, (N, C, ...), was normalised with the shape (N, groups, rest), else None."""
    back = at.producer(normed, "nn.Reshape")
    norm = at.producer(back.inputs[0], "InstanceNormalization") if back else None
    rows = at.producer(norm.inputs[0], "nn.Reshape") if norm else None
    if norm is None or rows is None:
        return None
    shape, grouped = at.shapes.get(rows.inputs[0], ()), at.shapes[rows.outputs[0]]
    if len(shape) < 3 or len(grouped) != 3 or shape != at.shapes.get(normed) or shape[0] != grouped[0]:
        return None
    if shape[1] % grouped[1]:
        return None
    return _Groups(rows.inputs[0], grouped[1], norm.attribute("epsilon"), (shape[1], *(1,) * (len(shape) - 2)))


def spell_global_pool(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace a mean or maximum over all axes but the first two by ``GlobalAveragePool`` or ``GlobalMaxPool``.

    ``Flatten`` follows if the axes are dropped.
    """
    op_type = GLOBAL_POOLS.get(node.op_type)
    if op_type is None:
        return None
    x, axes = _reduced_axes(node, at)
    inner = at.producer(x, node.op_type)
    if inner and inner.attribute("keepdims", 1):
        inner_x, more = _reduced_axes(inner, at)
        if more:  # without known axes the inner reduction may be over all axes
            x, axes = inner_x, axes | more
    rank = len(at.shapes.get(x, ()))
    if rank < 4 or axes != set(range(2, rank)) or not at.is_float(x):
        return None
    output = node.outputs[0]
    if node.attribute("keepdims", 1):
        return [Node(op_type, (x,), (output,))]
    pooled = at.define(f"{output}.pooled", (*at.shapes[x][:2], *(1,) * (rank - 2)), like=x)
    return [Node(op_type, (x,), (pooled,)), Node("Flatten", (pooled,), (output,))]


def spell_norm_pool(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace ``GlobalLpPool``, which ONNX Runtime lacks in late opsets, by a norm over all axes but the first two."""
    p = node.attribute("p", 2)
    rank = len(at.shapes.get(node.inputs[0], ())) if node.op_type == "GlobalLpPool" else 0
    if rank < 3 or p not in (1, 2):
        return None
    axes = f"{node.outputs[0]}.axes"
    return [
        Node("Constant", (), (axes,), attributes(value_ints=tuple(range(2, rank)))),
        Node(f"ReduceL{p}", (*node.inputs, axes), node.outputs),
    ]


def spell_row_pool(node: Node, at: Surroundings) -> list[Node] | None:
    """Pool (N, C, L) directly if it is reshaped to an image of height 1 before a global pool."""
    row = at.producer(node.inputs[0], "nn.Reshape") if node.op_type in GLOBAL_POOLS.values() else None
    if row is None or node.outputs[0] not in at.shapes:
        return None
    before, after = at.shapes.get(row.inputs[0], ()), at.shapes[row.outputs[0]]
    if len(before) != 3 or after != (*before[:2], 1, before[2]):
        return None
    pooled = at.define(f"{node.outputs[0]}.pooled", (*before[:2], 1), like=row.inputs[0])
    shape = at.shapes[node.outputs[0]]
    return [
        Node(node.op_type, row.inputs, (pooled,)),
        Node("nn.Reshape", (pooled,), node.outputs, attributes(shape=shape)),
    ]


def _reduced_axes(node: Node, at: Surroundings) -> tuple[str, set[int]]:
    """Return the input of a mean or maximum and the axes reduced; the empty set if they are not known."""
    if len(node.inputs) != 2 or node.inputs[0] not in at.shapes:
        return node.inputs[0] if node.inputs else "", set()
    rank = len(at.shapes[node.inputs[0]])
    return node.inputs[0], {axis % rank for axis in at.integers(node.inputs[1]) or ()}


def _is_bias(x: str, layer: Node, at: Surroundings) -> bool:
    """Return whether ``x`` has one number per output channel; a scalar is no bias, since it was not learned."""
    rows, *others = as_integers(layer.attribute("weight_shape"))
    if at.number(x) is not None:
        return rows == 1 and at.shapes.get(x, ()) != ()
    trailing = (1,) * (len(others) - 1)
    shape = at.shapes.get(x, ()) if at.producer(x, "nn.Weight") and at.is_float(x) else ()
    return prod(shape) == rows and shape[len(shape) - 1 - len(trailing) :] == (rows, *trailing)


def _normed(x: str, at: Surroundings) -> tuple[str, float] | None:
    """Return y and epsilon if ``x`` is y minus its mean, divided by its deviation, along the last axis; else None."""
    quotient = at.producer(x, "Div")
    root = at.producer(quotient.inputs[1], "Sqrt") if quotient else None
    total = at.producer(root.inputs[0], "Add") if root else None
    centred = at.producer(quotient.inputs[0], "Sub") if quotient else None
    if quotient is None or centred is None or not at.same_shape(x, centred.inputs[0]):
        return None
    if not _is_mean(centred.inputs[1], centred.inputs[0], at):
        return None
    for variance, epsilon in both_orders(total):
        number = at.number(epsilon)
        if number is not None and _is_mean_square(variance, quotient.inputs[0], at):
            return centred.inputs[0], number
    return None


def _is_mean(y: str, x: str, at: Surroundings) -> bool:
    """Return whether ``y`` is the mean of ``x`` along its last axis, with the axis kept."""
    mean = at.producer(y, "ReduceMean")
    if mean is None or len(mean.inputs) != 2 or not mean.attribute("keepdims", 1):
        return False
    return mean.inputs[0] == x and x in at.shapes and at.integers(mean.inputs[1]) in ((-1,), (len(at.shapes[x]) - 1,))


def _is_mean_square(y: str, x: str, at: Surroundings) -> bool:
    mean = at.producer(y, "ReduceMean")
    square = at.producer(mean.inputs[0], "Pow", "Mul") if mean else None
    if mean is None or square is None or square.inputs[0] != x:
        return False
    squares = square.inputs[1] == x if square.op_type == "Mul" else at.number(square.inputs[1]) == 2.0
    return squares and _is_mean(y, mean.inputs[0], at)
