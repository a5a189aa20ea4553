"""Graphs of Once-for-all MobileNetV3: stem, a fixed block, five stages of searchable blocks, head."""

from __future__ import annotations

from functools import partial

from converters.builder import GraphBuilder
from converters.graph import Graph
from converters.mobile import Operation, make_divisible, mbconv, squeeze_excite
from spaces.ofa_mobilenetv3 import MobileNetV3, OFAMobileNetV3

STEM_CHANNELS = 16  # also those of the fixed block
STAGE_CHANNELS = (24, 40, 80, 112, 160)
HEAD_CHANNELS, MIXED_CHANNELS = 960, 1280
STRIDES = (2, 2, 2, 1, 2)
ACTIVATIONS = (GraphBuilder.relu, GraphBuilder.relu, *[GraphBuilder.hard_swish] * 3)
ATTENTION = (False, True, False, True, True)
NUM_CLASSES = 1000


def build(space: OFAMobileNetV3, architecture: MobileNetV3) -> Graph:
    """The network of a sub-net, faithful to the reference.

    Source: Cai et al., ICLR 2020; mit-han-lab/once-for-all, ofa_mbv3.py.
    """

    def width(channels: int) -> int:
        return make_divisible(channels * architecture.width)

    g = GraphBuilder((1, 3, architecture.resolution, architecture.resolution))
    x = g.hard_swish(g.conv_bn(g.input, width(STEM_CHANNELS), kernel=3, stride=2))
    x = mbconv(g, x, width(STEM_CHANNELS), mid_channels=width(STEM_CHANNELS), kernel=3, expand=False)
    stages = zip(architecture.stages, STAGE_CHANNELS, STRIDES, ACTIVATIONS, ATTENTION, strict=True)
    for blocks, channels, first_stride, activation, attention in stages:
        for position, (kernel, expansion) in enumerate(blocks):
            mid_channels = make_divisible(g.channels(x) * expansion)
            x = mbconv(
                g,
                x,
                width(channels),
                mid_channels=mid_channels,
                kernel=kernel,
                stride=1 if position else first_stride,
                activation=activation,
                attention=_attention(mid_channels) if attention else None,
            )
    x = g.hard_swish(g.conv_bn(x, width(HEAD_CHANNELS), kernel=1))
    x = g.hard_swish(g.conv(g.global_average_pool(x), width(MIXED_CHANNELS), kernel=1))
    return g.build(g.linear(g.flatten(x), NUM_CLASSES))


def _attention(channels: int) -> Operation:
    return partial(squeeze_excite, squeezed_channels=make_divisible(channels // 4))
