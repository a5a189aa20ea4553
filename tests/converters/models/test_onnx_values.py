"""Constants of any ONNX model: what says what is computed is written down, and is no weight."""

import numpy as np
import pytest
from onnx import numpy_helper

from converters import model_to_graph, model_to_onnx_text, statistics, to_model
from tests.converters.onnx_models import body, model, run, tensor


def test_constants_may_be_empty():
    proto = model("(float[3,2,4] x) => (float[3,2,4] y) { y = Concat <axis = 1> (x, e) }", tensor("e", 3, 0, 4))
    assert run(proto, np.ones((3, 2, 4), np.float32))[0].shape == (3, 2, 4)


def test_a_division_by_zero_among_constants_is_silent(recwarn):
    steps = "a = Constant <value_int = 1> ()  z = Constant <value_int = 0> ()  d = Div (a, z)  f = Cast <to = 1> (d)"
    body(model(f"(float[2] x) => (float[2] y) {{ {steps}  y = Add (x, f) }}"))
    assert not recwarn.list


@pytest.mark.parametrize("made", ["Concat <axis = 0> (same, larger)", "Identity (all)"])
def test_scales_that_are_put_together_are_no_weights(made):
    def resized(factor):
        scales = {"same": [1, 1], "larger": [factor] * 2, "all": [1, 1, factor, factor]}
        size = 8 * factor
        return model(
            f"(float[1,4,8,8] x) => (float[1,4,{size},{size}] y) {{ scales = {made}  y = Resize (x, , scales) }}",
            *(numpy_helper.from_array(np.array(value, np.float32), name) for name, value in scales.items()),
            opset=18,
        )

    twice, thrice = (model_to_onnx_text(resized(factor)) for factor in (2, 3))
    assert twice != thrice
    assert "nn.Weight" not in twice


@pytest.mark.parametrize(
    ("given", "said"),
    [("x, none, scales", '(v0, "", v1)'), ("x, none, none, sizes", '(v0, "", "", v1)')],
)
def test_operands_without_elements_are_left_out(given, said):
    constants = [
        numpy_helper.from_array(np.array(value, dtype), name)
        for name, value, dtype in [
            ("none", [], np.float32),
            ("scales", [1, 1, 2, 2], np.float32),
            ("sizes", [1, 4, 16, 16], np.int64),
        ]
        if name in given
    ]
    proto = model(f"(float[1,4,8,8] x) => (float[1,4,16,16] y) {{ y = Resize ({given}) }}", *constants, opset=13)
    assert body(proto)[-1] == f"v2 = Resize {said}"


def test_scales_that_a_function_is_called_with_are_no_weights():
    def resized(factor):
        text = f"""(float[1,4,8,8] x) => (float[1,4,{8 * factor},{8 * factor}] y) {{ y = com.x.Outer (scales, x) }}
        <domain: "com.x", opset_import: ["" : 18, "com.x" : 3]> Outer (s, a) => (b) {{ b = com.x.Up (a, s) }}
        <domain: "com.x", opset_import: ["" : 18]> Up (a, s) => (b) {{ b = Resize (a, , s) }}"""
        return model(text, numpy_helper.from_array(np.array([1, 1, factor, factor], np.float32), "scales"), opset=18)

    assert body(resized(3))[0] == "v1 = Constant <value_floats: floats = [1, 1, 3, 3]> ()"


def test_a_bias_of_zeros_is_none_whatever_its_shape():
    steps = "s = Constant <value_ints = [4, 2]> ()  z = Constant <value_float = 0.0> ()  b = Expand (z, s)"
    proto = model(
        f"(float[1,3,4,4,4] x) => (float[1,4,4,4,4] y) {{ {steps}  y = Conv (x, w, b) }}", tensor("w", 4, 3, 1, 1, 1)
    )
    assert "nn.ConvBias" not in model_to_onnx_text(proto)


def test_an_array_made_of_indices_that_are_not_written_is_read_again_as_it_is():
    indices = numpy_helper.from_array(np.arange(100).reshape(100, 1) % 7, "i")
    sizes = numpy_helper.from_array(np.array([100, 50]), "s")  # 5,000 numbers: too many to be computed
    text = "(float[100,50] x) => (float[100,50] y) { e = Expand (i, s)  y = GatherElements (x, e) }"
    onnx_text = model_to_onnx_text(model(text, indices, sizes))
    assert "nn.Weight <dtype: int = 7, weight_shape: ints = [100, 50]>" in onnx_text
    assert model_to_onnx_text(to_model(onnx_text)) == onnx_text


def test_a_number_may_have_axes():
    number = numpy_helper.from_array(np.full((1, 1, 1), 2, np.float32), "two")
    proto = model("(float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Mul (x, two) }", number)
    assert body(proto) == ["v1 = nn.Scale <factor: float = 2> (v0)"]


def test_a_cast_to_the_type_of_a_value_is_nothing():
    proto = model("(float[1,4] x) => (float[1,4] y) { a = Cast <to = 1> (x)  b = Relu (a)  y = Cast <to = 1> (b) }")
    assert body(proto) == ["v1 = Relu (v0)"]


def test_a_weight_that_is_cast_to_its_type_for_two_readers_is_one_weight():
    steps = "a = Cast <to = 1> (w)  b = Cast <to = 1> (w)  m = MatMul (x, a)  y = MatMul (m, b)"
    proto = model(f"(float[1,4] x) => (float[1,4] y) {{ {steps} }}", tensor("w", 4, 4))
    assert statistics(model_to_graph(proto)).params == 16


def test_what_is_made_of_numbers_that_the_text_lacks_is_a_weight():
    steps = "three = Constant <value_int = 3> ()  few = Min (i, three)  y = GatherElements (x, few)"
    proto = model(f"(float[9,9] x) => (float[9,9] y) {{ {steps} }}", tensor("i", 9, 9, dtype=np.int64))
    assert body(proto) == [
        "v1 = nn.Weight <dtype: int = 7, weight_shape: ints = [9, 9]> ()",
        "v2 = GatherElements (v0, v1)",
    ]
    onnx_text = model_to_onnx_text(proto)
    assert model_to_onnx_text(to_model(onnx_text)) == onnx_text
