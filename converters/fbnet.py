"""Graphs of FBNet: stem, 22 layers in seven stages, header."""

from __future__ import annotations

from typing import NamedTuple

from converters.builder import GraphBuilder
from converters.graph import Graph
from converters.mobile import mbconv
from spaces.fbnet import FBNet, Layers, block_settings

STEM_CHANNELS = 16
STAGE_CHANNELS = (16, 24, 32, 64, 112, 184, 352)


class Setting(NamedTuple):
    """Sizes that depend on the data set."""

    resolution: int
    stem_stride: int
    stage_strides: tuple[int, ...]
    header_channels: int
    num_classes: int


SETTINGS = {
    "cifar100": Setting(32, 1, (1, 1, 2, 2, 1, 2, 1), 1504, 100),
    "ImageNet": Setting(224, 2, (1, 2, 2, 2, 1, 2, 1), 1984, 1000),
}


def build(space: FBNet, architecture: Layers) -> Graph:
    """The network of 22 layers, faithful to the reference.

    Source: Li et al., ICLR 2021; GATECH-EIC/HW-NAS-Bench, hw_nas_bench_api/fbnet_models/model_infer.py.
    """
    setting = SETTINGS[architecture.dataset]
    g = GraphBuilder((1, 3, setting.resolution, setting.resolution))
    x = g.relu(g.conv_bn(g.input, STEM_CHANNELS, kernel=3, stride=setting.stem_stride))
    stages = zip(architecture.stages(), STAGE_CHANNELS, setting.stage_strides, strict=True)
    for operations, channels, first_stride in stages:
        for layer, operation in enumerate(operations):
            x = _layer(g, x, operation, channels, stride=1 if layer else first_stride)
    x = g.relu(g.conv_bn(x, setting.header_channels, kernel=1))
    return g.build(g.linear(g.flatten(g.global_average_pool(x)), setting.num_classes))


def _layer(g: GraphBuilder, x: str, operation: str, channels: int, *, stride: int) -> str:
    in_channels = g.channels(x)
    if operation == "skip":
        keeps_shape = stride == 1 and in_channels == channels
        return x if keeps_shape else g.relu(g.conv_bn(x, channels, kernel=1, stride=stride))
    kernel, expansion, groups = block_settings(operation)
    return mbconv(g, x, channels, mid_channels=in_channels * expansion, kernel=kernel, stride=stride, groups=groups)
