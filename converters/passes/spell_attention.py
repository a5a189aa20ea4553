"""Spellings (rewrite rules, see ``rewriting``) that remove attention masks without effect and guards against NaN."""

from __future__ import annotations

from math import isfinite

from converters.graph import Node
from converters.passes.rewriting import Surroundings, both_orders


def drop_zeros(node: Node, at: Surroundings) -> list[Node] | None:
    """Remove the addition of zeros, such as a mask that hides nothing."""
    for x, other in both_orders(node, "Add") if at.is_float(node.outputs[0]) else ():
        if at.producer(other, "nn.Zeros") and at.is_float(x) and at.same_shape(x, node.outputs[0]):
            return [Node("Identity", (x,), node.outputs)]
    return None


def drop_guard(node: Node, at: Surroundings) -> list[Node] | None:
    """Remove a guard that replaces NaN by 0 after a softmax of finite scores, of which no row can be all ``-inf``."""
    if node.op_type != "Where" or at.number(node.inputs[1]) != 0:
        return None
    guard, softmax = at.producer(node.inputs[0], "IsNaN"), at.producer(node.inputs[2], "Softmax")
    if not guard or not softmax or guard.inputs != softmax.outputs or not _is_finite(softmax.inputs[0], at):
        return None
    return [Node("Identity", softmax.outputs, node.outputs)]


def _is_finite(scores: str, at: Surroundings) -> bool:
    """Return whether scores are products, possibly scaled and plus masks of finite numbers."""
    if scaled := at.producer(scores, "nn.Scale"):
        return _is_finite(scaled.inputs[0], at)
    if masked := at.producer(scores, "Add"):
        return any(_hides_by_finite(mask, at) and _is_finite(x, at) for mask, x in both_orders(masked))
    return at.producer(scores, "MatMul") is not None


def _hides_by_finite(mask: str, at: Surroundings) -> bool:
    chosen = at.producer(mask, "Where")
    numbers = [at.number(x) for x in chosen.inputs[1:]] if chosen else [None]
    return all(number is not None and isfinite(number) for number in numbers)
