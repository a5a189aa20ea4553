"""Output shapes and attributes of convolutions and pools, whose windows slide over height and width.

Results are cached, since a network and a space have few different layers that occur many times.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import index
from typing import Any

from converters.graph import Attributes, Shape, attributes

Pair = int | tuple[int, int]  # height and width


def whole(number: Any, least: int | None = None) -> int:
    """Return a size of any integer type as an ``int``; other types, such as NumPy's, would appear wrongly in the text.

    Raises:
        ValueError: it is no integer, or below ``least``.
    """
    found = number if type(number) is int else _own_integer(number)
    if least is not None and found < least:
        raise ValueError(
            f"GraphBuilder: expected a whole number of {least} or more, got {found}. If it is computed, use "
            f"max({least}, ...) to keep it in range."
        )
    return found


def _own_integer(number: Any) -> int:
    try:
        return int(index(number))
    except TypeError as e:
        raise ValueError(
            f"GraphBuilder: expected a whole number, got {number!r}. Convert it, for example with int(16 * 1.5)."
        ) from e


def pair(value: Pair, least: int) -> tuple[int, int]:
    """Return integers for height and width from two numbers or one for both; each must be at least ``least``."""
    height, width = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
    return whole(height, least), whole(width, least)


def both_sides(missing: Sequence[int], *, more_behind: bool) -> Shape:
    """Return padding at the start of every axis, then at the end, as SAME_UPPER splits it, or else SAME_LOWER.

    Args:
        missing: padding of every axis, both sides together.
        more_behind: whether the end gets more of an odd number, as with SAME_UPPER.
    """
    half, rest = [total // 2 for total in missing], [total - total // 2 for total in missing]
    return (*half, *rest) if more_behind else (*rest, *half)


@lru_cache(maxsize=1 << 12)
def convolution(
    shape: Shape,
    out_channels: int,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int] | None,
    dilation: int,
    groups: int,
) -> tuple[Shape, Attributes]:
    """Return output shape and attributes of a convolution; ``padding`` None means half the kernel, rounded down."""
    padding = (kernel[0] // 2, kernel[1] // 2) if padding is None else padding
    reach = (dilation * (kernel[0] - 1) + 1, dilation * (kernel[1] - 1) + 1)
    batch, channels, *size = image(shape)
    if channels % groups or out_channels % groups:
        raise ValueError(
            f"convolution: expected numbers of channels divisible by {groups} groups, got {channels} and "
            f"{out_channels}."
        )
    spelled = attributes(
        dilations=(dilation, dilation) if dilation > 1 else None,
        group=groups if groups > 1 else None,
        pads=padding * 2 if padding != (0, 0) else None,
        strides=stride if stride != (1, 1) else None,
        weight_shape=(out_channels, channels // groups, *kernel),
    )
    return (batch, out_channels, *_num_windows(size, reach, stride, padding)), spelled


@lru_cache(maxsize=1 << 10)
def pool(
    shape: Shape, kernel: int, stride: int, padding: int, ceil_mode: bool = False, count_include_pad: bool = False
) -> tuple[Shape, Attributes]:
    """Return output shape and attributes of a pool, without attributes that do not change the result."""
    batch, channels, *size = image(shape)
    if padding >= kernel:  # a window could contain nothing but padding
        raise ValueError(f"pool: expected padding below {kernel}, the size of its kernel, got {padding}.")
    pairs = (kernel, kernel), (stride, stride), (padding, padding)
    floor, ceil = _num_windows(size, *pairs), _num_windows(size, *pairs, ceil_mode=True)
    spelled = attributes(
        ceil_mode=1 if ceil_mode and ceil != floor else None,
        count_include_pad=1 if count_include_pad and padding else None,
        kernel_shape=(kernel, kernel),
        pads=(padding,) * 4 if padding else None,
        strides=(stride, stride) if stride > 1 else None,
    )
    return (batch, channels, *(ceil if ceil_mode else floor)), spelled


def _num_windows(
    size: list[int], kernel: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int], ceil_mode: bool = False
) -> list[int]:
    """Return the number of windows along each axis.

    With ``ceil_mode`` the last window may extend beyond the end if it starts before the end padding.
    """
    counts: list[int] = []
    for n, k, s, p in zip(size, kernel, stride, padding, strict=True):
        span = n + 2 * p - k
        windows = span // s + 1
        if span < 0:
            raise ValueError(f"window: expected at most {n + 2 * p} pixels, the size of the padded input, got {k}.")
        one_more = ceil_mode and span % s and windows * s < n + p
        counts.append(windows + 1 if one_more else windows)
    return counts


def image(shape: Shape) -> Shape:
    """Return ``shape`` if it has the four axes of an image; raise ValueError otherwise."""
    if len(shape) != 4:
        raise ValueError(f"window: expected an input of four axes (batch, channels, height, width), got {shape}.")
    return shape
