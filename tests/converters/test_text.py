"""ONNX text: what is written is what the printer prints; what does not parse is refused in one line."""

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from converters import OnnxTextError, to_model
from converters.graph import Function, Graph, Reference
from converters.text import parse, prelude, print_model, write
from tests.converters.graphs import graph, node, random_graphs

TEXT = """<
   ir_version: 13,
   opset_import: ["" : 26, "nn" : 1, "block" : 1]
>
network (float[1,4,8,8] v0) => (float[1,4,8,8] v2) {
   v1 = block.B0 (v0)
   v2 = block.B0 (v1)
}
<
  domain: "block",
  opset_import: ["" : 26,"nn" : 1,"block" : 1]
>
B0 (v0) => (v2)
{
   v1 = Relu (v0)
   v2 = nn.Conv <weight_shape: ints = [4, 4, 1, 1]> (v1)
}"""


def written(**attributes) -> str:
    return write(graph(node("nn.Anything", "x", "y", **attributes), outputs="y"))


def round_trip(onnx_text: str) -> str:
    return print_model(parse(onnx_text))


def test_the_example_is_valid():
    assert round_trip(TEXT) == TEXT
    assert isinstance(to_model(TEXT), onnx.ModelProto)


@settings(max_examples=50, deadline=None)
@given(random_graphs())
def test_written_text_is_what_the_printer_prints(faithful):
    assert round_trip(write(faithful)) == write(faithful)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_keep_their_bits(number):
    text = written(factor=number)
    assert round_trip(text) == text
    (attribute,) = parse(text).graph.node[0].attribute
    assert np.float32(attribute.f).tobytes() == np.float32(number).tobytes()


@pytest.mark.filterwarnings("error")
@given(st.floats(allow_nan=False))
def test_numbers_of_64_bits_are_written_as_32_bits_hold_them(number):
    text = written(factor=number)
    assert round_trip(text) == text
    (attribute,) = parse(text).graph.node[0].attribute
    assert written(factor=attribute.f) == text


@pytest.mark.parametrize(
    ("value", "spelling"),
    [
        (3, "int = 3"),
        (32.0, "float = 32"),
        (123456789.0, "float = 123456792"),
        (1e300, "float = inf"),
        (1 / 6, "float = 0.16666667"),
        (1e-5, "float = 1e-05"),
        ("NOTSET", 'string = "NOTSET"'),
        ((1, 2), "ints = [1, 2]"),
        ((0.5, 2.0), "floats = [0.5, 2]"),
        (("a", "b"), 'strings = ["a", "b"]'),
        ((), "ints = []"),
    ],
)
def test_attributes_of_every_kind(value, spelling):
    text = written(value=value)
    assert f"nn.Anything <value: {spelling}> (v0)" in text
    assert round_trip(text) == text


def test_attributes_of_a_function():
    inner = node("nn.Conv", "x", "y", weight_shape=Reference("a0", "ints"))
    function = Function("B0", ("x",), ("y",), ("a0",), (inner,))
    call = node("block.B0", "x", "z", a0=(2, 2, 1, 1))
    text = write(Graph(("x",), ("z",), (call,), {"x": (1, 2, 4, 4), "z": (1, 2, 4, 4)}, (function,)))
    assert "nn.Conv <weight_shape: ints = @a0> (v0)" in text
    assert round_trip(text) == text
    to_model(text)


def test_a_text_may_bring_the_prelude_along():
    complete = f"{TEXT}\n{prelude()}"
    onnx.checker.check_model(parse(complete), full_check=True)
    names = [(function.domain, function.name) for function in to_model(complete).functions]
    assert len(set(names)) == len(names)
    assert {*names} == {(function.domain, function.name) for function in to_model(TEXT).functions}


def test_models_do_not_share_functions():
    first = to_model(TEXT)
    before = to_model(TEXT).SerializeToString()
    for function in first.functions:
        function.node[0].op_type = "Changed"
    assert to_model(TEXT).SerializeToString() == before


MALFORMED = {
    "nothing": ("", r"line: 1 column: 1"),
    "prose": ("a network with two blocks", r"line: 1 .*Expected"),
    "something after the end": (f"{TEXT}\nv3 = Relu (v2)", r"line: 18"),
    "a value that nothing makes": (TEXT.replace("(v1)\n}", "(v7)\n}"), r"'v7'"),
    "a value made twice": (TEXT.replace("v2 = block", "v1 = block"), r"'v1'"),
    "an unknown operator": (TEXT.replace("Relu", "Rely"), r"Rely"),
    "an unknown layer": (TEXT.replace("nn.Conv", "nn.Convolution"), r"nn\.Convolution in B0\."),
    "an unknown block": (TEXT.replace("block.B0", "block.B1"), r"block\.B1 in network\. Was the text cut off\?"),
    "an unknown domain": (TEXT.replace("nn.Conv", "zoo.Conv"), r"domain zoo"),
    "a layer without weight shape": (TEXT.replace("weight_shape", "shape"), r"onnx\.checker"),
    "shapes that do not fit": (TEXT.replace("[4, 4, 1, 1]", "[4]"), r"onnx\.checker"),
    "a block that calls itself": (TEXT.replace("Relu", "block.B0"), r"block::B0 -> block::B0"),
    "a version from the future": (TEXT.replace("13", "99"), r"ir_version 99"),
    "a letter from abroad": (TEXT.replace("Relu", "Rélu"), r"line: 15 .*Rélu"),
    "half a character": (TEXT.replace("Relu", "\ud800"), r"surrogates not allowed"),
    "a size beyond 64 bits": (TEXT.replace("float[1,", f"float[{10**20},"), r"expected numbers in range"),
    "a number beyond 32 bits": (TEXT.replace("Relu", "Relu <x: float = 1e999>"), r"expected numbers in range.*1e999"),
    "a zero byte": (f"{TEXT}\0{TEXT}", rf"zero byte at character {len(TEXT)}\."),
    "bytes": (TEXT.encode(), r"expected a string, got bytes\. Read files beforehand\."),
    "a path": (Path("network.onnxtxt"), r"expected a string, got \w*Path\. Read files beforehand\."),
}


@pytest.mark.parametrize(("text", "reason"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_text_is_refused_in_one_line(text, reason):
    with pytest.raises(OnnxTextError, match=reason) as caught:
        to_model(text)
    assert re.fullmatch(r"ONNX text: expected .*, got\b.*", str(caught.value))
    assert "\\n" not in str(caught.value)


def test_text_cut_off_anywhere_is_refused():
    for stop in range(len(TEXT)):
        with pytest.raises(OnnxTextError):
            to_model(TEXT[:stop])


@pytest.mark.parametrize("layer", ["Conv", "ConvBias"])
def test_layers_of_the_prelude_default_to_no_padding(layer):
    padded = TEXT.replace("nn.Conv", f"nn.{layer}").replace("[4, 4, 1, 1]", "[4, 4, 3, 3], pads: ints = [1, 1, 1, 1]")
    to_model(padded)
    with pytest.raises(OnnxTextError, match=r"onnx\.checker"):
        to_model(padded.replace(", pads: ints = [1, 1, 1, 1]", ""))
