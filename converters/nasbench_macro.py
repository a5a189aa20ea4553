"""Graphs of NAS-Bench-Macro: stem, eight layers in three stages, header."""

from __future__ import annotations

from converters.builder import GraphBuilder
from converters.graph import Graph
from converters.mobile import mbconv
from spaces.nasbench_macro import Layers, NASBenchMacro

STEM_CHANNELS = 32
STAGE_CHANNELS = (64, 128, 256)
HEADER_CHANNELS = 1280


def build(space: NASBenchMacro, architecture: Layers) -> Graph:
    """The network of eight layers, faithful to the reference.

    Source: Su et al., CVPR 2021; xiusu/NAS-Bench-Macro, train/model.py.
    """
    g = GraphBuilder(space.input_shape)
    x = g.relu(g.conv_bn(g.input, STEM_CHANNELS, kernel=3))
    for channels, operations in zip(STAGE_CHANNELS, architecture.stages(), strict=True):
        for layer, operation in enumerate(operations):
            x = _layer(g, x, operation, channels, stride=1 if layer else 2)
    x = g.relu(g.conv_bn(x, HEADER_CHANNELS, kernel=1))
    return g.build(g.linear(g.flatten(g.global_average_pool(x)), space.num_classes))


def _layer(g: GraphBuilder, x: str, operation: str, channels: int, *, stride: int) -> str:
    match operation:
        case "id":
            return x if stride == 1 else g.conv_bn(x, channels, kernel=1, stride=stride)
        case "ir_3x3_t3":
            return mbconv(g, x, channels, mid_channels=3 * g.channels(x), kernel=3, stride=stride)
        case "ir_5x5_t6":
            return mbconv(g, x, channels, mid_channels=6 * g.channels(x), kernel=5, stride=stride)
    raise AssertionError(f"unknown operation {operation}: Layers validates them")
