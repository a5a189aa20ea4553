"""Blocks of mobile networks: inverted residual, squeeze and excitation."""

from __future__ import annotations

from collections.abc import Callable

from converters.builder import GraphBuilder

Operation = Callable[[GraphBuilder, str], str]  # such as GraphBuilder.relu


def make_divisible(value: float) -> int:
    """Return the multiple of 8 nearest to ``value``, halves rounded up, but at least 90 % of ``value``.

    Example:
        >>> make_divisible(28.8), make_divisible(11)
        (32, 16)

    Source: tensorflow/models, research/slim/nets/mobilenet.
    """
    nearest = max(8, int(value + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * value else nearest


def mbconv(
    g: GraphBuilder,
    x: str,
    out_channels: int,
    *,
    mid_channels: int,
    kernel: int,
    stride: int = 1,
    activation: Operation = GraphBuilder.relu,
    expand: bool = True,
    groups: int = 1,
    attention: Operation | None = None,
) -> str:
    """Inverted residual: 1x1 expansion, depthwise convolution, 1x1 projection; plus the input if shapes agree.

    Args:
        mid_channels: number of channels between expansion and projection; without expansion that of the input.
        activation: applied after the expansion and after the depthwise convolution.
        expand: whether the block starts with the 1x1 expansion.
        groups: groups of both 1x1 convolutions; if more than one, channels are shuffled after the first.
        attention: applied before the projection, such as ``squeeze_excite``.

    Source: Sandler et al. 2018, "MobileNetV2: Inverted Residuals and Linear Bottlenecks".
    """
    y = x
    if expand:
        y = activation(g, g.conv_bn(y, mid_channels, kernel=1, groups=groups))
    if groups > 1:
        y = g.channel_shuffle(y, groups)
    y = activation(g, g.conv_bn(y, mid_channels, kernel=kernel, stride=stride, groups=mid_channels))
    if attention is not None:
        y = attention(g, y)
    y = g.conv_bn(y, out_channels, kernel=1, groups=groups)
    return g.add(y, x) if g.channels(x) == out_channels and stride == 1 else y


def squeeze_excite(
    g: GraphBuilder,
    x: str,
    squeezed_channels: int,
    *,
    activation: Operation = GraphBuilder.relu,
    gate: Operation = GraphBuilder.hard_sigmoid,
) -> str:
    """Scale each channel by a factor that a small network computes from the means of all channels.

    Source: Hu et al. 2018, "Squeeze-and-Excitation Networks".
    """
    y = g.conv(g.global_average_pool(x), squeezed_channels, kernel=1, bias=True)
    y = g.conv(activation(g, y), g.channels(x), kernel=1, bias=True)
    return g.multiply(x, gate(g, y))
