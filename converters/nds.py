"""Graphs of networks of stacked cells for CIFAR-10: the NDS family, and DARTS as in NAS-Bench-301."""

from __future__ import annotations

from converters.builder import GraphBuilder
from converters.graph import Graph
from spaces.cells import NUM_INPUTS, Cell, CellNetwork
from spaces.space import SearchSpace

INPUT_SHAPE = (1, 3, 32, 32)
NUM_CLASSES = 10
STEM_MULTIPLIER = 3


def build(space: SearchSpace[CellNetwork], architecture: CellNetwork) -> Graph:
    """The network without its auxiliary head, which is not executed at inference; unused preprocessing is included.

    Source: pycls, models/nas (Radosavovic et al., ICCV 2019); quark0/darts, cnn/model.py.
    """
    g = GraphBuilder(INPUT_SHAPE)
    stem = g.conv_bn(g.input, STEM_MULTIPLIER * architecture.width, kernel=3)
    inputs = [stem, stem]
    for index in range(architecture.depth):
        reduction = architecture.is_reduction(index)
        cell = architecture.reduce if reduction else architecture.normal
        output = _cell(g, cell, inputs, channels=architecture.channels(index), reduction=reduction)
        inputs = [inputs[1], output]
    return g.build(g.linear(g.flatten(g.global_average_pool(inputs[1])), NUM_CLASSES))


def _cell(g: GraphBuilder, cell: Cell, inputs: list[str], *, channels: int, reduction: bool) -> str:
    older, newer = inputs
    if g.shapes[older][2:] == g.shapes[newer][2:]:
        states = [g.relu_conv_bn(older, channels, kernel=1)]
    else:
        states = [_factorized_reduce(g, older, channels)]
    states.append(g.relu_conv_bn(newer, channels, kernel=1))
    for node in cell.nodes:
        operands = [
            _operation(g, operation, states[source], stride=2 if reduction and source < NUM_INPUTS else 1)
            for operation, source in node
        ]
        states.append(g.add(*operands))
    parts = [states[state] for state in cell.concat]
    return g.concat(*parts) if len(parts) > 1 else parts[0]


def _operation(g: GraphBuilder, operation: str, x: str, *, stride: int) -> str:
    if operation == "none":
        return g.zero(g.max_pool(x, kernel=1, stride=stride) if stride > 1 else x)  # a window of 1 only picks pixels
    if operation == "skip_connect":
        return _factorized_reduce(g, x, g.channels(x)) if stride > 1 else x
    kind, _, size = operation.rpartition("_")
    kernel = int(size[-1])
    match kind:
        case "avg_pool":
            return g.average_pool(x, kernel=kernel, stride=stride, padding=kernel // 2)
        case "max_pool":
            return g.max_pool(x, kernel=kernel, stride=stride, padding=kernel // 2)
        case "conv":
            return g.relu_conv_bn(x, g.channels(x), kernel=kernel, stride=stride)
        case "conv_3x1" | "conv_7x1":
            return _flat_convs(g, x, kernel=kernel, stride=stride)
        case "dil_conv":
            return _separable(g, x, kernel=kernel, stride=stride, dilation=2)
        case "sep_conv":
            return _separable(g, _separable(g, x, kernel=kernel, stride=stride), kernel=kernel)
        case "dil_sep_conv":
            x = _separable(g, x, kernel=kernel, stride=stride, dilation=2)
            return _separable(g, x, kernel=kernel, dilation=2)
    raise AssertionError(f"unknown operation {operation}: the spaces validate cells")


def _flat_convs(g: GraphBuilder, x: str, *, kernel: int, stride: int) -> str:
    """Convolution along a row, then along a column, then one batch norm."""
    channels = g.channels(x)
    x = g.conv(g.relu(x), channels, kernel=(1, kernel), stride=(1, stride))
    return g.conv_bn(x, channels, kernel=(kernel, 1), stride=(stride, 1))


def _separable(g: GraphBuilder, x: str, *, kernel: int, stride: int = 1, dilation: int = 1) -> str:
    """Separable convolution: depthwise, then pointwise."""
    channels, padding = g.channels(x), dilation * (kernel // 2)
    x = g.conv(g.relu(x), channels, kernel=kernel, stride=stride, padding=padding, dilation=dilation, groups=channels)
    return g.conv_bn(x, channels, kernel=1)


def _factorized_reduce(g: GraphBuilder, x: str, channels: int) -> str:
    """Halve height and width by two 1x1 convolutions with stride 2, on the image and on it shifted by one pixel.

    Each gives half of the channels.
    """
    x = g.relu(x)
    _, _, height, width = g.shapes[x]
    shifted = g.slice(x, axes=(2, 3), starts=(1, 1), ends=(height, width))
    halves = [g.conv(half, channels // 2, kernel=1, stride=2) for half in (x, shifted)]
    return g.batch_norm(g.concat(*halves))
