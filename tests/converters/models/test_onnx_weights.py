"""Weights of any ONNX model: however they are kept, and of whatever type, known by shape alone."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from converters import OnnxModelError, model_to_graph, model_to_onnx_text, statistics, to_model
from tests.converters.onnx_models import CONV_RELU, QUANTISED, body, conv_relu, model, run, tensor


def test_weights_are_known_by_shape_alone(tmp_path):
    onnx.save(conv_relu(), tmp_path / "inside.onnx")
    onnx.save(conv_relu(), tmp_path / "outside.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    (tmp_path / "weights").unlink()  # nobody misses it
    zeros = conv_relu()
    for weight in zeros.graph.initializer:
        weight.raw_data = bytes(len(weight.raw_data))
    texts = {model_to_onnx_text(given) for given in (tmp_path / "inside.onnx", tmp_path / "outside.onnx", zeros)}
    assert len(texts) == 1


def test_what_others_note_of_a_model_is_not_read():
    noted = conv_relu()
    noted.metadata_props.add(key="learned", value="on ImageNet")
    assert statistics(model_to_graph(noted)) == statistics(model_to_graph(conv_relu()))


def test_external_integers_that_shape_the_computation_are_read(tmp_path):
    reshape = model("(float[1,4] x) => (float[2,2] y) { y = Reshape (x, s) }")
    reshape.graph.initializer.append(numpy_helper.from_array(np.array([2, 2]), "s"))
    onnx.save(reshape, tmp_path / "m.onnx", save_as_external_data=True, location="data", size_threshold=0)
    assert body(tmp_path / "m.onnx") == ["v1 = nn.Reshape <shape: ints = [2, 2]> (v0)"]


@pytest.mark.parametrize("as_node", [False, True])
def test_external_numbers_that_say_what_is_computed_are_read(as_node, tmp_path):
    def saved(name, nodes, constant, external):
        proto = model(f"(float[1,4,6,6] x) => (float[a,b,c,d] y) {{ {nodes} }}")
        if as_node:
            proto.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["c"], value=constant))
        else:
            proto.graph.initializer.append(constant)
        outside = {"save_as_external_data": external, "location": f"{name}.data", "size_threshold": 0}
        onnx.save(proto, tmp_path / name, convert_attribute=as_node, **outside)
        return model_to_onnx_text(tmp_path / name)

    for nodes, values in (("y = Mul (x, c)", (0.5, 3.0)), ('y = Resize (x, "", c)', ([1, 1, 2, 2], [1, 1, 3, 3]))):
        constants = [numpy_helper.from_array(np.array(value, np.float32), "c") for value in values]
        inside, outside = ([saved("m.onnx", nodes, x, external) for x in constants] for external in (False, True))
        assert inside == outside
        assert len(set(inside)) == 2


def test_data_that_say_what_is_computed_are_missed(tmp_path):
    reshape = model("(float[1,4] x) => (float[2,2] y) { y = Reshape (x, s) }")
    reshape.graph.initializer.append(numpy_helper.from_array(np.array([2, 2]), "s"))
    onnx.save(reshape, tmp_path / "m.onnx", save_as_external_data=True, location="data", size_threshold=0)
    (tmp_path / "data").unlink()
    with pytest.raises(OnnxModelError, match=r"m\.onnx: expected the data of 's', which determines .*'data', next to"):
        model_to_onnx_text(tmp_path / "m.onnx")


def test_data_that_say_nothing_are_not_missed(tmp_path):
    text = """(float[1,4] x) => (float[1,4] y) { d = Reshape (x, s)  w = DequantizeLinear (q, z, o)  c = MatMul (x, w)
        y = Add (c, b) }"""
    weights = [tensor("q", 4, 4, dtype=np.int8), tensor("z"), tensor("o", dtype=np.int8), tensor("b", 4)]
    proto = model(text, *weights, tensor("unread", dtype=np.int64), numpy_helper.from_array(np.array([2, 2]), "s"))
    whole = statistics(model_to_graph(proto))
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="data", size_threshold=0)
    (tmp_path / "data").write_bytes(b"broken off")
    found = statistics(model_to_graph(tmp_path / "m.onnx"))
    assert (found.params, found.macs) == (whole.params, whole.macs) == (16 + 4, 16)


def test_integer_weights_that_are_cast_are_weights():
    text = "(int32[2,4] x) => (int32[2,5] y) { w = Cast <to = 6> (q)  y = MatMul (x, w) }"
    counts = statistics(model_to_graph(model(text, tensor("q", 4, 5, dtype=np.int8))))
    assert counts.macs == 2 * 5 * 4


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64, np.float32])
def test_indices_may_be_cast_of_any_type(dtype):
    def text(indices):
        proto = model("(float[1,4,6,6] x) => (float[1,2,6,6] y) { i = Cast <to = 7> (c) y = Gather <axis = 1> (x, i) }")
        proto.graph.initializer.append(numpy_helper.from_array(np.array(indices, dtype), "c"))
        return body(proto)

    assert text([1, 0]) != text([3, 2])


def test_weights_may_be_constants_inputs_or_sparse():
    initialised = conv_relu()
    listed = conv_relu(inputs="float[1,3,8,8] x, float[4,3,3,3] w, float[4] b")
    constant = model(CONV_RELU)
    for weight in initialised.graph.initializer:
        constant.graph.node.insert(0, onnx.helper.make_node("Constant", [], [weight.name], value=weight))
    sparse = model(CONV_RELU, tensor("b", 4))
    numbers, places = tensor("w", 2), numpy_helper.from_array(np.array([3, 5]))
    sparse.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(numbers, places, [4, 3, 3, 3]))
    assert len({model_to_onnx_text(proto) for proto in (initialised, listed, constant, sparse)}) == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.int64, np.bool_])
def test_weights_of_other_types_are_cast(dtype):
    name = {np.float16: "float16", np.float64: "double", np.int8: "int8", np.int64: "int64", np.bool_: "bool"}[dtype]
    proto = model(f"(int64[2] i) => ({name}[2,6] y) {{ y = Gather (w, i) }}", tensor("w", 900, 6, dtype=dtype))
    assert "dtype: int = " in body(proto)[0]
    (y,) = run(proto, np.zeros(2, np.int64))
    assert (y.dtype, y.shape) == (dtype, (2, 6))


def test_a_half_precision_layer_stays_an_operator():
    proto = model(
        "(float16[1,3,8,8] x) => (float16[1,4,6,6] y) { y = Conv (x, w) }", tensor("w", 4, 3, 3, 3, dtype=np.float16)
    )
    assert [line.split()[2] for line in body(proto)] == ["nn.Weight", "Conv"]
    assert run(proto, np.zeros((1, 3, 8, 8), np.float16))[0].shape == (1, 4, 6, 6)


def test_a_number_made_of_a_number_and_a_weight_has_no_axes():
    proto = model(
        """(float[4] x) => (float y) {
        m = ReduceMean <keepdims = 0> (x)  s = ReduceSum <keepdims = 0> (w)  y = Mul (m, s) }""",
        tensor("w", 4, 6),
    )
    assert body(proto)[1:3] == [
        "v2 = nn.Weight <weight_shape: ints = [1]> ()",
        "v3 = nn.Reshape <shape: ints = []> (v2)",
    ]
    onnx_text = model_to_onnx_text(proto)
    assert model_to_onnx_text(to_model(onnx_text)) == onnx_text
    assert run(proto, np.ones(4, np.float32))[0].shape == ()


def test_an_empty_part_of_a_weight_is_written():
    proto = model(
        """(float[4,2] x) => (float[4,2] y) {
        start = Constant <value_ints = [6]> ()  end = Constant <value_ints = [9]> ()
        axis = Constant <value_ints = [1]> ()
        rest = Slice (w, start, end, axis)  y = Concat <axis = 1> (x, rest) }""",
        tensor("w", 4, 6),
    )
    assert body(proto)[0] == "v1 = nn.Zeros <shape: ints = [4, 0]> ()"
    np.testing.assert_array_equal(run(proto, np.ones((4, 2), np.float32))[0], np.ones((4, 2)))


def test_quantised_weights_are_not_computed_ahead():
    proto = model(
        "(float[1,4] x) => (float[1,4] y) { w = DequantizeLinear (q, s, z)  y = MatMul (x, w) }",
        tensor("q", 4, 4, dtype=np.int8),
        tensor("s"),
        tensor("z", dtype=np.int8),
    )
    assert "DequantizeLinear" in "".join(body(proto))
    assert run(proto, np.ones((1, 4), np.float32))[0].shape == (1, 4)


@pytest.mark.parametrize("name", QUANTISED)
def test_quantised_biases_are_known_by_shape_alone(name):
    def text(bias):
        zero, scale = tensor("z", dtype=np.int8), tensor("s")
        weights = [tensor("q", 4, 2, 1, 1, dtype=np.int8), onnx.numpy_helper.from_array(np.array(bias, np.int32), "b")]
        ends = "(float[1,2,5,5] x) => (float[1,4,5,5] y)"
        return body(model(f"{ends} {{ {QUANTISED[name]} }}", *weights, zero, scale))

    lines = text((-5291, 546, 160, 7))
    assert lines == text((3, 2, 1, 0))
    assert any("nn.Weight <dtype: int = 6, weight_shape: ints = [4]>" in line for line in lines)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_slope_without_axes_is_a_weight_of_one_number(shape):
    proto = model("(float[1,4] x) => (float[1,4] y) { y = PRelu (x, s) }", tensor("s", *shape))
    assert body(proto) == ["v1 = nn.Weight <weight_shape: ints = [1]> ()", "v2 = PRelu (v0, v1)"]
    assert run(proto, np.ones((1, 4), np.float32))[0].tolist() == [[1, 1, 1, 1]]


@pytest.mark.parametrize("product", ["m = MatMul (x, w)", "t = Transpose (w)  m = MatMul (x, t)"])
def test_a_single_number_by_which_a_layer_multiplies_is_a_weight(product):
    proto = model(f"(float[1,5,1] x) => (float[1,5,1] m) {{ {product} }}", tensor("w", 1, 1))
    assert body(proto) == ["v1 = nn.Linear <weight_shape: ints = [1, 1]> (v0)"]
    assert statistics(model_to_graph(proto)).params == 1


TIED = "e = Gather (w, i)  t = Transpose <perm = [1,0]> (w)  m = MatMul (e, t)"


@pytest.mark.parametrize(("last", "biases"), [("y = Identity (m)", 0), ("y = Add (m, b)", 9)])
def test_a_weight_that_is_used_in_two_ways_counts_once(last, biases):
    weights = [tensor("w", 9, 6), tensor("b", 9)][: 1 + (biases > 0)]
    proto = model(f"(int64[1,4] i) => (float[1,4,9] y) {{ {TIED}  {last} }}", *weights)
    counts = statistics(model_to_graph(proto))
    assert (counts.params, counts.macs) == (54 + biases, 4 * 9 * 6)


COMPUTED = {
    "scaled": ("(float[1,4] x) => (float[1,6] y) { v = Mul (w, g)  y = MatMul (x, v) }", {"w": (4, 6), "g": (4, 1)}),
    "a part": (
        "(float[2,6] x) => (float[2,6] y) { i = Constant <value_ints = [0, 1]> ()  p = Gather (w, i)  y = Add (x, p) }",
        {"w": (9, 6)},
    ),
    "in two layers": (
        "(float[1,4] x) => (float[1,4] y) { s = Tanh (w)  h = MatMul (x, s)  y = MatMul (h, w) }",
        {"w": (4, 4)},
    ),
    "of a layer norm": (
        """(float[1,4] x) => (float[1,4] y) { a = Tanh (w)  b = Exp (w)  y = LayerNormalization (x, a, b) }""",
        {"w": (4,)},
    ),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_of_computed_weights_those_count_that_they_are_computed_of(name):
    text, shapes = COMPUTED[name]
    proto = model(text, *(tensor(weight, *shape) for weight, shape in shapes.items()))
    assert statistics(model_to_graph(proto)).params == sum(np.prod(shape) for shape in shapes.values())


def test_running_statistics_do_not_count_in_16_bits_either():
    weights = [tensor(name, 4, dtype=np.float16) for name in ("s", "b", "m", "v")]
    text = "(float16[1,4,5,5] x) => (float16[1,4,5,5] y) { y = BatchNormalization (x, s, b, m, v) }"
    assert statistics(model_to_graph(model(text, *weights))).params == 8
