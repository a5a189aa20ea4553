"""Small ONNX models from the text of their graphs, and what becomes of them."""

import numpy as np
import onnxruntime
from onnx import numpy_helper

from converters import model_to_onnx_text, to_model
from converters.text import parse, print_model

CONV_RELU = "(float[1,3,8,8] x) => (float[1,4,8,8] y) { c = Conv <pads = [1,1,1,1]> (x, w, b)  y = Relu (c) }"
QUANTISED = {
    "dequantised": "w = DequantizeLinear (q, s, z)  c = DequantizeLinear (b, s)  y = Conv (x, w, c)",
    "integer": "i = QuantizeLinear (x, s, z)  o = QLinearConv (i, s, z, q, s, z, s, z, b)  "
    "y = DequantizeLinear (o, s, z)",
}


def tensor(name, *shape, dtype=np.float32):
    """A weight; its numbers do not matter."""
    return numpy_helper.from_array((np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype), name)


def model(text, *weights, opset=20, domain="com.x"):
    """A model from the text of its graph."""
    proto = parse(f'<ir_version: 8, opset_import: ["" : {opset}, "{domain}" : 3]>\nnetwork {text}')
    proto.graph.initializer.extend(weights)
    return proto


def conv_relu(opset=20, inputs="float[1,3,8,8] x"):
    """A convolution with bias and a ReLU."""
    return model(CONV_RELU.replace("float[1,3,8,8] x", inputs), tensor("w", 4, 3, 3, 3), tensor("b", 4), opset=opset)


def body(proto, input_shape=None):
    """The lines of a model's text between the braces, after the usual checks."""
    onnx_text = model_to_onnx_text(proto, input_shape)
    assert print_model(parse(onnx_text)) == onnx_text
    lines = onnx_text.splitlines()
    return [line.strip() for line in lines[5 : lines.index("}")]]


def signature(proto, input_shape=None):
    return model_to_onnx_text(proto, input_shape).splitlines()[4]


def run(proto, *arrays):
    """Outputs of a model's text in ONNX Runtime."""
    return outputs(to_model(model_to_onnx_text(proto)), *arrays)


def outputs(proto, *arrays):
    """Outputs of a model in ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {value.name: array for value, array in zip(session.get_inputs(), arrays, strict=True)})
