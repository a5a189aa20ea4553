"""Operators that nobody knows, their names and attributes, and what is known of the values that they make."""

import numpy as np
import onnx
import pytest
from onnx import AttributeProto

from converters import model_to_onnx_text
from converters.text import parse, print_model
from tests.converters.onnx_models import body, model, signature, tensor


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


def test_repeated_operators_of_values_without_a_type_are_written_out():
    steps = " ".join(f"c{i} = Sin (b{i})  d{i} = Tanh (c{i})  b{i + 1} = Exp (d{i})" for i in range(6))
    first, last = "b0 = {} (x)", "y = Abs (b6)"
    for op_type, times in (("com.x.Mix", 6), ("Neg", 1)):
        proto = model(f"(float[1,4] x) => (float[1,4] y) {{ {first.format(op_type)} {steps} {last} }}")
        assert model_to_onnx_text(proto).count("Sin") == times


def test_names_and_attributes_of_any_spelling():
    proto = model('(float[1] x) => (float[1] y) { y = com.x.Say <word = "it\'s"> (x) }')
    proto.graph.node[0].attribute[0].s = b'a "quoted" \\ word'
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("edge", float("inf")))
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("nothing", [], attr_type=onnx.AttributeProto.INTS))
    for names in (proto.graph.node[0].input, proto.graph.node[0].output):
        names[0] = f"2*{names[0]} zero.0"
    proto.graph.input[0].name, proto.graph.output[0].name = "2*x zero.0", "2*y zero.0"
    assert "edge: float = inf" in body(proto)[0]


@pytest.mark.parametrize("kinds", [("1", "[1,2]"), ("1", '"one"'), ("1.5", "2"), ("[1]", "[1.5]")])
def test_an_attribute_may_be_of_any_kind(kinds):
    calls = [f"{y} = com.x.F <p = {value}> (x)" for y, value in zip("ab", kinds, strict=True)]
    texts = [
        model_to_onnx_text(model(f"(float[2] x) => (float[2] y) {{ {' '.join(order)} y = com.x.G ({reads}) }}"))
        for order, reads in ((calls, "a, b"), (calls[::-1], "a, b"))
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("call", ["LSTM <hidden_size = 4> (x, w, r)", "com.x.F <size = 4> (x)"])
@pytest.mark.parametrize("kind", [AttributeProto.FLOATS, AttributeProto.STRINGS])
def test_an_empty_list_of_floats_or_text_is_no_attribute(call, kind):
    weights = tensor("w", 1, 16, 3), tensor("r", 1, 16, 4)
    plain, empty = (model(f"(float[5,1,3] x) => (float[5,1,1,4] y) {{ y = {call} }}", *weights) for _ in range(2))
    name = "activations" if kind == AttributeProto.STRINGS else "activation_alpha"
    empty.graph.node[0].attribute.add(name=name, type=kind)
    assert model_to_onnx_text(empty) == model_to_onnx_text(plain)


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


@pytest.mark.parametrize(
    ("padding", "written"),
    [
        ("SAME_UPPER", 'Conv <auto_pad: string = "SAME_UPPER"> (v1, v2)'),
        ("SAME_LOWER", 'Conv <auto_pad: string = "SAME_LOWER"> (v1, v2)'),
        ("VALID", "nn.Conv <weight_shape: ints = [4, 3, 3, 3]> (v1)"),
    ],
)
def test_a_padding_that_depends_on_an_unknown_size_is_kept(padding, written):
    """The function ``nn.Conv`` has explicit padding only."""
    proto = model(
        "(float[1,3,8,8] x) => (float[1,4,H,W] y) <float[1,3,H,W] h> "
        f'{{ h = com.x.F (x)  y = Conv <auto_pad = "{padding}"> (h, w) }}',
        tensor("w", 4, 3, 3, 3),
    )
    assert body(proto)[-1].endswith(f" = {written}")


def test_what_an_identity_is_declared_to_be_is_known_of_what_it_hands_on():
    proto = model("(float[1,4] x) => (int64[1,7] y) { a = com.x.F (x)  b = Identity (a)  y = Identity (b) }")
    assert signature(proto) == "network (float[1,4] v0) => (int64[1,7] v1) {"
