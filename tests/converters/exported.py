"""Random models as exporters write them: one computation in several spellings, with real weights."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tests.converters.graphs import SHAPE

IMAGE = SHAPE  # every value between two steps has this shape
PIXELS = (1, 2, 16)
AROUND = (0, 0, 1, 1, 0, 0, 1, 1)

Draw = Callable[..., object]


class Exporter:
    """Appends standard operators; names are of no pattern that the converters use."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}

    def call(self, op_type: str, *operands: str, outputs: int = 1, **attributes: object) -> str:
        """The first output of one operator."""
        names = [f"n{len(self.nodes)}_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(op_type, operands, names, **attributes))
        return names[0]

    def number(self, value: float) -> str:
        """A constant without axes, as a node of its own."""
        return self.call("Constant", value_float=value)

    def integers(self, *values: int) -> str:
        return self.call("Constant", value_ints=values)

    def weight(self, *shape: int) -> str:
        """A random weight; variances among them must be positive, so all are."""
        name = f"p{len(self.weights)}"
        rng = np.random.default_rng(len(self.weights))
        self.weights[name] = rng.uniform(0.2, 1, shape).astype(np.float32)
        return name


def _convolution(e: Exporter, x: str, draw: Draw) -> str:
    match draw(st.sampled_from(("own bias", "added bias", "scalar bias", "padded", "automatic", "norm"))):
        case "own bias":
            return e.call("Conv", x, e.weight(2, 2, 3, 3), e.weight(2), pads=[1] * 4, kernel_shape=[3, 3])
        case "added bias":
            made = e.call("Conv", x, e.weight(2, 2, 1, 1), strides=[1, 1], group=1)
            return _in_any_order(e, "Add", made, e.weight(2, 1, 1), draw)
        case "scalar bias":
            return _in_any_order(e, "Add", e.call("Conv", x, e.weight(2, 1, 1, 1), group=2), e.number(0.3), draw)
        case "padded":
            return e.call("Conv", e.call("Pad", x, e.integers(*AROUND)), e.weight(2, 2, 3, 3))
        case "automatic":
            return e.call("Conv", x, e.weight(2, 2, 2, 2), auto_pad=draw(st.sampled_from(("SAME_UPPER", "SAME_LOWER"))))
    made = e.call("Conv", x, e.weight(2, 1, 3, 3), group=2, pads=[1, 1, 1, 1], dilations=[1, 1])
    return e.call("BatchNormalization", made, *[e.weight(2) for _ in range(4)])


def _pool(e: Exporter, x: str, draw: Draw) -> str:
    match draw(st.sampled_from(("mean", "padded", "most", "two outputs", "automatic", "one pixel"))):
        case "mean":
            whole = draw(st.integers(0, 1))
            return e.call("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=whole, ceil_mode=1)
        case "padded":
            return e.call("AveragePool", e.call("Pad", x, e.integers(*AROUND)), kernel_shape=[3, 3])
        case "most":
            return e.call("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4, dilations=[1, 1], strides=[1, 1])
        case "two outputs":
            return e.call("MaxPool", x, outputs=2, kernel_shape=[3, 3], pads=[1] * 4, storage_order=0)
        case "automatic":
            return e.call("AveragePool", x, kernel_shape=[2, 2], auto_pad="SAME_UPPER")
    return e.call("MaxPool", x, kernel_shape=[1, 1])


def _activation(e: Exporter, x: str, draw: Draw) -> str:
    zero, three, six = e.number(0.0), e.number(3.0), e.number(6.0)
    match draw(st.sampled_from(("relu", "six", "clip", "hard sigmoid", "hard swish", "silu", "gelu", "tanh", "mish"))):
        case "relu":
            return _in_any_order(e, "Max", x, zero, draw)
        case "six":
            return _in_any_order(e, "Min", e.call("Relu", x), six, draw)
        case "clip":
            bounds = (("", six), (zero,), (zero, six), (e.number(-0.5), three))
            return e.call("Clip", x, *draw(st.sampled_from(bounds)))
        case "hard sigmoid":
            if draw(st.booleans()):
                scaled = e.call("Add", e.call("Mul", x, e.number(0.2)), e.number(0.5))
                return e.call("Clip", scaled, zero, e.number(1.0))
            return e.call("Div", e.call("Clip", e.call("Add", x, three), zero, six), six)
        case "hard swish":
            gate = e.call("Clip", _in_any_order(e, "Add", x, three, draw), zero, six)
            if draw(st.booleans()):
                return e.call("Mul", x, e.call("Div", gate, six))
            return e.call("Div", _in_any_order(e, "Mul", x, gate, draw), six)
        case "silu":
            return _in_any_order(e, "Mul", x, e.call("Sigmoid", x), draw)
        case "gelu":
            erf = e.call("Erf", e.call("Div", x, e.number(1.4142135)))
            return e.call("Mul", e.call("Mul", x, e.call("Add", erf, e.number(1.0))), e.number(0.5))
        case "tanh":
            cubic = e.call("Mul", e.call("Pow", x, three), e.number(0.044715))
            tanh = e.call("Tanh", e.call("Mul", e.call("Add", x, cubic), e.number(0.7978846)))
            return e.call("Mul", e.call("Mul", x, e.number(0.5)), e.call("Add", tanh, e.number(1.0)))
    return e.call("Mish", x)


def _arithmetic(e: Exporter, x: str, draw: Draw) -> str:
    number = e.number(draw(st.sampled_from((0.0, 0.5, 1.0, -2.0, 6.0))))
    op_type = draw(st.sampled_from(("Add", "Sub", "Mul", "Max", "Min")))
    made = _in_any_order(e, op_type, x, number, draw)
    return e.call("Div", made, e.number(draw(st.sampled_from((1.0, 4.0, -0.5)))))


def _product(e: Exporter, x: str, draw: Draw) -> str:
    scales = [e.call("Mul", x, e.number(factor)) for factor in (0.5, 0.25)]
    return e.call(draw(st.sampled_from(("Mul", "MatMul"))), *scales)


def _view(e: Exporter, x: str, draw: Draw) -> str:
    match draw(st.sampled_from(("nothing", "flat", "there and back", "turned", "squeezed", "shape of its own"))):
        case "nothing":
            return e.call(draw(st.sampled_from(("Identity", "Dropout", "Sum", "Max", "Flatten"))), x)
        case "flat":
            x = e.call("Flatten", x)
        case "there and back":
            return e.call("Transpose", e.call("Transpose", x, perm=[0, 2, 3, 1]), perm=[0, 3, 1, 2])
        case "turned":
            x = e.call("Transpose", e.call("Reshape", x, e.integers(*PIXELS)), perm=[1, 0, 2])
        case "squeezed":
            x = e.call("Unsqueeze", e.call("Squeeze", x, e.integers(0)), e.integers(1))
        case "shape of its own":
            return e.call("Reshape", x, e.call("Shape", x))
    return x


def _part(e: Exporter, x: str, draw: Draw) -> str:
    joined = e.call("Concat", x, e.call("Neg", x), axis=draw(st.sampled_from((1, -3))))
    match draw(st.sampled_from(("slice", "two slices", "gather", "split"))):
        case "slice":
            return e.call("Slice", joined, e.integers(1), e.integers(3), e.integers(-3))
        case "two slices":
            rest = e.call("Slice", joined, e.integers(1), e.integers(2**62), e.integers(1))
            return e.call("Slice", rest, e.integers(0), e.integers(-1), e.integers(1), e.integers(1))
        case "gather":
            return e.call("Gather", joined, e.integers(-3, 2), axis=1)
    return e.call("Split", joined, e.integers(2, 2), outputs=2, axis=1)


def _mean(e: Exporter, x: str, draw: Draw) -> str:
    match draw(st.sampled_from(("axes", "one by one", "dropped", "pool"))):
        case "axes":
            pooled = e.call("ReduceMean", x, e.integers(-1, 2))
        case "one by one":
            pooled = e.call("ReduceMean", e.call("ReduceMean", x, e.integers(3)), e.integers(2))
        case "dropped":
            pooled = e.call("Reshape", e.call("ReduceMean", x, e.integers(2, 3), keepdims=0), e.integers(1, 2, 1, 1))
        case "pool":
            pooled = e.call("AveragePool", x, kernel_shape=[4, 4])
    return e.call("Mul", x, e.call("Sigmoid", pooled))


def _norm(e: Exporter, x: str, draw: Draw) -> str:
    gain, shift, last = e.weight(4), e.weight(4), e.integers(-1)
    if draw(st.booleans()):
        return e.call("LayerNormalization", x, gain, shift, axis=draw(st.sampled_from((-1, 3))), epsilon=1e-5)
    centred = e.call("Sub", x, e.call("ReduceMean", x, last))
    square = e.call("Pow", centred, e.number(2.0)) if draw(st.booleans()) else e.call("Mul", centred, centred)
    variance = e.call("Add", e.call("ReduceMean", square, last), e.number(1e-5))
    scaled = _in_any_order(e, "Mul", e.call("Div", centred, e.call("Sqrt", variance)), gain, draw)
    return _in_any_order(e, "Add", scaled, shift, draw)


def _linear(e: Exporter, x: str, draw: Draw) -> str:
    rows = e.call("Reshape", x, e.integers(8, 4))
    match draw(st.sampled_from(("gemm", "turned gemm", "matrix"))):
        case "gemm":
            wide = e.call("Gemm", rows, e.weight(4, 3), e.weight(3))
        case "turned gemm":
            wide = e.call("Gemm", rows, e.weight(3, 4), transB=1)
        case "matrix":
            wide = _in_any_order(e, "Add", e.call("MatMul", rows, e.weight(4, 3)), e.weight(1, 3), draw)
    return e.call("MatMul", wide, e.weight(3, 4))


def _recurrent(e: Exporter, x: str, draw: Draw) -> str:
    op_type, gates = draw(st.sampled_from((("LSTM", 4), ("GRU", 3), ("RNN", 1))))
    states = [e.call("Expand", e.number(0.0), e.integers(1, 1, 8)) for _ in range(1 + (op_type == "LSTM"))]
    inputs = (e.call("Reshape", x, e.integers(4, 1, 8)), e.weight(1, gates * 8, 8), e.weight(1, gates * 8, 8))
    return e.call(op_type, *inputs, "", "", *states, outputs=draw(st.integers(1, 2)), hidden_size=8)


def _other(e: Exporter, x: str, draw: Draw) -> str:
    op_type = draw(st.sampled_from(("Softmax", "LogSoftmax", "Abs", "Tanh")))
    return e.call(op_type, x, **{"axis": draw(st.sampled_from((-1, 1, 3)))} if "Softmax" in op_type else {})


STEPS = (
    *(_convolution, _pool, _activation, _arithmetic, _product, _view, _part, _mean, _norm, _linear, _recurrent),
    _other,
)


@st.composite
def exported_models(draw: Draw, max_steps: int = 8) -> ModelProto:
    """Of one input and one or two outputs; each step reads one of the latest values, sums read several."""
    e = Exporter()
    values = ["image"]
    for _ in range(draw(st.integers(1, max_steps))):
        x = values[-draw(st.integers(1, min(3, len(values))))]
        if draw(st.integers(0, 3)):
            made = draw(st.sampled_from(STEPS))(e, x, draw)
            values.append(e.call("Reshape", made, e.integers(*draw(st.sampled_from((IMAGE, (1, 2, -1, 4)))))))
        else:
            others = [values[-draw(st.integers(1, min(3, len(values))))] for _ in range(draw(st.integers(1, 2)))]
            values.append(e.call(draw(st.sampled_from(("Sum", "Sum", "Max"))), x, *others))
    outputs = [e.call("Sum", *values[-3:]), *draw(st.lists(st.sampled_from(values[1:]), max_size=1))]
    return to_model(e.nodes, e.weights, list(dict.fromkeys(outputs)))


def to_model(nodes: Sequence[NodeProto], weights: Mapping[str, np.ndarray], outputs: Sequence[str]) -> ModelProto:
    """Of opset 20, on images."""
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    ends = [
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, IMAGE) for x in names] for names in (["image"], outputs)
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "exported", *ends, tensors), opset_imports=[helper.make_opsetid("", 20)], ir_version=10
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _in_any_order(e: Exporter, op_type: str, x: str, y: str, draw: Draw) -> str:
    return e.call(op_type, *draw(st.sampled_from(((x, y), (y, x)))))
