"""Graphs of HiAML: stem and four stages of two blocks, each of one of 14 kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from converters.builder import GraphBuilder
from converters.gennape import conv_bn_relu6
from converters.graph import Graph
from spaces.hiaml import HiAML, Stages

BLOCKS_PER_STAGE = 2
STEM_CHANNELS = 64
STAGE_CHANNELS = (64, 128, 128, 256)
STAGE_STRIDES = (1, 2, 1, 2)


def build(space: HiAML, architecture: Stages) -> Graph:
    """The network of four stages, faithful to the reference.

    Source: Mills et al., AAAI 2023; Ascend-Research/GENNAPE, model_src/search_space/hiaml_two_path.
    """
    g = GraphBuilder(space.input_shape)
    x = g.relu(g.conv_bn(g.input, STEM_CHANNELS, kernel=3, stride=2))
    for name, channels, stride in zip(architecture.blocks, STAGE_CHANNELS, STAGE_STRIDES, strict=True):
        for copy in range(BLOCKS_PER_STAGE):
            x = g.relu(BLOCKS[name](_Layers(g, channels), x, 1 if copy else stride))
    return g.build(g.linear(g.flatten(g.global_average_pool(x)), space.num_classes))


@dataclass(frozen=True)
class _Layers:
    """The layers of a block; without ``channels``, each has as many output channels as the block."""

    g: GraphBuilder
    channels: int

    def cb(self, x: str, kernel: int, stride: int = 1) -> str:
        return self.g.conv_bn(x, self.channels, kernel=kernel, stride=stride)

    def cbr(self, x: str, kernel: int, stride: int = 1, channels: int | None = None) -> str:
        return conv_bn_relu6(self.g, x, channels or self.channels, kernel=kernel, stride=stride)

    def inc(self, x: str, stride: int = 1) -> str:
        """Convolution along a row, then along a column; the first has the strides of both."""
        rows = conv_bn_relu6(self.g, x, self.channels, kernel=(1, 3), stride=stride)
        return conv_bn_relu6(self.g, rows, self.channels, kernel=(3, 1))

    def project(self, x: str, stride: int) -> str:
        """Return the input in the shape of the output, by a convolution only if the shapes differ."""
        return x if stride == 1 and self.g.channels(x) == self.channels else self.cb(x, 1, stride)


def _z(n: _Layers, x: str, stride: int) -> str:
    a = n.cbr(x, 3, stride)
    return n.g.add(a, n.inc(a))


def _a22(n: _Layers, x: str, stride: int) -> str:
    a = n.cbr(x, 3, stride)
    return n.g.add(a, n.cb(n.cbr(a, 1), 1))


def _l20(n: _Layers, x: str, stride: int) -> str:
    return n.cb(n.cbr(x, 3, stride), 1)


def _j30(n: _Layers, x: str, stride: int) -> str:
    return n.g.add(n.project(x, stride), n.inc(n.cbr(x, 3, stride)))


def _b23(n: _Layers, x: str, stride: int) -> str:
    return n.g.add(n.project(x, stride), n.inc(n.inc(x, stride)))


def _t20(n: _Layers, x: str, stride: int) -> str:
    return n.g.add(n.cb(x, 1, stride), n.inc(x, stride))


def _g30(n: _Layers, x: str, stride: int) -> str:
    a = n.inc(x, stride)
    b = n.inc(n.g.add(n.project(x, stride), a))
    return n.g.add(a, n.cb(b, 1))


def _r30(n: _Layers, x: str, stride: int) -> str:
    a = n.inc(x, stride)
    b = n.cb(n.g.add(n.project(x, stride), a), 1)
    return n.g.add(n.project(x, stride), b, n.inc(a))


def _t31(n: _Layers, x: str, stride: int) -> str:
    b = n.cbr(n.inc(x, stride), 1)
    c = n.inc(n.g.add(n.project(x, stride), b))
    return n.g.add(n.project(x, stride), b, c)


def _src0(n: _Layers, x: str, stride: int) -> str:
    a = n.cbr(x, 1, stride)
    return n.g.add(a, n.cb(n.cbr(a, 3), 3))


def _src1(n: _Layers, x: str, stride: int) -> str:
    a = n.cbr(x, 3, channels=n.g.channels(x))
    return n.g.add(n.cbr(x, 1, stride), n.cb(a, 3, stride))


def _src3(n: _Layers, x: str, stride: int) -> str:
    a = n.cbr(x, 1, channels=n.g.channels(x))
    return n.g.add(n.cb(x, 1, stride), n.cb(n.cbr(a, 3, stride), 1))


def _src7(n: _Layers, x: str, stride: int) -> str:
    a = n.cb(x, 1, stride)
    return n.g.add(a, n.inc(n.inc(a)))


def _src8(n: _Layers, x: str, stride: int) -> str:
    a = n.cb(x, 1, stride)
    return n.g.add(a, n.cb(n.inc(a), 1))


BLOCKS: dict[str, Callable[[_Layers, str, int], str]] = {
    "hiaml_z": _z,
    "hiaml_a22": _a22,
    "hiaml_l20": _l20,
    "hiaml_j30": _j30,
    "hiaml_b23": _b23,
    "hiaml_t20": _t20,
    "hiaml_g30": _g30,
    "hiaml_r30": _r30,
    "hiaml_t31": _t31,
    "hiaml_src0": _src0,
    "hiaml_src1": _src1,
    "hiaml_src3": _src3,
    "hiaml_src7": _src7,
    "hiaml_src8": _src8,
}
