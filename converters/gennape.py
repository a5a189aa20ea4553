"""The layer of GENNAPE's spaces.

Source:
    Ascend-Research/GENNAPE ac30e05, model_src/search_space/hiaml_two_path.
"""

from __future__ import annotations

from converters.builder import GraphBuilder
from converters.windows import Pair


def conv_bn_relu6(g: GraphBuilder, x: str, channels: int, *, kernel: Pair, stride: Pair = 1, bias: bool = False) -> str:
    """Convolution, batch norm, ReLU6."""
    return g.relu6(g.batch_norm(g.conv(x, channels, kernel=kernel, stride=stride, bias=bias)))
