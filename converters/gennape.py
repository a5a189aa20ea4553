"""Layers shared by GENNAPE's spaces.

Source:
    Ascend-Research/GENNAPE ac30e05, model_src/search_space/hiaml_two_path.
"""

from __future__ import annotations

from converters.builder import GraphBuilder
from converters.windows import Pair


def conv_bn_relu6(g: GraphBuilder, x: str, channels: int, *, kernel: Pair, stride: Pair = 1, bias: bool = False) -> str:
    """Convolution, batch norm, ReLU6."""
    return g.relu6(g.conv_bn(x, channels, kernel=kernel, stride=stride, bias=bias))


def average_pool_bn(g: GraphBuilder, x: str) -> str:
    """3x3 average pool that counts padding zeros, then batch norm."""
    return g.batch_norm(g.average_pool(x, kernel=3, padding=1, count_include_pad=True))


def max_pool_bn(g: GraphBuilder, x: str) -> str:
    """3x3 max pool, then batch norm."""
    return g.batch_norm(g.max_pool(x, kernel=3, padding=1))
