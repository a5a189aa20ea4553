"""Graphs of Two-Path: stem, two parallel sequences of blocks, their concatenation."""

from __future__ import annotations

from converters.builder import GraphBuilder
from converters.gennape import average_pool_bn, conv_bn_relu6, max_pool_bn
from converters.graph import Graph
from spaces.two_path import TwoPath, TwoPathNetwork
from spaces.two_path_blocks import STEM_CHANNELS, BlockPath, Layer

LAST_CHANNELS = 512


def build(space: TwoPath, architecture: TwoPathNetwork) -> Graph:
    """The network of two paths, faithful to the reference.

    Source: Mills et al., AAAI 2023; Ascend-Research/GENNAPE, model_src/search_space/hiaml_two_path.
    """
    g = GraphBuilder(space.input_shape)
    x = conv_bn_relu6(g, g.input, STEM_CHANNELS, kernel=3)
    x = conv_bn_relu6(g, x, STEM_CHANNELS, kernel=3, stride=2)
    x = g.concat(*[_path(g, x, path) for path in architecture.paths])
    x = conv_bn_relu6(g, x, LAST_CHANNELS, kernel=3)
    return g.build(g.linear(g.flatten(g.global_average_pool(x)), space.num_classes))


def _path(g: GraphBuilder, x: str, path: BlockPath) -> str:
    for layers, residual in path.layers():
        y = x
        for layer in layers:
            y = _layer(g, y, layer)
        x = g.add(y, x) if residual else y
    return x


def _layer(g: GraphBuilder, x: str, layer: Layer) -> str:
    match layer.kind:
        case "conv":
            return conv_bn_relu6(g, x, layer.channels, kernel=layer.kernel, stride=layer.stride)
        case "avgpool":
            return average_pool_bn(g, x)
        case "maxpool":
            return max_pool_bn(g, x)
    raise AssertionError(f"unknown layer {layer}: TwoPath makes no other")
