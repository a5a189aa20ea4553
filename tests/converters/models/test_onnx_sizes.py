"""Sizes that an ONNX model leaves open."""

import numpy as np
import pytest

from converters import OnnxModelError, model_to_graph, model_to_onnx_text
from tests.converters.onnx_models import conv_relu, model, run, signature


@pytest.mark.parametrize("batch", ["N", "?", "0"])
def test_an_open_batch_is_one(batch):
    assert model_to_onnx_text(conv_relu(inputs=f"float[{batch},3,8,8] x")) == model_to_onnx_text(conv_relu())


def test_the_given_shape_is_taken():
    assert "float[2,3,9,9]" in signature(conv_relu(inputs="float[N,3,H,?] x"), (2, 3, 9, 9))


def test_sizes_of_one_name_are_one_size():
    two = "(int64[N,T] ids, float[N,T] mask) => (float[N,T] y) { f = Cast <to = 1> (ids)  y = Mul (f, mask) }"
    assert signature(model(two), (1, 7)).startswith("network (int64[1,7] v0, float[1,7] v1)")


@pytest.mark.parametrize(
    ("inputs", "shape", "message"),
    [
        ("float[N,3,H,8] x", None, r"input 'x': expected fixed sizes, got N,3,H,8\..*--input-shape"),
        ("float[1,3,8,8] x", (1, 3, 9, 9), r"input 'x': expected a shape like 1,3,8,8, got 1,3,9,9"),
        ("float[N,3,H,8] x", (1, 3, 9), r"input 'x': expected a shape like N,3,H,8, got 1,3,9"),
        ("float[N,3,H,8] x", (0, 3, 8, 8), r"input 'x': expected sizes of 1 or more, got 0,3,8,8"),
        ("float[N,3,H,8] x", (1, 3, -8, 8), r"input 'x': expected sizes of 1 or more, got 1,3,-8,8"),
        ("seq(float[1]) x", None, r"Graph must be in single static|input 'x': expected a tensor"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(inputs, shape, message):
    with pytest.raises(OnnxModelError, match=message):
        model_to_graph(conv_relu(inputs=inputs), shape)


def test_sizes_that_depend_on_the_data_are_open_in_the_text():
    proto = model("(float[4] x) => (int64[1,M] y) { y = NonZero (x) }")
    assert signature(proto) == "network (float[4] v0) => (int64[1,?] v1) {"
    assert run(proto, np.array([1, 0, 1, 0], np.float32))[0].tolist() == [[0, 2]]
