"""Graphs of GENNAPE's Inception networks: stem, four stages of blocks with parallel paths, last convolution."""

from __future__ import annotations

from converters.builder import GraphBuilder
from converters.gennape import average_pool_bn, conv_bn_relu6, max_pool_bn
from converters.graph import Graph
from spaces.inception import Inception, InceptionNetwork
from spaces.inception_blocks import STAGE_CHANNELS, BlockPath, Step, stage_stride

LAST_CHANNELS = 512


def build(space: Inception, architecture: InceptionNetwork) -> Graph:
    """The network of four stages, faithful to the reference: convolutions have biases before their batch norms.

    Source: Mills et al., AAAI 2023; Ascend-Research/GENNAPE, model_src/search_space/inception.
    """
    g = GraphBuilder(space.input_shape)
    x = conv_bn_relu6(g, g.input, STAGE_CHANNELS[0], kernel=3, bias=True)
    for number, stage in enumerate(architecture.stages):
        for block in range(stage.num_blocks):
            stride = 1 if block else stage_stride(number)
            x = _block(g, x, stage.paths, STAGE_CHANNELS[number], stride=stride)
    x = conv_bn_relu6(g, x, LAST_CHANNELS, kernel=3, bias=True)
    return g.build(g.linear(g.flatten(g.global_average_pool(x)), space.num_classes))


def _block(g: GraphBuilder, x: str, paths: tuple[BlockPath, ...], channels: int, *, stride: int) -> str:
    outputs = [_path(g, x, path, stride=stride) for path in paths]
    y = g.concat(*outputs) if len(outputs) > 1 else outputs[0]
    if g.channels(y) != channels:
        y = g.conv_bn(y, channels, kernel=1, bias=True)
    return g.add(y, x) if g.shapes[x] == g.shapes[y] else y


def _path(g: GraphBuilder, x: str, path: BlockPath, *, stride: int) -> str:
    for step in path.steps(g.channels(x), stride):
        x = _operation(g, x, step)
    return x


def _operation(g: GraphBuilder, x: str, step: Step) -> str:
    operation, channels, stride = step
    kernel = int(operation[-1])
    match operation[:-3]:
        case "conv":
            return conv_bn_relu6(g, x, channels, kernel=kernel, stride=stride, bias=True)
        case "double":
            x = conv_bn_relu6(g, x, channels, kernel=kernel, bias=True)
            return conv_bn_relu6(g, x, channels, kernel=kernel, stride=stride, bias=True)
        case "depthwise":
            x = g.conv(x, channels, kernel=1) if g.channels(x) != channels else x
            return g.relu6(g.conv_bn(x, channels, kernel=kernel, stride=stride, groups=channels, bias=True))
        case "inception_s":
            x = conv_bn_relu6(g, x, channels, kernel=(1, kernel), stride=(1, stride), bias=True)
            return conv_bn_relu6(g, x, channels, kernel=(kernel, 1), stride=(stride, 1), bias=True)
        case "inception_p":
            return _parallel_inception(g, x, channels, kernel=kernel, stride=stride)
        case "avgpool":
            return average_pool_bn(g, x)
        case "maxpool":
            return max_pool_bn(g, x)
    raise AssertionError(f"unknown operation {operation}: Inception validates paths")


def _parallel_inception(g: GraphBuilder, x: str, channels: int, *, kernel: int, stride: int) -> str:
    """Concatenate the results of a row and a column convolution, with half of the channels each.

    If the stride is more than 1, another convolution reduces the other axis.
    """
    half, rest = channels // 2, channels - channels // 2
    rows = g.conv_bn(x, half, kernel=(1, kernel), stride=(1, stride), bias=True)
    columns = g.conv_bn(x, rest, kernel=(kernel, 1), stride=(stride, 1), bias=True)
    if stride > 1:
        rows = g.conv_bn(rows, half, kernel=(kernel, 1), stride=(stride, 1), bias=True)
        columns = g.conv_bn(columns, rest, kernel=(1, kernel), stride=(1, stride), bias=True)
    return g.relu6(g.concat(g.relu6(rows), g.relu6(columns)))
