"""Any ONNX model: opsets, types, open sizes, external data, functions, operators nobody knows, and broken files."""

import re

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from converters import OnnxModelError, model_to_graph, model_to_onnx_text, statistics, to_model
from converters.text import parse, print_model
from tests.converters.models import body, model, run, signature, tensor

CONV_RELU = "(float[1,3,8,8] x) => (float[1,4,8,8] y) { c = Conv <pads = [1,1,1,1]> (x, w, b)  y = Relu (c) }"


def conv_relu(opset=20, inputs="float[1,3,8,8] x"):
    return model(CONV_RELU.replace("float[1,3,8,8] x", inputs), tensor("w", 4, 3, 3, 3), tensor("b", 4), opset=opset)


@pytest.mark.parametrize("opset", range(11, 27))
def test_every_opset_gives_the_same_text(opset):
    assert model_to_onnx_text(conv_relu(opset)) == model_to_onnx_text(conv_relu(20))


def test_an_older_opset_is_brought_forward():
    old = model(
        "(float[1,3,2,1] x) => (float[3,2] y) { a = Softmax <axis = 1> (x)  y = Squeeze <axes = [0,3]> (a) }", opset=11
    )
    (y,) = run(old, np.zeros((1, 3, 2, 1), np.float32))
    assert np.allclose(y, np.full((3, 2), 1 / 6))  # softmax over all axes from the given one on, as it was in opset 11


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
        ("seq(float[1]) x", None, r"Graph must be in single static|input 'x': expected a tensor"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(inputs, shape, message):
    with pytest.raises(OnnxModelError, match=message):
        model_to_graph(conv_relu(inputs=inputs), shape)


def test_weights_are_known_by_shape_alone(tmp_path):
    onnx.save(conv_relu(), tmp_path / "inside.onnx")
    onnx.save(conv_relu(), tmp_path / "outside.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    (tmp_path / "weights").unlink()  # nobody misses it
    zeros = conv_relu()
    for weight in zeros.graph.initializer:
        weight.raw_data = bytes(len(weight.raw_data))
    texts = {model_to_onnx_text(given) for given in (tmp_path / "inside.onnx", tmp_path / "outside.onnx", zeros)}
    assert len(texts) == 1


def test_external_integers_that_shape_the_computation_are_read(tmp_path):
    reshape = model("(float[1,4] x) => (float[2,2] y) { y = Reshape (x, s) }")
    reshape.graph.initializer.append(numpy_helper.from_array(np.array([2, 2]), "s"))
    onnx.save(reshape, tmp_path / "m.onnx", save_as_external_data=True, location="data", size_threshold=0)
    assert body(tmp_path / "m.onnx") == ["v1 = nn.Reshape <shape: ints = [2, 2]> (v0)"]


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


def test_other_element_types_keep_theirs():
    text = "(int64[1,4] x, bool[1,4] m) => (int64[1,4] y, float16[1,4] z) "
    text += "{ o = Constant <value_int = 1> ()  s = Add (x, o)  y = Where (m, s, t)  z = Cast <to = 10> (y) }"
    proto = model(text, tensor("t", 1, 4, dtype=np.int64))
    assert re.fullmatch(
        r"network \(int64\[1,4\] v0, bool\[1,4\] v1\) => \(int64\[1,4\] v\d, float16\[1,4\] v\d\) {", signature(proto)
    )
    y, z = run(proto, np.arange(4).reshape(1, 4), np.ones((1, 4), bool))
    assert y.tolist() == [[1, 2, 3, 4]]
    assert z.dtype == np.float16


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


def test_quantised_weights_are_not_computed_ahead():
    proto = model(
        "(float[1,4] x) => (float[1,4] y) { w = DequantizeLinear (q, s, z)  y = MatMul (x, w) }",
        tensor("q", 4, 4, dtype=np.int8),
        tensor("s"),
        tensor("z", dtype=np.int8),
    )
    assert "DequantizeLinear" in "".join(body(proto))
    assert run(proto, np.ones((1, 4), np.float32))[0].shape == (1, 4)


QUANTISED = {
    "dequantised": "w = DequantizeLinear (q, s, z)  c = DequantizeLinear (b, s)  y = Conv (x, w, c)",
    "integer": "i = QuantizeLinear (x, s, z)  o = QLinearConv (i, s, z, q, s, z, s, z, b)  "
    "y = DequantizeLinear (o, s, z)",
}


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


def test_inputs_that_are_left_out_stay_out():
    proto = model(
        "(float[5,1,3] x, float[1,1,4] h) => (float[1,1,4] y) "
        '{ "", y, "" = LSTM <hidden_size = 4> (x, w, r, "", "", h) }',
        tensor("w", 1, 16, 3),
        tensor("r", 1, 16, 4),
    )
    assert body(proto)[-1] == 'v4, v5 = LSTM <hidden_size: int = 4> (v0, v2, v3, "", "", v1)'
    assert run(proto, np.zeros((5, 1, 3), np.float32), np.zeros((1, 1, 4), np.float32))[0].shape == (1, 1, 4)


@pytest.mark.parametrize("op_type", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_layer_starts_from_zeros_however_it_says_so(op_type):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op_type]
    weights = tensor("w", 1, 4 * gates, 3), tensor("r", 1, 4 * gates, 4)
    zeros = numpy_helper.from_array(np.zeros((1, 1, 4), np.float32), "h")
    silent = model(f"(float[5,1,3] x) => (float[5,1,1,4] y) {{ y = {op_type} <hidden_size = 4> (x, w, r) }}", *weights)
    spoken = model(
        f'(float[5,1,3] x) => (float[5,1,1,4] y) {{ y = {op_type} <hidden_size = 4> (x, w, r, "", "", h) }}',
        *weights,
        zeros,
    )
    assert model_to_onnx_text(silent) == model_to_onnx_text(spoken)


def test_operators_of_other_domains_are_kept():
    text = "(float[N,4] x) => (float[N,8] y) { h = com.x.Widen <factor = 2> (x)  y = Relu (h) }"
    proto = model(text)
    assert body(proto) == ["v1 = com.x.Widen <factor: int = 2> (v0)", "v2 = Relu (v1)"]
    assert '"com.x" : 3' in model_to_onnx_text(proto)


def test_repeated_operators_of_other_domains_are_written_out():
    """In a function the checker takes no quantised convolution of an input without a type."""
    before = " ".join(f"c{i} = Sin (b{i})  d{i} = Tanh (c{i})  b{i + 1} = Exp (d{i})" for i in range(6))
    first = "q0 = QuantizeLinear (b6, s, z)"
    steps = " ".join(f"a{i} = QLinearConv (q{i}, s, z, w, s, z, s, z)  q{i + 1} = com.x.Mix (a{i})" for i in range(6))
    proto = model(
        f"(float[1,4,2,2] b0) => (float[1,4,2,2] y) {{ {before} {first} {steps}  y = DequantizeLinear (q6, s, z) }}",
        tensor("w", 4, 4, 1, 1, dtype=np.int8),
        tensor("s"),
        tensor("z", dtype=np.int8),
    )
    onnx_text = model_to_onnx_text(proto)
    assert print_model(parse(onnx_text)) == onnx_text
    assert (onnx_text.count("com.x.Mix"), onnx_text.count("Sin")) == (6, 1)
    assert '"block" : 1,"com.x" : 3]' in onnx_text


def test_sizes_that_depend_on_the_data_are_open_in_the_text():
    proto = model("(float[4] x) => (int64[1,M] y) { y = NonZero (x) }")
    assert signature(proto) == "network (float[4] v0) => (int64[1,?] v1) {"
    assert run(proto, np.array([1, 0, 1, 0], np.float32))[0].tolist() == [[0, 2]]


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


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        ("(float[2,4] x) => (float[2,5] y) { m = MatMul (x, w)  y = Add (m, b)", "d = Relu (m)"),
        ("(float[2,4] x) => (float[2,5] y) { m = MatMul (x, w)  y = Add (m, b)", "r = Relu (m)  d = MatMul (m, v)"),
        ("(float[1,2,4,4] x) => (float[1,2,3,3] y) { y, i = MaxPool <kernel_shape = [2,2]> (x)", "d = Identity (i)"),
        ("(float[2,4] x) => (float[2,5] y) { h = Add (x, x)  m = Mul (h, c)  y = MatMul (m, w)", "d = Relu (m)"),
    ],
)
def test_nodes_that_no_output_depends_on_change_nothing(text, dead):
    weights = [tensor("w", 4, 5), tensor("b", 5), tensor("v", 5, 4), numpy_helper.from_array(np.float32(0.5), "c")]
    alive, both = model(f"{text} }}", *weights), model(f"{text}  {dead} }}", *weights)
    assert model_to_onnx_text(both) == model_to_onnx_text(alive)
    assert statistics(model_to_graph(both)) == statistics(model_to_graph(alive))


def test_an_old_hardmax_that_no_output_depends_on_is_no_matter():
    alive, both = (
        model(f"(float[1,4] x) => (float[1,4] y) {{ y = Relu (x) {x} }}", opset=12) for x in ("", "d = Hardmax (x)")
    )
    assert model_to_onnx_text(both) == model_to_onnx_text(alive)


def test_several_outputs_of_a_node():
    proto = model(
        "(float[1,6] x) => (float[1,2] v, int64[1,2] i) { k = Constant <value_ints = [2]> () v, i = TopK (x, k) }"
    )
    values, indices = run(proto, np.arange(6, dtype=np.float32).reshape(1, 6))
    assert (values.tolist(), indices.tolist()) == ([[5, 4]], [[5, 4]])


@pytest.mark.parametrize(
    "text",
    [
        "(float[2] x) => (float[2] x2, float[2] x3) { x2 = Relu (x)  x3 = Relu (x) }",
        "(float[2] x) => (float[2] y, float[2] z) { y = Identity (x)  z = Relu (x) }",
        "(float[2] x) => (float[3] y, float[2] z) { y = Constant <value_floats = [1.0, 2.0, 3.0]> ()  z = Relu (x) }",
    ],
    ids=["twice the same", "the input", "a constant"],
)
def test_unusual_outputs(text):
    outputs = run(model(text), np.array([-1, 2], np.float32))
    assert len(outputs) == 2


def test_functions_are_written_out():
    text = """(float[1,4] x) => (float[1,4] y) { y = com.x.Twice (x) }
    <domain: "com.x", opset_import: ["" : 20]> Twice (a) => (c) { b = Sigmoid (a)  c = Sigmoid (b) }"""
    assert body(model(text)) == ["v1 = Sigmoid (v0)", "v2 = Sigmoid (v1)"]


@pytest.mark.parametrize("proto", [conv_relu(), model("(int64[1,4] x) => (float[1,4] y) { y = Cast <to = 1> (x) }")])
def test_our_own_model_gives_its_text_back(proto, tmp_path):
    onnx_text = model_to_onnx_text(proto)
    onnx.save(to_model(onnx_text), tmp_path / "own.onnx")
    assert model_to_onnx_text(tmp_path / "own.onnx") == onnx_text


@pytest.mark.parametrize("shape", ["4", "1,3,4"])
def test_a_layer_of_one_output_keeps_its_shape(shape):
    weights = tensor("w", 4, 1), tensor("b", 1)
    proto = model(f"(float[1,{shape}] x) => (float y) {{ m = MatMul (x, w)  y = Add (m, b) }}", *weights)
    onnx_text = model_to_onnx_text(proto)
    assert "nn.LinearBias <weight_shape: ints = [1, 4]>" in onnx_text
    assert model_to_onnx_text(to_model(onnx_text)) == onnx_text


def test_names_and_attributes_of_any_spelling():
    proto = model('(float[1] x) => (float[1] y) { y = com.x.Say <word = "it\'s"> (x) }')
    proto.graph.node[0].attribute[0].s = b'a "quoted" \\ word'
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("edge", float("inf")))
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("nothing", [], attr_type=onnx.AttributeProto.INTS))
    for names in (proto.graph.node[0].input, proto.graph.node[0].output):
        names[0] = f"2*{names[0]} zero.0"
    proto.graph.input[0].name, proto.graph.output[0].name = "2*x zero.0", "2*y zero.0"
    assert "edge: float = inf" in body(proto)[0]


def test_windows_of_our_own_operators_have_to_fit():
    unpadded = model_to_onnx_text(conv_relu()).replace("pads: ints = [1, 1, 1, 1], ", "")
    proto = to_model(unpadded.replace("float[1,4,8,8]", "float[1,4,6,6]"))
    proto.graph.input[0].type.tensor_type.shape.dim[3].dim_value = 1
    with pytest.raises(OnnxModelError, match=r"ConvBias '.*': expected inputs that fit, got a window larger than"):
        model_to_onnx_text(proto)


def test_a_batch_norm_that_is_being_trained_keeps_its_outputs():
    norm = "y, mean, variance = BatchNormalization <training_mode = 1> (x, s, b, m, v)"
    weights = [tensor(name, 3) for name in "sbmv"]
    proto = model(f"(float[2,3,4,4] x) => (float[2,3,4,4] y) {{ {norm} }}", *weights)
    assert body(proto)[-1].startswith("v5, v6, v7 = BatchNormalization <training_mode: int = 1> (")


def test_statistics_count_weights_of_any_operator_once():
    proto = model(
        "(int64[1,4] i) => (float[1,4,9] y) { e = Gather (w, i)  t = Transpose <perm = [1,0]> (w)  y = MatMul (e, t) }",
        tensor("w", 9, 6),
    )
    counts = statistics(model_to_graph(proto))
    assert counts.params in (54, 108)  # a weight and its transpose are not known to be one
    assert counts.macs == 4 * 9 * 6


def test_a_fill_with_several_numbers_is_refused():
    proto = model("(float[2] x) => (float[2] y) { s = Shape (x)  f = ConstantOfShape (s)  y = Add (x, f) }")
    numbers = numpy_helper.from_array(np.zeros(2, np.float32))
    proto.graph.node[1].attribute.append(onnx.helper.make_attribute("value", numbers))
    with pytest.raises(OnnxModelError, match=r"expected one number to fill with, got 2|expected inputs that fit"):
        model_to_onnx_text(proto)


def test_a_layer_that_reads_nothing_is_refused():
    own = to_model(model_to_onnx_text(conv_relu()))
    own.graph.node[0].overload = "another"
    del own.graph.node[0].input[:]
    with pytest.raises(OnnxModelError, match=r"^model: ConvBias 'v1': expected a layer of one input and output, got"):
        model_to_onnx_text(own)


def test_a_name_with_a_line_end_is_told_in_one_line():
    proto = model("(float[1] x) => (float[1] y) { y = nn.Mine (x) }", domain="nn")
    proto.graph.node[0].op_type = "Mi\nne"
    with pytest.raises(OnnxModelError, match=r"^model: expected functions of domain nn to be the prelude's, got Mi ne"):
        model_to_onnx_text(proto)


@pytest.mark.parametrize("kinds", [("1", "[1,2]"), ("1", '"one"'), ("1.5", "2"), ("[1]", "[1.5]")])
def test_an_attribute_may_be_of_any_kind(kinds):
    calls = [f"{y} = com.x.F <p = {value}> (x)" for y, value in zip("ab", kinds, strict=True)]
    texts = [
        model_to_onnx_text(model(f"(float[2] x) => (float[2] y) {{ {' '.join(order)} y = com.x.G ({reads}) }}"))
        for order, reads in ((calls, "a, b"), (calls[::-1], "a, b"))
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("start", ["a0 = Relu (x)", "a0 = RandomNormal <shape = [2]> ()"], ids=["input", "constant"])
def test_a_network_may_be_deep(start):
    depth = 1500
    steps = [f"a{i + 1} = {('Sigmoid', 'Tanh', 'Relu')[i % 3]} (a{i})" for i in range(depth)]
    proto = model(f"(float[2] x) => (float[2] y) {{ {start} {' '.join(steps)} y = Add (a{depth}, x) }}")
    assert len(model_to_graph(proto).nodes) == depth + 2
    assert body(proto)[-1].split()[2] == "Sum"


@pytest.mark.parametrize(
    "steps",
    [
        "l = MatMul (h, w)  y = Add (l, b)",
        "f = Flatten (h)  y = Relu (f)",
        "l = Constant <value_ints = [-1]> ()  m = ReduceMean (h, l)  d = Sub (h, m)  y = Relu (d)",
        "a = Constant <value_ints = [1]> ()  s = Squeeze (h, a)  y = Relu (s)",
    ],
)
def test_behind_an_operator_nobody_knows_shapes_are_unknown(steps):
    words = steps.replace(")", " ").replace(",", " ").split()
    weights = [weight for weight in (tensor("w", 4, 4), tensor("b", 4)) if weight.name in words]
    proto = model(f"(float[2,4] x) => (float[2,4] y) {{ h = com.x.F (x)  {steps} }}", *weights)
    assert "com.x.F" in body(proto)[0]


def test_a_mean_of_all_axes_is_not_skipped():
    means = "{ a = ReduceMean (x)  b = ReduceMean (a, axes)  y = Sub (x, b) }"
    axes = numpy_helper.from_array(np.array([2, 3]), "axes")
    text = model_to_onnx_text(model(f"(float[1,4,5,5] x) => (float[1,4,5,5] y) {means}", axes, opset=18))
    assert "v1 = ReduceMean (v0)" in text


def test_what_an_identity_is_declared_to_be_is_known_of_what_it_hands_on():
    proto = model("(float[1,4] x) => (int64[1,7] y) { a = com.x.F (x)  b = Identity (a)  y = Identity (b) }")
    assert signature(proto) == "network (float[1,4] v0) => (int64[1,7] v1) {"


@pytest.mark.parametrize(
    ("operator", "sizes", "kept", "defaults"),
    [
        ("Conv", "float16[1,4,8,8]", "pads = [1, 1, 1, 1]", ""),
        ("ConvTranspose", "float16[1,4,17,17]", "strides = [2, 2]", "output_padding = [0,0], pads = [0,0,0,0],"),
    ],
)
def test_plain_convolutions_leave_out_what_is_understood(operator, sizes, kept, defaults):
    weight = tensor("w", *((3, 4) if defaults else (4, 3)), 3, 3, dtype=np.float16)

    def text(attributes):
        return body(model(f"(float16[1,3,8,8] x) => ({sizes} y) {{ y = {operator} <{attributes}> (x, w) }}", weight))

    explicit = f'auto_pad = "NOTSET", dilations = [1,1], group = 1, kernel_shape = [3,3], {defaults} {kept}'
    assert text(explicit) == text(kept)
