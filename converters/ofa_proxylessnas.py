"""Graphs of Once-for-all ProxylessNAS: stem, a fixed block, six stages of searchable blocks, head."""

from __future__ import annotations

from converters.builder import GraphBuilder
from converters.graph import Graph
from converters.mobile import make_divisible, mbconv
from spaces.ofa_proxylessnas import OFAProxylessNAS, ProxylessNAS

STEM_CHANNELS, FIRST_CHANNELS = 32, 16
STAGE_CHANNELS = (24, 40, 80, 96, 192, 320)
HEAD_CHANNELS = 1280
STRIDES = (2, 2, 2, 1, 2, 1)
NUM_CLASSES = 1000


def build(space: OFAProxylessNAS, architecture: ProxylessNAS) -> Graph:
    """The network of a sub-net, faithful to the reference.

    Source: Cai et al., ICLR 2020; mit-han-lab/once-for-all, ofa_proxyless.py.
    """

    def width(channels: int) -> int:
        return make_divisible(channels * architecture.width)

    g = GraphBuilder((1, 3, architecture.resolution, architecture.resolution))
    x = g.relu6(g.conv_bn(g.input, width(STEM_CHANNELS), kernel=3, stride=2))
    x = mbconv(
        g,
        x,
        width(FIRST_CHANNELS),
        mid_channels=width(STEM_CHANNELS),
        kernel=3,
        activation=GraphBuilder.relu6,
        expand=False,
    )
    for blocks, channels, first_stride in zip(architecture.stages, STAGE_CHANNELS, STRIDES, strict=True):
        for position, (kernel, expansion) in enumerate(blocks):
            x = mbconv(
                g,
                x,
                width(channels),
                mid_channels=make_divisible(g.channels(x) * expansion),
                kernel=kernel,
                stride=1 if position else first_stride,
                activation=GraphBuilder.relu6,
            )
    x = g.relu6(g.conv_bn(x, width(HEAD_CHANNELS), kernel=1))
    return g.build(g.linear(g.flatten(g.global_average_pool(x)), NUM_CLASSES))
