"""What is no network, or no ONNX file, is refused in one line."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.helper import make_tensor

from converters import OnnxModelError, model_to_onnx_text, to_model
from tests.converters.onnx_models import model, tensor


def cut_short(array):
    array.raw_data = array.raw_data[:-4]
    return array


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
            "Conv 'y': expected inputs that fit, got a window larger than its input",
        ),
        (
            model("(float[1,4,9,9] x) => (float[1,5,3,3] y) { y = Conv (x, w) }", tensor("w", 5, 3, 7, 7)),
            "Conv 'y': expected inputs that fit, got 4 channels for weights that take 3",
        ),
        (
            model("(float[1,4,9,9] x) => (float[1,6,7,7] y) { y = Conv <group = 4> (x, w) }", tensor("w", 6, 1, 3, 3)),
            "Conv 'y': expected inputs that fit, got 6 filters in 4 groups",
        ),
        (
            model(
                "(float[1,4,3,3] x) => (float[1,6,5,5] y) { y = ConvTranspose (x, w, b) }",
                tensor("w", 4, 6, 3, 3),
                tensor("b", 7),
            ),
            "ConvTranspose 'y': expected inputs that fit, got a bias of 7 for 6 filters",
        ),
        (
            model("(float[2,3] x) => (float[2,4] y) { y = Gemm (x, w, b) }", tensor("w", 3, 4), tensor("b", 7)),
            "Gemm 'y': expected inputs that fit, got weights of 7 for 2,4",
        ),
        (
            model(
                "(float[2,8] x) => (float[2,8] y) { y = LayerNormalization (x, w, b) }", tensor("w", 8), tensor("b", 7)
            ),
            "LayerNormalization 'y': expected inputs that fit, got weights of 7 for 2,8",
        ),
        (
            model(
                "(float[1,4] x) => (float[1] y) { y = Gather <axis = 1> (x, i) }",
                numpy_helper.from_array(np.array(5), "i"),
            ),
            "Gather 'y': expected inputs that fit, got the index 5 into 4",
        ),
        (
            model("(float[1,3] x) => (float[1,3] y) { y = MatMul (x, w) }", tensor("w", 3, 3), tensor("w", 3, 3)),
            "expected one array named 'w', got two",
        ),
        (
            model(
                "(float[1,4] x) => (float[M,N] y) { s = Constant <value = int64[2] {4,1}> ()"
                "s = Constant <value = int64[2] {1,4}> () y = Reshape (x, s) }"
            ),
            "expected one array named 's', got two",
        ),
        (
            model(
                "(float[1,4] x) => (float[M,N] y) { s = Constant <value = int64[2] {4,1}> () y = Reshape (x, s) }",
                numpy_helper.from_array(np.array([1, 4]), "s"),
            ),
            "expected one array named 's', got two",
        ),
        (
            model("(float[1,3] x) => (float[1,3] y) { y = MatMul (x, w) }", cut_short(tensor("w", 3, 3))),
            "expected data of 'w' for its sizes 3,3, got 32 bytes",
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
            model("(float[1] x) => (float[1] y) { y = block.x.Mine (x) }", domain="block.x"),
            "domain block.x to be the prelude's, got Mine",
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
        "groups",
        "bias",
        "bias of Gemm",
        "bias of a norm",
        "index",
        "twice",
        "twice in nodes",
        "in a node and stored",
        "cut short",
        "import",
        "branch",
        "own domain",
        "domain like our own",
        "tensor attribute",
        "opset",
        "old Hardmax",
    ],
)
def test_what_is_no_network_is_refused_in_one_line(proto, message):
    with pytest.raises(OnnxModelError, match=f"^model: .*({message})") as caught:
        model_to_onnx_text(proto)
    assert "\n" not in str(caught.value)


def test_a_refusal_has_no_place_in_the_code_of_onnx():
    with pytest.raises(OnnxModelError) as caught:
        model_to_onnx_text(model("(float[1] x) => (float[1] y) { y = Relu (x) }", opset=999))
    assert "invalid version" in str(caught.value)
    assert "Assertion" not in str(caught.value)


def test_a_refusal_by_an_adapter_of_onnx_has_no_place_in_its_code_either():
    norm = "(float[1,3,2] x) => (float[1,3,2] y) { y = BatchNormalization <spatial = 0> (x, w, w, w, w) }"
    with pytest.raises(OnnxModelError, match="got: Attribute spatial must have value 1"):
        model_to_onnx_text(model(norm, tensor("w", 3, 2), opset=7))


def test_data_of_a_constant_that_are_cut_short_are_refused():
    proto = model("(float[1,3] x) => (float[1,3] y) { w = Constant <value = float[1,3] {1, 2, 3}> ()  y = Add (x, w) }")
    del proto.graph.node[0].attribute[0].t.float_data[2:]
    with pytest.raises(OnnxModelError, match=r"expected data of .* for its sizes 1,3, got 2 numbers"):
        model_to_onnx_text(proto)


def test_weights_of_one_axis_are_no_convolution():
    proto = model("(float[1,3,8,8] x) => (float y) { y = Conv <kernel_shape = [3, 3]> (x, w) }", tensor("w", 5))
    with pytest.raises(OnnxModelError, match="expected inputs that fit, got"):
        model_to_onnx_text(proto)


@pytest.mark.parametrize("shape", [(8,), (1, 8), (3, 8), (1, 1, 8), (2, 3, 8), (1,), ()])
def test_a_norm_may_be_scaled_along_more_axes_than_it_normalises(shape):
    weights = 1 + np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 9
    graph = "(float[2,3,8] x) => (float[2,3,8] y) { y = LayerNormalization (x, w) }"
    text = model_to_onnx_text(model(graph, numpy_helper.from_array(weights, "w")))
    assert "LayerNormalization" in text
    onnx.checker.check_model(to_model(text), full_check=True)


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


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        (numpy_helper.from_array(np.array([2, 2]), "s"), "expected data of 's' for its sizes 1, got 16 bytes"),
        (
            make_tensor("s", TensorProto.INT64, [2], [2, 2]),
            "expected data of 's' for its sizes 1, got 2 numbers",
        ),
    ],
    ids=["bytes", "numbers"],
)
def test_a_tensor_that_lies_about_its_shape_is_refused(sizes, told):
    proto = model("(float[1,4] x) => (float[2,2] y) { y = Reshape (x, s) }", sizes)
    proto.graph.initializer[0].dims[0] = 1
    with pytest.raises(OnnxModelError, match=told):
        model_to_onnx_text(proto)
