"""Graphs of Once-for-all ResNet50: stem, four stages of bottlenecks, classifier."""

from __future__ import annotations

from converters.builder import GraphBuilder
from converters.graph import Graph
from converters.mobile import make_divisible
from spaces.ofa_resnet50 import OFAResNet50, ResNet50

MULTIPLIERS = (0.65, 0.8, 1.0)
STEM_CHANNELS = 64
STAGE_CHANNELS = (256, 512, 1024, 2048)
STRIDES = (1, 2, 2, 2)
NUM_CLASSES = 1000


def build(space: OFAResNet50, architecture: ResNet50) -> Graph:
    """The network of a sub-net, faithful to the reference.

    Source: Cai et al., ICLR 2020; mit-han-lab/once-for-all, ofa_resnets.py and networks/resnets.py.
    """
    g = GraphBuilder((1, 3, architecture.resolution, architecture.resolution))
    x = _stem(g, architecture)
    stages = zip(architecture.stages, STAGE_CHANNELS, STRIDES, architecture.widths[2:], strict=True)
    for blocks, base_channels, first_stride, width in stages:
        channels = _scaled(base_channels, width)
        for position, (expansion,) in enumerate(blocks):
            mid_channels = make_divisible(round(channels * expansion))
            shortcut = x if position else _projection(g, x, channels, stride=first_stride)
            y = _bottleneck(g, x, channels, mid_channels=mid_channels, stride=1 if position else first_stride)
            x = g.relu(g.add(y, shortcut))
    return g.build(g.linear(g.flatten(g.global_average_pool(x)), NUM_CLASSES))


def _stem(g: GraphBuilder, architecture: ResNet50) -> str:
    inside, outside, *_ = architecture.widths
    channels = make_divisible(_scaled(STEM_CHANNELS, inside) // 2)
    x = g.relu(g.conv_bn(g.input, channels, kernel=3, stride=2))
    if architecture.stem_block:
        x = g.add(x, g.relu(g.conv_bn(x, channels, kernel=3)))
    x = g.relu(g.conv_bn(x, _scaled(STEM_CHANNELS, outside), kernel=3))
    return g.max_pool(x, kernel=3, stride=2, padding=1)


def _bottleneck(g: GraphBuilder, x: str, channels: int, *, mid_channels: int, stride: int) -> str:
    y = g.relu(g.conv_bn(x, mid_channels, kernel=1))
    y = g.relu(g.conv_bn(y, mid_channels, kernel=3, stride=stride))
    return g.conv_bn(y, channels, kernel=1)


def _projection(g: GraphBuilder, x: str, channels: int, *, stride: int) -> str:
    """The shortcut of a stage's first block: average pool if the stride is more than 1, then a 1x1 convolution."""
    return g.conv_bn(g.average_pool(x, kernel=stride, stride=stride, ceil_mode=True), channels, kernel=1)


def _scaled(channels: int, width: int) -> int:
    return make_divisible(channels * MULTIPLIERS[width])
