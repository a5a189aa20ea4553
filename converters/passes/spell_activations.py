"""Spellings of activations (rewrite rules, see ``rewriting``): patterns of older opsets become a single operator."""

from __future__ import annotations

from math import inf, isclose, isinf, isnan, pi, sqrt
from typing import NamedTuple

from converters.graph import Node, attributes
from converters.passes.rewriting import Surroundings, as_integers, both_orders

TOLERANCE = 1e-5  # relative, for factors that were rounded to 32 bits and six digits
LOWEST = -3.4028234663852886e38  # of 32 bits: the lower bound of a ``Clip`` before opset 11 that has only an upper one
ONE_BOUND = ("Max", "Min", "Relu")  # operators that bound a value on one side
LINEAR_SOFTPLUS = 20.0  # above it log(1 + exp(x)) equals x in 32 bits


def spell_clip(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace constant bounds by one operator: ``nn.Clip`` for two, ``Max`` or ``Min`` for one, ``Relu`` for 0 below.

    The minimum of a maximum is an ``nn.Clip`` too, as is the maximum of a minimum.
    """
    bounded = _bounded(node, at)
    if bounded is None:
        return None
    made = at.producer(bounded.x, *ONE_BOUND)
    inner = _bounded(made, at) if made else None
    if inner and inner.is_one_sided and bounded.is_one_sided:
        both = _Bounded(inner.x, max(bounded.low, inner.low), min(bounded.high, inner.high))
        if -inf < both.low < both.high < inf:
            return [_clip(*both, node.outputs[0])]
    return _with_bounds(bounded, node.outputs[0]) if node.op_type == "Clip" else None


def spell_hard_sigmoid(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace ``relu6(x + 3) / 6``, and ``alpha * x + 0.5`` clipped to 0..1, by ``HardSigmoid``."""
    if node.op_type == "nn.Scale" and _is_number(node.attribute("factor"), 1 / 6):
        if x := _relu6_of_shifted(node.inputs[0], at):
            return [_hard_sigmoid(x, 1 / 6, node.outputs[0])]
    elif node.op_type == "nn.Clip" and (node.attribute("min"), node.attribute("max")) == (0.0, 1.0):
        shifted = _plus(node.inputs[0], 0.5, at)
        scaled = at.producer(shifted, "nn.Scale") if shifted else None
        if scaled and isinstance(factor := scaled.attribute("factor"), float):
            return [_hard_sigmoid(scaled.inputs[0], factor, node.outputs[0])]
    return None


def spell_activation(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace the parts of ``nn.Silu``, ``HardSwish`` and ``Gelu`` by these; ``Swish`` with alpha 1 is ``nn.Silu``.

    ONNX Runtime lacks ``Swish``.
    """
    if node.op_type == "Swish" and _is_number(node.attribute("alpha", 1.0), 1.0):
        return [Node("nn.Silu", node.inputs, node.outputs)]
    for x, gate in both_orders(node, "Mul"):
        if (made := at.producer(gate, "Sigmoid", "HardSigmoid")) and made.inputs[0] == x:
            if made.op_type == "Sigmoid":
                return [Node("nn.Silu", (x,), node.outputs)]
            if _is_number(made.attribute("alpha"), 1 / 6) and _is_number(made.attribute("beta", 0.5), 0.5):
                return [Node("HardSwish", (x,), node.outputs)]
    product = at.producer(node.inputs[0], "Mul") if node.op_type == "nn.Scale" else None
    for x, gate in both_orders(product):
        if _is_number(node.attribute("factor"), 1 / 6) and _relu6_of_shifted(gate, at) == x:
            return [Node("HardSwish", (x,), node.outputs)]
        if _is_number(node.attribute("factor"), 0.5) and (shifted := _plus(gate, 1.0, at)):
            if _is_erf_of(shifted, x, at):
                return [Node("Gelu", (x,), node.outputs)]
            if _is_tanh_of(shifted, x, at):
                return [Node("Gelu", (x,), node.outputs, attributes(approximate="tanh"))]
    return None


def spell_softplus(node: Node, at: Surroundings) -> list[Node] | None:
    """Remove the ``Where`` by which torch's newer exporter replaces ``Softplus`` by its input where that is large."""
    if node.op_type != "Where" or not at.is_float(node.outputs[0]):
        return None
    above, soft = at.producer(node.inputs[0], "Greater"), at.producer(node.inputs[2], "Softplus")
    x = node.inputs[1]
    if not above or not soft or soft.inputs[0] != x or above.inputs[0] != x or not at.same_shape(x, node.outputs[0]):
        return None
    threshold = at.number(above.inputs[1])
    return [soft._replace(outputs=node.outputs)] if threshold is not None and threshold >= LINEAR_SOFTPLUS else None


def spell_slope(node: Node, at: Surroundings) -> list[Node] | None:
    """Remove leading axes of size 1 from the slopes of ``PRelu``."""
    slope = at.producer(node.inputs[1], "nn.Weight") if node.op_type == "PRelu" else None
    shape = as_integers(slope.attribute("weight_shape")) if slope else ()
    if slope is None or len(shape) < 2 or shape[0] != 1:
        return None
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    name = at.define(f"{node.outputs[0]}.slope", shape, like=node.inputs[1])
    viewed = slope.with_attributes(weight_shape=shape)
    return [viewed._replace(outputs=(name,)), node._replace(inputs=(node.inputs[0], name))]


def spell_composite(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace ``Mish`` and ``Swish``, which only late opsets have, by the operators that they consist of."""
    if node.op_type not in ("Mish", "Swish") or not at.is_float(node.inputs[0]):
        return None
    (x,), output, shape = node.inputs, node.outputs[0], at.shapes[node.inputs[0]]
    inner, gate = at.define(f"{output}.inner", shape, like=x), at.define(f"{output}.gate", shape, like=x)
    if node.op_type == "Mish":
        made = [Node("Softplus", (x,), (inner,)), Node("Tanh", (inner,), (gate,))]
    else:
        scaled = Node("nn.Scale", (x,), (inner,), attributes(factor=node.attribute("alpha")))
        made = [scaled, Node("Sigmoid", (inner,), (gate,))]
    return [*made, Node("Mul", (x, gate), node.outputs)]


class _Bounded(NamedTuple):
    """A value between two numbers, which are infinite where there is no bound."""

    x: str
    low: float
    high: float

    @property
    def is_one_sided(self) -> bool:
        return isinf(self.low) != isinf(self.high)


def _bounded(node: Node, at: Surroundings) -> _Bounded | None:
    """Return what a node bounds by constant numbers, or None if it does something else."""
    if node.op_type == "Relu":
        return _Bounded(node.inputs[0], 0.0, inf)
    if node.op_type in ONE_BOUND:
        return next(filter(None, (_with_bound(node, x, other, at) for x, other in both_orders(node))), None)
    if node.op_type != "Clip" or not at.is_float(node.inputs[0]):
        return None
    bounds = (*node.inputs[1:], "", "")[:2]
    low, high = (at.number(x) if x else edge for x, edge in zip(bounds, (-inf, inf), strict=True))
    if low is None or high is None or isnan(low) or isnan(high):
        return None
    has_upper_alone = low == LOWEST and high < -LOWEST  # with both, it guards against infinity
    return _Bounded(node.inputs[0], -inf if has_upper_alone else low, high)


def _with_bound(node: Node, x: str, other: str, at: Surroundings) -> _Bounded | None:
    number = at.number(other)
    if number is None or not at.is_float(x) or not at.same_shape(x, node.outputs[0]):
        return None
    return _Bounded(x, number, inf) if node.op_type == "Max" else _Bounded(x, -inf, number)


def _with_bounds(bounded: _Bounded, output: str) -> list[Node]:
    x, low, high = bounded
    if low > -inf and high < inf:
        return [_clip(x, low, high, output)]
    if (low, high) in ((0, inf), (-inf, inf)):
        return [Node("Relu" if low == 0 else "Identity", (x,), (output,))]
    op_type, number = ("Max", low) if high == inf else ("Min", high)
    bound = f"{output}.bound"
    return [Node("Constant", (), (bound,), attributes(value_float=number)), Node(op_type, (x, bound), (output,))]


def _clip(x: str, low: float, high: float, output: str) -> Node:
    return Node("nn.Clip", (x,), (output,), attributes(max=high, min=low))


def _hard_sigmoid(x: str, alpha: float, output: str) -> Node:
    return Node("HardSigmoid", (x,), (output,), attributes(alpha=1 / 6 if _is_number(alpha, 1 / 6) else alpha))


def _relu6_of_shifted(x: str, at: Surroundings) -> str | None:
    """Return the value y for which ``x`` is relu6(y + 3), if there is one."""
    clip = at.producer(x, "nn.Clip")
    if clip is None or (clip.attribute("min"), clip.attribute("max")) != (0.0, 6.0):
        return None
    return _plus(clip.inputs[0], 3.0, at)


def _plus(x: str, number: float, at: Surroundings) -> str | None:
    """Return the value y for which ``x`` is y + ``number``, if there is one."""
    terms = both_orders(at.producer(x, "Add"))
    return next((term for term, other in terms if at.number(other) == number and at.same_shape(term, x)), None)


def _is_erf_of(y: str, x: str, at: Surroundings) -> bool:
    erf = at.producer(y, "Erf")
    scaled = at.producer(erf.inputs[0], "nn.Scale") if erf else None
    return scaled is not None and scaled.inputs[0] == x and _is_number(scaled.attribute("factor"), sqrt(0.5))


def _is_tanh_of(y: str, x: str, at: Surroundings) -> bool:
    """Return whether ``y`` is tanh((2 / pi) ** 0.5 * (x + 0.044715 * x ** 3))."""
    tanh = at.producer(y, "Tanh")
    scaled = at.producer(tanh.inputs[0], "nn.Scale") if tanh else None
    if scaled is None or not _is_number(scaled.attribute("factor"), sqrt(2 / pi)):
        return False
    for term, other in both_orders(at.producer(scaled.inputs[0], "Add", "Sum")):
        cubic = at.producer(other, "nn.Scale")
        if term == x and cubic and _is_number(cubic.attribute("factor"), 0.044715):
            return _is_cube_of(cubic.inputs[0], x, at)
    return False


def _is_cube_of(y: str, x: str, at: Surroundings) -> bool:
    power, product = at.producer(y, "Pow"), at.producer(y, "Mul")
    if power:
        return power.inputs[0] == x and at.number(power.inputs[1]) == 3.0 and at.same_shape(x, y)
    squares = [at.producer(z, "Mul") for z in product.inputs] if product else []
    return product is not None and x in product.inputs and any(z and z.inputs == (x, x) for z in squares)


def _is_number(value: object, number: float) -> bool:
    return isinstance(value, float) and isclose(value, number, rel_tol=TOLERANCE)
