"""What is no network, or no ONNX file, is refused in one line."""

import numpy as np
import pytest
from onnx import numpy_helper

from converters import OnnxModelError, model_to_onnx_text
from tests.converters.models import model, tensor


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (
            model("(float[1] x) => (float[1] y) { y = Nonsense (x) }"),
            "expected a valid ONNX model, got: No Op registered",
        ),
        (model("(float[1] x) => (float[1] y) { y = Relu (z) }"), "expected a valid ONNX model"),
        (
            model("(float[1,3] x) => (float[1,3] y) { y = MatMul (x, w) }", tensor("w", 4, 4)),
            "MatMul 'y': expected inputs",
        ),
        (
            model("(float[1,3,2,2] x) => (float[1,5,M,N] y) { y = Conv (x, w) }", tensor("w", 5, 3, 7, 7)),
            "Conv 'y': expected inputs that fit, got a window larger than what it slides over",
        ),
        (
            model("(float[1,4,9,9] x) => (float[1,5,3,3] y) { y = Conv (x, w) }", tensor("w", 5, 3, 7, 7)),
            "Conv 'y': expected inputs that fit, got 4 channels where its weights take 3",
        ),
        (model("(float[1] x) => (float[1] y) { y = com.x.Half (x) }", domain="nn"), "com.x"),
        (
            model(
                "(float[1] x, bool c) => (float[1] y) { y = If <then_branch = g () => (float[1] a) { a = Relu (x) },"
                "else_branch = h () => (float[1] b) { b = Abs (x) }> (c) }"
            ),
            "expected a network without loops and branches, got If 'y'",
        ),
        (
            model("(float[1] x) => (float[1] y) { y = nn.Mine (x) }", domain="nn"),
            "domain nn to be the prelude's, got Mine",
        ),
        (
            model("(float[1] x) => (float[1] y) { y = com.x.Table <t = float[2] {1, 2}> (x) }"),
            "Table 'y': expected numbers and text as attributes, got a tensor: t",
        ),
        (model("(float[1] x) => (float[1] y) { y = com.x.Half (x) }", opset=99), "opset|Opset|No Op|version"),
        (
            model("(float[1,2,2] x) => (float[1,2,2] y) { y = Hardmax (x) }", opset=12),
            "expected Hardmax of opset 13 or later, got 'y' of opset 12",
        ),
    ],
    ids=[
        "operator",
        "input",
        "shapes",
        "window",
        "channels",
        "import",
        "branch",
        "own domain",
        "tensor attribute",
        "opset",
        "old Hardmax",
    ],
)
def test_what_is_no_network_is_refused_in_one_line(proto, message):
    with pytest.raises(OnnxModelError, match=f"^model: .*({message})") as caught:
        model_to_onnx_text(proto)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "got no such file"), (b"not onnx at all", "expected an ONNX model"), (b"", "expected a model with nodes")],
)
def test_what_is_no_onnx_file_is_refused_in_one_line(content, message, tmp_path):
    path = tmp_path / "broken.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(OnnxModelError, match=message) as caught:
        model_to_onnx_text(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_tensor_that_lies_about_its_shape_is_refused():
    proto = model("(float[1,4] x) => (float[2,2] y) { y = Reshape (x, s) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.array([2, 2]), "s"))
    proto.graph.initializer[0].dims[0] = 1
    with pytest.raises(OnnxModelError, match=r"tensor 's': expected as many numbers as its shape says, got: .*reshape"):
        model_to_onnx_text(proto)
