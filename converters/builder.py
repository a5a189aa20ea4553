"""Build a network operator by operator: the faithful graph, batch norms and dead branches included."""

from __future__ import annotations

from math import prod

from converters.graph import Attributes, AttributeValue, Graph, Node, Shape


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
        kernel: int,
        stride: int = 1,
        padding: int | None = None,
        groups: int = 1,
        bias: bool = False,
    ) -> str:
        """Square convolution; ``padding`` defaults to ``kernel // 2``. Its weights are its own."""
        padding = kernel // 2 if padding is None else padding
        batch, in_channels, height, width = self.shapes[x]
        weight_shape = (out_channels, in_channels // groups, kernel, kernel)
        shape = (batch, out_channels, *(_window(size, kernel, stride, padding) for size in (height, width)))
        attributes = _attributes(
            group=groups if groups > 1 else None,
            pads=(padding,) * 4 if padding else None,
            strides=(stride, stride) if stride > 1 else None,
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

    def add(self, *operands: str) -> str:
        """Sum of one or more values of one shape."""
        if len({self.shapes[x] for x in operands}) != 1:
            raise ValueError(f"GraphBuilder.add: expected one shape, got {[self.shapes[x] for x in operands]}.")
        return self._append("Sum", operands, self.shapes[operands[0]])

    def zero(self, x: str) -> str:
        """``x * 0``: what the ``none`` operation of cell spaces computes."""
        scalar = self._append("Constant", (), (), _attributes(value_float=0.0))
        return self._append("Mul", (x, scalar), self.shapes[x])

    def average_pool(self, x: str, *, kernel: int, stride: int = 1, padding: int = 0) -> str:
        """Average pooling that leaves padded zeros out of the mean (``count_include_pad=False``)."""
        batch, channels, height, width = self.shapes[x]
        shape = (batch, channels, *(_window(size, kernel, stride, padding) for size in (height, width)))
        attributes = _attributes(
            kernel_shape=(kernel, kernel),
            pads=(padding,) * 4 if padding else None,
            strides=(stride, stride) if stride > 1 else None,
        )
        return self._append("AveragePool", (x,), shape, attributes)

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


def _window(size: int, kernel: int, stride: int, padding: int) -> int:
    return (size + 2 * padding - kernel) // stride + 1


def _attributes(**values: AttributeValue | None) -> Attributes:
    return tuple((name, value) for name, value in sorted(values.items()) if value is not None)
