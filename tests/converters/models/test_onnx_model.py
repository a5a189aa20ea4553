"""Any ONNX model: opsets, types, functions, what is left out, and nodes that no output needs."""

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from converters import OnnxModelError, model_to_graph, model_to_onnx_text, statistics, to_model
from tests.converters.onnx_models import body, conv_relu, model, run, signature, tensor


@pytest.mark.parametrize("opset", range(1, 27))
def test_every_opset_gives_the_same_text(opset):
    assert model_to_onnx_text(conv_relu(opset)) == model_to_onnx_text(conv_relu(20))


def test_shapes_behind_operators_of_the_first_opsets_are_known():
    graph = "(float[1,4,8,8] x) => (float[1,4,8,8] y) { r = Relu (x)  c = Conv (r, w)  e = Elu (c)  y = Add (e, x) }"
    texts = [model_to_onnx_text(model(graph, tensor("w", 4, 4, 1, 1), opset=opset)) for opset in range(1, 9)]
    assert len({*texts}) == 1


def test_nodes_may_be_in_any_order():
    proto, plain = conv_relu(), model_to_onnx_text(conv_relu())
    nodes = list(proto.graph.node)[::-1]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    assert model_to_onnx_text(proto) == plain


def test_nodes_in_a_cycle_are_refused():
    with pytest.raises(OnnxModelError, match="expected a valid ONNX model"):
        model_to_onnx_text(model("(float[2] x) => (float[2] y) { a = Add (x, b)  b = Relu (a)  y = Neg (b) }"))


def test_an_older_opset_is_brought_forward():
    old = model(
        "(float[1,3,2,1] x) => (float[3,2] y) { a = Softmax <axis = 1> (x)  y = Squeeze <axes = [0,3]> (a) }", opset=11
    )
    (y,) = run(old, np.zeros((1, 3, 2, 1), np.float32))
    assert np.allclose(y, np.full((3, 2), 1 / 6))  # softmax over all axes from the given one on, as it was in opset 11


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


@pytest.mark.parametrize("element", ["FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT4E2M1", "BFLOAT16"])
def test_numbers_of_few_bits_are_no_integers(element):
    data_type = getattr(TensorProto, element)
    proto = model(
        f"(float[4] x) => ({element.lower()}[1] y, float[4] z) {{ y = Identity (c)  z = Relu (x) }}", opset=25
    )
    proto.graph.initializer.append(helper.make_tensor("c", data_type, [1], [1.5]))
    assert body(proto)[1:] == [
        "v2 = Constant <value_floats: floats = [1.5]> ()",
        f"v3 = Cast <to: int = {data_type}> (v2)",
    ]


def test_inputs_that_are_left_out_stay_out():
    proto = model(
        "(float[5,1,3] x, float[1,1,4] h) => (float[1,1,4] y) "
        '{ "", y, "" = LSTM <hidden_size = 4> (x, w, r, "", "", h) }',
        tensor("w", 1, 16, 3),
        tensor("r", 1, 16, 4),
    )
    assert body(proto)[-1] == 'v4, v5 = LSTM <hidden_size: int = 4> (v0, v2, v3, "", "", v1)'
    assert run(proto, np.zeros((5, 1, 3), np.float32), np.zeros((1, 1, 4), np.float32))[0].shape == (1, 1, 4)


@pytest.mark.parametrize(
    ("omitted", "named"),
    [
        ('"", y = LSTM <hidden_size = 4> (x, w, r)', "a, y = LSTM <hidden_size = 4> (x, w, r)"),
        ('"", "", y = LSTM <hidden_size = 4> (x, w, r)', "a, b, y = LSTM <hidden_size = 4> (x, w, r)"),
        ('a, "", y = Split <axis = 2> (x)', "a, b, y = Split <axis = 2> (x)"),
        ('y, "" = MaxPool <kernel_shape = [1]> (x)', "y = MaxPool <kernel_shape = [1]> (x)"),
    ],
)
@pytest.mark.parametrize("opset", [11, 17])
def test_outputs_may_be_omitted(omitted, named, opset):
    weights = tensor("w", 1, 16, 3), tensor("r", 1, 16, 4)
    protos = [model(f"(float[5,1,3] x) => (float[A,B,C] y) {{ {x} }}", *weights, opset=opset) for x in (omitted, named)]
    assert body(protos[0]) == body(protos[1])
    assert statistics(model_to_graph(protos[0])) == statistics(model_to_graph(protos[1]))


def test_a_node_that_omits_all_outputs_changes_nothing():
    unused = '"", "", "" = LSTM <hidden_size = 4> (x, w, r)'
    proto = model(
        f'(float[5,1,3] x) => (float[5,1,3] y) {{ {unused}  y = Clip (x, "", n) }}',
        tensor("w", 1, 16, 3),
        tensor("r", 1, 16, 4),
        numpy_helper.from_array(np.float32(1), "n"),
    )
    assert body(proto)[-1] == "v2 = Min (v0, v1)"


@pytest.mark.parametrize("outputs", ["y", 'y, "", ""', "y, mean", "y, mean, deviation"])
def test_a_layer_norm_without_readers_of_its_statistics_is_a_layer(outputs):
    graph = f"(float[2,6] x) => (float[2,6] y) {{ {outputs} = LayerNormalization (x, w, b) }}"
    lines = body(model(graph, tensor("w", 6), tensor("b", 6)))
    assert lines == ["v1 = nn.LayerNormalization <weight_shape: ints = [6]> (v0)"]


def test_the_statistics_of_a_layer_norm_may_be_read():
    graph = "(float[2,6] x) => (float[2,1] mean) { y, mean = LayerNormalization (x, w, b) }"
    assert body(model(graph, tensor("w", 6), tensor("b", 6)))[-1] == "v3, v4 = LayerNormalization (v0, v1, v2)"


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


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        ("(float[2,4] x) => (float[2,5] y) { m = MatMul (x, w)  y = Add (m, b)", "d = Relu (m)"),
        ("(float[2,4] x) => (float[2,5] y) { m = MatMul (x, w)  y = Add (m, b)", "r = Relu (m)  d = MatMul (m, v)"),
        ("(float[1,2,4,4] x) => (float[1,2,3,3] y) { y, i = MaxPool <kernel_shape = [2,2]> (x)", "d = Identity (i)"),
        ("(float[2,4] x) => (float[2,5] y) { h = Add (x, x)  m = Mul (h, c)  y = MatMul (m, w)", "d = Relu (m)"),
        (
            "(float[2,4] x, bool p) => (float[2,5] y) { m = MatMul (x, w)  y = Add (m, b)",
            "d = If <then_branch = g () => (float[2,5] t) { t = Relu (m) },"
            "else_branch = g () => (float[2,5] e) { e = Abs (m) }> (p)",
        ),
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


def test_functions_have_their_defaults():
    """Those of functions that functions call too."""
    text = """(float[1,4] x) => (float[1,4] y) {
        a = com.x.Leaky (x)  b = com.x.Outer (a)  y = com.x.Leaky <slope = 0.5> (b) }
    <domain: "com.x", opset_import: ["" : 20, "com.x" : 3]> Outer (a) => (b) { b = com.x.Leaky (a) }
    <domain: "com.x", opset_import: ["" : 20]> Leaky <slope: float = 0.25> (a) => (b) {
        b = LeakyRelu <alpha: float = @slope> (a) }"""
    assert body(model(text)) == [
        "v1 = LeakyRelu <alpha: float = 0.25> (v0)",
        "v2 = LeakyRelu <alpha: float = 0.25> (v1)",
        "v3 = LeakyRelu <alpha: float = 0.5> (v2)",
    ]


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
    with pytest.raises(
        OnnxModelError, match=r"^model: ConvBias 'v1': expected a layer with one input and one output, got"
    ):
        model_to_onnx_text(own)


def test_a_name_with_a_line_end_is_told_in_one_line():
    proto = model("(float[1] x) => (float[1] y) { y = nn.Mine (x) }", domain="nn")
    proto.graph.node[0].op_type = "Mi\nne"
    with pytest.raises(OnnxModelError, match=r"^model: expected functions of domain nn to be the prelude's, got Mi ne"):
        model_to_onnx_text(proto)


@pytest.mark.parametrize("start", ["a0 = Relu (x)", "a0 = RandomNormal <shape = [2]> ()"], ids=["input", "constant"])
def test_a_network_may_be_deep(start):
    depth = 1500
    steps = [f"a{i + 1} = {('Sigmoid', 'Tanh', 'Relu')[i % 3]} (a{i})" for i in range(depth)]
    proto = model(f"(float[2] x) => (float[2] y) {{ {start} {' '.join(steps)} y = Add (a{depth}, x) }}")
    assert len(model_to_graph(proto).nodes) == depth + 2
    assert body(proto)[-1].split()[2] == "Sum"


def test_a_mean_of_all_axes_is_not_skipped():
    means = "{ a = ReduceMean (x)  b = ReduceMean (a, axes)  y = Sub (x, b) }"
    axes = numpy_helper.from_array(np.array([2, 3]), "axes")
    text = model_to_onnx_text(model(f"(float[1,4,5,5] x) => (float[1,4,5,5] y) {means}", axes, opset=18))
    assert "v1 = ReduceMean (v0)" in text


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
