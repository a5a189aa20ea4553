"""What ONNX Runtime fuses is read as the operators that it was made of."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from converters import OnnxModelError, model_to_graph, model_to_onnx_text, statistics
from tests.converters.onnx_models import body, model, tensor

ACTIVATIONS = {
    "relu": "y = Relu (c)",
    "sigmoid": "y = Sigmoid (c)",
    "tanh": "y = Tanh (c)",
    "leaky": "y = LeakyRelu <alpha = 0.2> (c)",
    "hard": "y = HardSigmoid <alpha = 0.25, beta = 0.5> (c)",
    "elu": "y = Elu <alpha = 0.5> (c)",
    "selu": "y = Selu <alpha = 1.5, gamma = 1.25> (c)",
    "softplus": "y = Softplus (c)",
    "softsign": "y = Softsign (c)",
    "thresholded": "y = ThresholdedRelu <alpha = 0.5> (c)",
    "clip": "l = Constant <value_float = 0.0> () h = Constant <value_float = 6.0> () y = Clip (c, l, h)",
}
ONLY_BEHIND_GEMM = ("elu", "selu", "softplus", "softsign", "thresholded")
CONV = "(float[1,4,6,6] x) => (float[1,4,6,6] y) {{ c = Conv <pads = [1,1,1,1]> (x, w, b) {} }}"
GEMM = "(float[2,5] x) => (float[2,4] y) {{ c = Gemm <transB = 1> (x, w, b) {} }}"
PRODUCTS = {
    "factor": "=> (float[2,3,3] y) { t = Transpose <perm = [0,2,1]> (x) m = MatMul (x, t) y = Mul (m, f) }",
    "first": "=> (float[2,4,4] y) { t = Transpose <perm = [0,2,1]> (x) y = MatMul (t, x) }",
    "weights": "=> (float[2,2,3] y) { t = Transpose <perm = [0,2,1]> (x) y = MatMul (w, t) }",
}


def optimised(proto, tmp_path):
    """As ``onnxruntime`` writes it."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.log_severity_level = 3
    onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(tmp_path / "optimised.onnx")


def is_fused(proto):
    return any(node.domain == "com.microsoft" for node in proto.graph.node)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("text", "shape"), [(CONV, (4, 4, 3, 3)), (GEMM, (4, 5))], ids=["conv", "gemm"])
def test_layers_and_their_activations(text, shape, activation, tmp_path):
    plain = model(text.format(ACTIVATIONS[activation]), tensor("w", *shape), tensor("b", 4))
    fused = optimised(plain, tmp_path)
    assert is_fused(fused) or activation in (("clip",) if text is GEMM else ONLY_BEHIND_GEMM)
    assert model_to_onnx_text(fused) == model_to_onnx_text(plain)
    assert statistics(model_to_graph(fused)) == statistics(model_to_graph(plain))


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("opset", [11, 20])
def test_products_with_factors_and_transpositions(product, kind, opset, tmp_path):
    text = f"(float[2,3,4] x) {PRODUCTS[product]}".replace("float[", "double[" if kind == np.float64 else "float[")
    factor = onnx.numpy_helper.from_array(np.array(0.25, kind), "f")
    plain = model(text, tensor("w", 2, 4, dtype=kind), factor, opset=opset)
    fused = optimised(plain, tmp_path)
    assert is_fused(fused)
    assert model_to_onnx_text(fused) == model_to_onnx_text(plain)
    assert statistics(model_to_graph(fused)) == statistics(model_to_graph(plain))


def test_a_product_of_what_is_not_known_stays():
    text = "(float[2,3,4] x) => (float[2,4,4] y) { a = com.microsoft.Mine (x) "
    proto = model(f"{text} y = com.microsoft.FusedMatMul <transA = 1> (a, x) }}", domain="com.microsoft")
    assert "com.microsoft.FusedMatMul" in model_to_onnx_text(proto)


def test_a_sum_between_a_convolution_and_its_activation():
    fused = model(
        "(float[1,4,6,6] x, float[1,4,6,6] z) => (float[1,4,6,6] y) { y = com.microsoft.FusedConv "
        '<activation = "Relu"> (x, w, b, z) }',
        *(tensor("w", 4, 4, 1, 1), tensor("b", 4)),
        domain="com.microsoft",
    )
    names = [line.split(" = ")[1].split(" ")[0] for line in body(fused)]
    assert names == ["nn.ConvBias", "Sum", "Relu"]


def test_names_of_the_model_are_left_to_it():
    fused = model(
        "(float[1,4,6,6] fused0, float[1] fused2) => (float[1,4,6,6] y) { fused1 = Neg (fused0) "
        'y = com.microsoft.FusedConv <activation = "Relu"> (fused1, w) }',
        tensor("w", 4, 4, 1, 1),
        domain="com.microsoft",
    )
    assert len(body(fused)) == 3


def test_a_fused_layer_may_have_no_activation():
    text = "(float[1,4,6,6] x) => (float[1,4,6,6] y) { y = com.microsoft.FusedConv (x, w) }"
    assert body(model(text, tensor("w", 4, 4, 1, 1), domain="com.microsoft"))[0].startswith("v1 = nn.Conv ")


@pytest.mark.parametrize("operator", ['FusedConv <activation = "Gelu"> (x, w)', "Attention <num_heads = 2> (x, w)"])
def test_what_cannot_be_counted_is_refused(operator):
    proto = model(
        f"(float[1,4,6,6] x) => (float[1,4,6,6] y) {{ y = com.microsoft.{operator} }}",
        tensor("w", 4, 4, 1, 1),
        domain="com.microsoft",
    )
    name = operator.split(" ")[0]
    with pytest.raises(
        ValueError, match=rf"whose multiply-accumulates are known, got com\.microsoft\.{name} with weights"
    ):
        statistics(model_to_graph(proto))
    assert f"com.microsoft.{name}" in model_to_onnx_text(proto)


@pytest.mark.parametrize(
    "operator",
    [
        'FusedConv <activation = "Clip"> (x, w)',
        "FusedConv <activation = 3> (x, w)",
        'FusedConv <activation = "LeakyRelu", activation_params = 3.0> (x, w)',
        'FusedMatMul <alpha = "one"> (x, x)',
    ],
)
def test_other_attributes_than_those_of_the_runtime_are_refused(operator):
    text = f"(float[1,4,6,6] x) => (float[1,4,6,6] y) {{ y = com.microsoft.{operator} }}"
    with pytest.raises(OnnxModelError, match="expected fused operators as ONNX Runtime writes them, got: "):
        model_to_onnx_text(model(text, tensor("w", 4, 4, 1, 1), domain="com.microsoft"))


def test_other_domains_of_the_same_names_are_left_alone():
    node = helper.make_node("FusedConv", ["x", "w"], ["y"], domain="com.x", activation="Relu")
    proto = model("(float[1,4,6,6] x) => (float[1,4,6,6] y) { y = Relu (x) }", tensor("w", 4, 4, 1, 1))
    proto.graph.node[0].CopyFrom(node)
    assert "com.x.FusedConv" in model_to_onnx_text(proto)
