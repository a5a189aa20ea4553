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
    with pytest.raises(OnnxModelError, match="input 'mask': expected a shape like N,T, got 1,8"):
        model_to_graph(model(two), [(1, 7), (1, 8)])


def test_shapes_of_several_inputs_may_be_given():
    two = "(int64[N,T] ids, float[N,U] mask) => (float[N,V] y) { f = Cast <to=1> (ids)  y = Concat <axis=1> (f, mask) }"
    assert signature(model(two), [(1, 7), (1, 5)]).startswith("network (int64[1,7] v0, float[1,5] v1)")
    with pytest.raises(OnnxModelError, match=r"input 'mask': expected fixed sizes, got N,U\. Give the shape of every"):
        model_to_graph(model(two), (1, 7))
    unranked = model(two)
    without_shape(unranked, unranked.graph.input)
    assert signature(unranked, [(1, 7), (1, 5)]).startswith("network (int64[1,7] v0, float[1,5] v1)")


def test_an_input_that_nothing_reads_is_left_out_unless_it_is_the_only_one():
    ends = "(float[1,4] x, float[1,3] u) => (float[1,4] y)"
    assert signature(model(f"{ends} {{ y = Relu (x) }}")).startswith("network (float[1,4] v0) =>")
    nothing = "(float[1,4] x) => (float[2] y) { y = Constant <value_floats = [1.0, 2.0]> () }"
    assert signature(model(nothing)).startswith("network (float[1,4] v0) =>")


@pytest.mark.parametrize(
    ("inputs", "shape", "message"),
    [
        ("float[N,3,H,8] x", None, r"input 'x': expected fixed sizes, got N,3,H,8\..*--input-shape"),
        ("float[1,3,8,8] x", (1, 3, 9, 9), r"input 'x': expected a shape like 1,3,8,8, got 1,3,9,9"),
        ("float[N,3,H,8] x", (1, 3, 9), r"input 'x': expected a shape like N,3,H,8, got 1,3,9"),
        ("float[N,3,H,8] x", (0, 3, 8, 8), r"input shape: expected sizes of 1 or more, got 0,3,8,8"),
        ("float[N,3,H,8] x", (1, 3, -8, 8), r"input shape: expected sizes of 1 or more, got 1,3,-8,8"),
        (
            "float[N,3,8,8] x",
            [(1, 3, 8, 8), (1, 4)],
            r"expected inputs of shape 1,3,8,8 and 1,4, got a model that takes only x",
        ),
        ("float[N,3,8,8] x, float s", [(1, 3, 8, 8), (2,)], r"input 's': expected a shape like \(\), got 2\."),
        ("float[N,3,8,8] x", (), r"input 'x': expected a shape like N,3,8,8, got \(\)\."),
        ("float[N,3,8,8] x, seq(float[1]) s", [(1, 3, 8, 8), (2,)], "input .s.: expected a tensor of known rank, got"),
        ("seq(float[1]) x", None, r"Graph must be in single static|input 'x': expected a tensor"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(inputs, shape, message):
    with pytest.raises(OnnxModelError, match=message):
        model_to_graph(conv_relu(inputs=inputs), shape)


def without_shape(proto, values):
    for value in values:
        value.type.tensor_type.ClearField("shape")
    return proto


def test_ranks_that_a_file_does_not_say_are_found():
    proto, plain = conv_relu(), model_to_onnx_text(conv_relu())
    assert model_to_onnx_text(without_shape(proto, proto.graph.output)) == plain
    assert model_to_onnx_text(without_shape(proto, proto.graph.input), (1, 3, 8, 8)) == plain


def test_an_output_may_have_no_type():
    proto = conv_relu()
    proto.graph.output[0].ClearField("type")
    assert model_to_onnx_text(proto) == model_to_onnx_text(conv_relu())


def test_a_rank_that_stays_unknown_is_refused():
    proto = conv_relu()
    with pytest.raises(OnnxModelError, match="input 'x': expected a tensor of known rank, got one without a shape"):
        model_to_graph(without_shape(proto, proto.graph.input))
    other = model("(float[1,3] x) => (float[1,3] y) { y = com.x.Twice (x) }")
    with pytest.raises(OnnxModelError, match="output 'y': expected a tensor of known rank, got one without a shape"):
        model_to_graph(without_shape(other, other.graph.output))


def test_the_node_that_makes_a_rank_unknown_is_named():
    proto = model(
        "(float[1,3] x, int64 n, bool more) => (float[1,3] y) {"
        " a = Relu (x)"
        " b = Loop (n, more, a) <body = g (int64 i, bool c, float[1,3] u) => (bool d, float[M,N] v)"
        " { d = Identity (c) v = Relu (u) }>"
        " c = Sqrt (x)"
        " y = Add (c, b) }"
    )
    with pytest.raises(OnnxModelError, match=r"output 'y': .* got one without a shape, from Loop 'b'\."):
        model_to_graph(without_shape(proto, proto.graph.output))


def test_sizes_that_depend_on_the_data_are_open_in_the_text():
    proto = model("(float[4] x) => (int64[1,M] y) { y = NonZero (x) }")
    assert signature(proto) == "network (float[4] v0) => (int64[1,?] v1) {"
    assert run(proto, np.array([1, 0, 1, 0], np.float32))[0].tolist() == [[0, 2]]
