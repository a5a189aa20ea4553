"""Builds the faithful graph of a network, operator by operator: all that its reference runs, with dead branches."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from converters.graph import Attributes, Graph, Node, Shape, attributes
from converters.windows import Pair, convolution, image, pair, pool, whole

_attributes = lru_cache(maxsize=1 << 10, typed=True)(attributes)  # a network has few different layers


class GraphBuilder:
    """A graph under construction: each method appends operators and records the shape of the result (NCHW, batch 1).

    Methods take and return value names, so a converter reads like the forward pass of the network.

    Example:
        >>> g = GraphBuilder((1, 3, 32, 32))
        >>> logits = g.linear(g.flatten(g.global_average_pool(g.relu(g.conv(g.input, 16, kernel=3)))), 10)
        >>> g.build(logits).shapes[logits]
        (1, 10)
    """

    def __init__(self, input_shape: Shape) -> None:
        self.input = "input"
        self.shapes: dict[str, Shape] = {self.input: tuple([whole(size, 1) for size in input_shape])}
        self._nodes: list[Node] = []

    def channels(self, x: str) -> int:
        """Return the number of channels of ``x``."""
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
        """Convolution with weights of its own; ``padding`` defaults to half the kernel, rounded down."""
        shape, attributes = convolution(
            self.shapes[x],
            whole(out_channels, 1),
            pair(kernel, 1),
            pair(stride, 1),
            padding if padding is None else pair(padding, 0),
            whole(dilation, 1),
            whole(groups, 1),
        )
        return self._layer("nn.ConvBias" if bias else "nn.Conv", x, shape, attributes)

    def batch_norm(self, x: str) -> str:
        """Affine batch normalisation over channels, in inference mode."""
        return self._layer("nn.BatchNormalization", x, self.shapes[x], _attributes(weight_shape=(self.channels(x),)))

    def conv_bn(
        self, x: str, channels: int, *, kernel: Pair, stride: Pair = 1, groups: int = 1, bias: bool = False
    ) -> str:
        """Convolution, batch norm."""
        return self.batch_norm(self.conv(x, channels, kernel=kernel, stride=stride, groups=groups, bias=bias))

    def relu_conv_bn(self, x: str, channels: int, *, kernel: int, stride: int = 1) -> str:
        """ReLU, convolution, batch norm: the convolution of cell spaces."""
        return self.conv_bn(self.relu(x), channels, kernel=kernel, stride=stride)

    def linear(self, x: str, out_features: int, *, bias: bool = True) -> str:
        """Fully connected layer over the last axis."""
        *batch, in_features = self.shapes[x]
        out_features = whole(out_features, 1)
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
        """``x * factor``, with axes of size 1 of ``factor`` broadcast."""
        shape, other = self.shapes[x], self.shapes[factor]
        sizes = zip(other[::-1], shape[::-1], strict=False)
        if len(other) > len(shape) or any(n not in (1, size) for n, size in sizes):
            raise ValueError(f"GraphBuilder.multiply: expected a factor for shape {shape}, got shape {other}.")
        return self._append("Mul", (x, factor), self.shapes[x])

    def concat(self, *operands: str) -> str:
        """Concatenation along the channel axis."""
        shapes = [self.shapes[x] for x in operands]
        if len({(shape[:1], shape[2:]) for shape in shapes}) != 1 or min(map(len, shapes)) < 2:
            raise ValueError(f"GraphBuilder.concat: expected shapes that differ only in channels, got {shapes}.")
        batch, _, *size = shapes[0]
        shape = (batch, sum(map(self.channels, operands)), *size)
        return self._append("Concat", operands, shape, _attributes(axis=1))

    def reshape(self, x: str, *shape: int) -> str:
        """``x`` reshaped to ``shape``."""
        shape = tuple([whole(size, 1) for size in shape])
        if prod(shape) != prod(self.shapes[x]):
            raise ValueError(f"GraphBuilder.reshape: expected {prod(self.shapes[x])} numbers, got shape {shape}.")
        return self._append("nn.Reshape", (x,), shape, _attributes(shape=shape))

    def transpose(self, x: str, *axes: int) -> str:
        """``x`` with its axes in the order ``axes``."""
        axes, shape = tuple(map(whole, axes)), self.shapes[x]
        if sorted(axes) != list(range(len(shape))):
            raise ValueError(f"GraphBuilder.transpose: expected each of the {len(shape)} axes once, got {axes}.")
        return self._append("Transpose", (x,), tuple(shape[axis] for axis in axes), _attributes(perm=axes))

    def slice(self, x: str, *, axes: tuple[int, ...], starts: tuple[int, ...], ends: tuple[int, ...]) -> str:
        """The ranges ``starts:ends`` of ``x`` along ``axes``; each must lie within the axis."""
        axes, starts, ends = (tuple(map(whole, numbers)) for numbers in (axes, starts, ends))
        shape = list(self.shapes[x])
        if not len(set(axes)) == len(axes) == len(starts) == len(ends) or not set(axes) <= set(range(len(shape))):
            raise ValueError(
                f"GraphBuilder.slice: expected different axes in 0..{len(shape) - 1}, each with a start and an "
                f"end, got axes {axes}, starts {starts}, ends {ends}."
            )
        for axis, start, end in zip(axes, starts, ends, strict=True):
            if not 0 <= start < end <= shape[axis]:
                raise ValueError(f"GraphBuilder.slice: expected a range in 0..{shape[axis]}, got {start}:{end}.")
            shape[axis] = end - start
        return self._append("nn.Slice", (x,), tuple(shape), _attributes(axes=axes, ends=ends, starts=starts))

    def channel_shuffle(self, x: str, groups: int) -> str:
        """Channel shuffle: with n channels in a group, channel ``group * n + i`` moves to ``i * groups + group``."""
        batch, channels, height, width = image(self.shapes[x])
        groups = whole(groups, 1)
        grouped = self.reshape(x, batch, groups, channels // groups, height, width)
        return self.reshape(self.transpose(grouped, 0, 2, 1, 3, 4), batch, channels, height, width)

    def add(self, *operands: str) -> str:
        """Sum of one or more values of the same shape."""
        if len({self.shapes[x] for x in operands}) != 1:
            raise ValueError(f"GraphBuilder.add: expected equal shapes, got {[self.shapes[x] for x in operands]}.")
        return self._append("Sum", operands, self.shapes[operands[0]])

    def identity(self, x: str) -> str:
        """``x`` through an Identity operator, which is how references run a skip connection."""
        return self._append("Identity", (x,), self.shapes[x])

    def zero(self, x: str) -> str:
        """``x * 0``, which is what the ``none`` operation of cell spaces computes."""
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
        """Mean of each window; padding zeros are counted only with ``count_include_pad``."""
        shape, attributes = pool(
            self.shapes[x], whole(kernel, 1), whole(stride, 1), whole(padding, 0), ceil_mode, count_include_pad
        )
        return self._append("AveragePool", (x,), shape, attributes)

    def max_pool(self, x: str, *, kernel: int, stride: int = 1, padding: int = 0) -> str:
        """Maximum of each window, without the padding."""
        shape, attributes = pool(self.shapes[x], whole(kernel, 1), whole(stride, 1), whole(padding, 0))
        return self._append("MaxPool", (x,), shape, attributes)

    def global_average_pool(self, x: str) -> str:
        """Mean over height and width, kept as axes of size 1."""
        batch, channels, _, _ = image(self.shapes[x])
        return self._append("GlobalAveragePool", (x,), (batch, channels, 1, 1))

    def flatten(self, x: str) -> str:
        """``x`` with all axes but the first merged into one."""
        batch, *rest = self.shapes[x]
        return self._append("Flatten", (x,), (batch, prod(rest)))

    def build(self, *outputs: str) -> Graph:
        """Return the graph with these outputs.

        Raises:
            ValueError: there are no outputs, or one of them is no value of this graph.
        """
        if not outputs or any(x not in self.shapes for x in outputs):
            raise ValueError(f"GraphBuilder.build: expected values of this graph as outputs, got {outputs}.")
        return Graph((self.input,), outputs, tuple(self._nodes), self.shapes)

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
