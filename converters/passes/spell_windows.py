"""Spellings (rewrite rules, see ``rewriting``) of convolutions, pools and padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from converters.graph import AttributeValue, Node, Shape, attributes
from converters.passes.rewriting import Surroundings, as_integers
from converters.passes.spell_views import cut
from converters.windows import both_sides

WINDOWS = frozenset({"AveragePool", "MaxPool", "nn.Conv", "nn.ConvBias"})


def spell_padding(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace ``auto_pad`` by explicit padding; drop ``ceil_mode`` and ``count_include_pad`` if without effect."""
    window = _window(node, at)
    if window is None:
        return None
    given: dict[str, AttributeValue | None] = {"auto_pad": None, "pads": window.pads}
    spans = [n + low + high - reach for n, low, high, reach in window.axes()]
    if window.after == tuple([span // stride + 1 for span, stride in zip(spans, window.strides, strict=True)]):
        given["ceil_mode"] = None
    if not any(window.pads):
        given["count_include_pad"] = None
    return [node.with_attributes(**given)]


def absorb_padding(node: Node, at: Surroundings) -> list[Node] | None:
    """Absorb a ``Pad`` with zeros into the padding of the convolution or average pool that reads it."""
    window = _window(node, at)
    around = _zeros_around(node.inputs[0], at) if window else None
    if window is None or around is None:
        return None
    x, pads = around
    total = tuple([own + more for own, more in zip(window.pads, pads, strict=True)])
    if node.op_type.startswith("nn.Conv"):
        return [node.with_attributes(pads=total)._replace(inputs=(x,))]
    fits = all(max(low, high) < reach for _, low, high, reach in window._replace(pads=total).axes())
    if node.op_type == "AveragePool" and not any(window.pads) and not node.attribute("ceil_mode") and fits:
        return [node.with_attributes(pads=total, count_include_pad=1)._replace(inputs=(x,))]
    return None


def spell_wrap(node: Node, at: Surroundings) -> list[Node] | None:
    """Write circular padding as slices concatenated before and behind the value, axis by axis.

    One of torch's two exporters writes it so, the other as ``Pad`` with mode ``wrap``.
    """
    sides = _sides(node, at) if node.op_type == "Pad" and node.attribute("mode") == "wrap" else None
    if sides is None:
        return None
    x, shape = node.inputs[0], at.shapes[node.inputs[0]]
    nodes: list[Node] = []
    if any(not 0 <= count <= size for pair, size in zip(sides, shape, strict=True) for count in pair):
        return None
    for axis, (size, (low, high)) in enumerate(zip(shape, sides, strict=True)):
        if not low and not high:
            continue
        parts = [x]
        for place, start, end in (("before", size - low, size), ("behind", 0, high)):
            if start < end:
                part = at.define(f"{node.outputs[0]}.{axis}.{place}", _resized(x, axis, end - start, at), like=x)
                nodes.append(cut(x, [(axis, start, end)], part, at))
                parts.insert(0 if place == "before" else len(parts), part)
        x = at.define(f"{node.outputs[0]}.{axis}", _resized(x, axis, low + size + high, at), like=x)
        nodes.append(Node("Concat", tuple(parts), (x,), attributes(axis=axis)))
    return [*nodes[:-1], nodes[-1]._replace(outputs=node.outputs)] if nodes else [Node("Identity", (x,), node.outputs)]


def _resized(x: str, axis: int, size: int, at: Surroundings) -> Shape:
    """Return the shape of ``x`` with another size of one axis."""
    return (*at.shapes[x][:axis], size, *at.shapes[x][axis + 1 :])


def spell_pool(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace a pool whose window is the whole image by ``Global...Pool``, and a 1x1 pool by Identity."""
    if node.op_type == "MaxPool" and (len(node.outputs) > 1 or not at.is_float(node.inputs[0])):
        return None  # GlobalMaxPool gives no indices and takes no integers
    op_type = {"AveragePool": "GlobalAveragePool", "MaxPool": "GlobalMaxPool"}.get(node.op_type)
    window = _window(node, at) if op_type else None
    if window is None or any(window.pads):
        return None
    if set(window.kernel) == {1} and window.before == window.after:
        return [Node("Identity", node.inputs, node.outputs)]
    if window.kernel != window.before or set(window.dilations) != {1}:
        return None
    return [Node(str(op_type), node.inputs, node.outputs)]


class _Window(NamedTuple):
    """The windows of a convolution or pool along its spatial axes, with the sizes before and after it."""

    kernel: Shape
    strides: Shape
    dilations: Shape
    pads: Shape  # at the start of every axis, then at the end
    before: Shape
    after: Shape

    def axes(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield input size, padding at start and end, and extent of the dilated kernel for every axis."""
        count = len(self.kernel)
        reach = [dilation * (k - 1) + 1 for dilation, k in zip(self.dilations, self.kernel, strict=True)]
        return zip(self.before, self.pads[:count], self.pads[count:], reach, strict=True)


def _window(node: Node, at: Surroundings) -> _Window | None:
    if node.op_type not in WINDOWS or node.inputs[0] not in at.shapes or node.outputs[0] not in at.shapes:
        return None
    before, after = at.shapes[node.inputs[0]][2:], at.shapes[node.outputs[0]][2:]
    ones = (1,) * len(before)
    kernel = as_integers(node.attribute("weight_shape"))[2:] or as_integers(node.attribute("kernel_shape")) or ones
    strides = as_integers(node.attribute("strides")) or ones
    dilations = as_integers(node.attribute("dilations")) or ones
    pads = as_integers(node.attribute("pads")) or (0, 0) * len(before)
    window = _Window(kernel, strides, dilations, pads, before, after)
    if node.attribute("auto_pad") in ("SAME_UPPER", "SAME_LOWER"):
        missing = [  # none where strides skip pixels, unlike in ONNX Runtime, see docs/limits.md
            max((windows - 1) * stride + reach - n, 0)
            for windows, stride, (n, _, _, reach) in zip(after, strides, window.axes(), strict=True)
        ]
        return window._replace(pads=both_sides(missing, more_behind=node.attribute("auto_pad") == "SAME_UPPER"))
    return window


def _zeros_around(x: str, at: Surroundings) -> tuple[str, Shape] | None:
    """Return y and pads, as in attribute ``pads``, if ``x`` is y with zeros around its spatial axes; else None."""
    pad = at.producer(x, "Pad")
    if pad is None or pad.attribute("mode", "constant") != "constant":
        return None
    sides = _sides(pad, at)
    if sides is None or (len(pad.inputs) > 2 and pad.inputs[2] and at.number(pad.inputs[2]) != 0):
        return None
    if min(map(min, sides)) < 0 or any(map(any, sides[:2])):
        return None
    low, high = zip(*sides[2:], strict=True)
    return pad.inputs[0], (*low, *high)


def _sides(pad: Node, at: Surroundings) -> list[tuple[int, int]] | None:
    """Return the padding before and behind every axis; None if it is not constant."""
    counts, shape = at.integers(pad.inputs[1]), at.shapes.get(pad.inputs[0], ())
    axes = at.integers(pad.inputs[3]) if len(pad.inputs) > 3 else tuple(range(len(shape)))
    if not shape or counts is None or axes is None or len(counts) != 2 * len(axes):
        return None
    pairs = zip(counts, counts[len(axes) :], strict=False)
    by_axis = dict(zip([axis % len(shape) for axis in axes], pairs, strict=True))
    return [by_axis.get(axis, (0, 0)) for axis in range(len(shape))]
