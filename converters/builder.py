"""Build a network operator by operator: the faithful graph, batch norms and dead branches included."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from converters.graph import Attributes, AttributeValue, Graph, Node, Shape

Pair = int | tuple[int, int]  # height and width


class GraphBuilder:
    """Appends operators and tracks shapes (NCHW, batch 1).

    Methods take and return value names, so a converter reads like the forward pass of the network.

    Example:
        >>> g = GraphBuilder((1, 3, 32, 32))
        >>> logits = g.linear(g.flatten(g.global_average_pool(g.relu(g.conv(g.input, 16, kernel=3)))), 10)
        >>> g.build(logits).shapes[logits]
        (1, 10)
    """

    def __init__(self, input_shape: Shape) -> None:
        self.input = "input"
        self.shapes: dict[str, Shape] = {self.input: input_shape}
        self._nodes: list[Node] = []

    def channels(self, x: str) -> int:
        """Size of the channel axis of ``x``."""
        return self.shapes[x][1]

    def conv(
        self,
        x: str,
        out_channels: int,
        *,
        kernel: Pair,
        stride: Pair = 1,
        padding: Pair | None = None,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = False,
    ) -> str:
        """Convolution; ``padding`` defaults to half the kernel, rounded down. Its weights are its own."""
        kernel, stride = _pair(kernel), _pair(stride)
        padding = (kernel[0] // 2, kernel[1] // 2) if padding is None else _pair(padding)
        weight_shape = (out_channels, self.channels(x) // groups, *kernel)
        reach = (dilation * (kernel[0] - 1) + 1, dilation * (kernel[1] - 1) + 1)
        shape = self._window_shape(x, reach, stride, padding, channels=out_channels)
        attributes = _attributes(
            dilations=(dilation, dilation) if dilation > 1 else None,
            group=groups if groups > 1 else None,
            pads=padding * 2 if padding != (0, 0) else None,
            strides=stride if stride != (1, 1) else None,
            weight_shape=weight_shape,
        )
        return self._layer("nn.ConvBias" if bias else "nn.Conv", x, shape, attributes)

    def batch_norm(self, x: str) -> str:
        """Affine batch normalisation of the channels, in inference form."""
        return self._layer("nn.BatchNormalization", x, self.shapes[x], _attributes(weight_shape=(self.channels(x),)))

    def linear(self, x: str, out_features: int, *, bias: bool = True) -> str:
        """Fully connected layer over the last axis."""
        *batch, in_features = self.shapes[x]
        op_type = "nn.LinearBias" if bias else "nn.Linear"
        attributes = _attributes(weight_shape=(out_features, in_features))
        return self._layer(op_type, x, (*batch, out_features), attributes)

    def relu(self, x: str) -> str:
        """max(x, 0)."""
        return self._append("Relu", (x,), self.shapes[x])

    def relu6(self, x: str) -> str:
        """min(max(x, 0), 6)."""
        return self._append("nn.Clip", (x,), self.shapes[x], _attributes(max=6.0, min=0.0))

    def sigmoid(self, x: str) -> str:
        """1 / (1 + exp(-x))."""
        return self._append("Sigmoid", (x,), self.shapes[x])

    def silu(self, x: str) -> str:
        """x * sigmoid(x)."""
        return self._append("nn.Silu", (x,), self.shapes[x])

    def hard_swish(self, x: str) -> str:
        """x * relu6(x + 3) / 6."""
        return self._append("HardSwish", (x,), self.shapes[x])

    def hard_sigmoid(self, x: str) -> str:
        """relu6(x + 3) / 6."""
        return self._append("HardSigmoid", (x,), self.shapes[x], _attributes(alpha=1 / 6))

    def multiply(self, x: str, factor: str) -> str:
        """``x * factor``, axes of size 1 of ``factor`` repeated."""
        return self._append("Mul", (x, factor), self.shapes[x])

    def concat(self, *operands: str) -> str:
        """Operands one after another on the channel axis."""
        batch, _, *size = self.shapes[operands[0]]
        shape = (batch, sum(self.channels(x) for x in operands), *size)
        return self._append("Concat", operands, shape, _attributes(axis=1))

    def reshape(self, x: str, *shape: int) -> str:
        """The same numbers in another shape."""
        if prod(shape) != prod(self.shapes[x]):
            raise ValueError(f"GraphBuilder.reshape: expected {prod(self.shapes[x])} numbers, got shape {shape}.")
        return self._append("nn.Reshape", (x,), shape, _attributes(shape=shape))

    def transpose(self, x: str, *axes: int) -> str:
        """Axes in another order."""
        return self._append("Transpose", (x,), tuple(self.shapes[x][axis] for axis in axes), _attributes(perm=axes))

    def slice(self, x: str, *, axes: tuple[int, ...], starts: tuple[int, ...], ends: tuple[int, ...]) -> str:
        """``starts:ends`` of each of ``axes``, within its size."""
        shape = list(self.shapes[x])
        for axis, start, end in zip(axes, starts, ends, strict=True):
            if not 0 <= start < end <= shape[axis]:
                raise ValueError(f"GraphBuilder.slice: expected a range in 0..{shape[axis]}, got {start}:{end}.")
            shape[axis] = end - start
        return self._append("nn.Slice", (x,), tuple(shape), _attributes(axes=axes, ends=ends, starts=starts))

    def channel_shuffle(self, x: str, groups: int) -> str:
        """Channel ``group * n + i`` moves to ``i * groups + group``."""
        batch, channels, height, width = self.shapes[x]
        grouped = self.reshape(x, batch, groups, channels // groups, height, width)
        return self.reshape(self.transpose(grouped, 0, 2, 1, 3, 4), batch, channels, height, width)

    def add(self, *operands: str) -> str:
        """Sum of one or more values of one shape."""
        if len({self.shapes[x] for x in operands}) != 1:
            raise ValueError(f"GraphBuilder.add: expected one shape, got {[self.shapes[x] for x in operands]}.")
        return self._append("Sum", operands, self.shapes[operands[0]])

    def zero(self, x: str) -> str:
        """``x * 0``: what the ``none`` operation of cell spaces computes."""
        scalar = self._append("Constant", (), (), _attributes(value_float=0.0))
        return self._append("Mul", (x, scalar), self.shapes[x])

    def average_pool(
        self,
        x: str,
        *,
        kernel: int,
        stride: int = 1,
        padding: int = 0,
        count_include_pad: bool = False,
        ceil_mode: bool = False,
    ) -> str:
        """Mean of each window; padded zeros count only with ``count_include_pad``."""
        include = 1 if count_include_pad and padding else None
        return self._pool("AveragePool", x, kernel, stride, padding, ceil_mode, count_include_pad=include)

    def max_pool(self, x: str, *, kernel: int, stride: int = 1, padding: int = 0, ceil_mode: bool = False) -> str:
        """Maximum of each window, padding left out."""
        return self._pool("MaxPool", x, kernel, stride, padding, ceil_mode)

    def global_average_pool(self, x: str) -> str:
        """Mean over height and width, kept as axes of size 1."""
        batch, channels, _, _ = self.shapes[x]
        return self._append("GlobalAveragePool", (x,), (batch, channels, 1, 1))

    def flatten(self, x: str) -> str:
        """All axes but the first, as one."""
        batch, *rest = self.shapes[x]
        return self._append("Flatten", (x,), (batch, prod(rest)))

    def build(self, *outputs: str) -> Graph:
        """The graph whose results are ``outputs``."""
        return Graph((self.input,), outputs, tuple(self._nodes), self.shapes)

    def _pool(
        self, op_type: str, x: str, kernel: int, stride: int, padding: int, ceil_mode: bool, **others: int | None
    ) -> str:
        shape = self._window_shape(x, _pair(kernel), _pair(stride), _pair(padding), ceil_mode=ceil_mode)
        floor = self._window_shape(x, _pair(kernel), _pair(stride), _pair(padding))
        attributes = _attributes(
            ceil_mode=1 if shape != floor else None,
            kernel_shape=(kernel, kernel),
            pads=(padding,) * 4 if padding else None,
            strides=(stride, stride) if stride > 1 else None,
            **others,
        )
        return self._append(op_type, (x,), shape, attributes)

    def _window_shape(
        self,
        x: str,
        kernel: tuple[int, int],
        stride: tuple[int, int],
        padding: tuple[int, int],
        *,
        channels: int | None = None,
        ceil_mode: bool = False,
    ) -> Shape:
        batch, in_channels, *size = self.shapes[x]
        windows = [
            _num_windows(n + 2 * p - k, s, p, n, ceil_mode)
            for n, k, s, p in zip(size, kernel, stride, padding, strict=True)
        ]
        return (batch, in_channels if channels is None else channels, *windows)

    def _layer(self, op_type: str, x: str, shape: Shape, attributes: Attributes) -> str:
        return self._append(op_type, (x,), shape, attributes, (f"w{len(self._nodes)}",))

    def _append(
        self,
        op_type: str,
        inputs: tuple[str, ...],
        shape: Shape,
        attributes: Attributes = (),
        weights: tuple[str, ...] = (),
    ) -> str:
        output = f"x{len(self._nodes)}"
        self._nodes.append(Node(op_type, inputs, (output,), attributes, weights))
        self.shapes[output] = shape
        return output


def _num_windows(span: int, stride: int, padding: int, size: int, ceil_mode: bool) -> int:
    """Windows along one axis; with ``ceil_mode`` a last one may reach beyond the end, if it starts before."""
    windows = span // stride + 1
    starts_inside = windows * stride < size + padding
    return windows + 1 if ceil_mode and span % stride and starts_inside else windows


def _pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


@lru_cache(maxsize=1 << 10, typed=True)
def _attributes(**values: AttributeValue | None) -> Attributes:
    return tuple((name, value) for name, value in sorted(values.items()) if value is not None)
