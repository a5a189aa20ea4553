"""What onnx itself would crash on, or compute for ever, is refused before; what only looks like it is not."""

import pytest

from converters import OnnxModelError, OnnxTextError, model_to_onnx_text, to_model
from converters.convert import graph_to_onnx_text
from converters.graph import Graph
from converters.limits import MAX_NODES, excess_of_model, excess_of_text
from converters.passes.canonical import canonicalise
from converters.text import parse
from tests.converters.graphs import SHAPE, conv, graph, node

HEAD = '<ir_version: 13, opset_import: ["" : 26, "block" : 1]>\n'
FUNCTION = '<domain: "block", opset_import: ["" : 26, "block" : 1]>\n'


def calls(depth: int) -> str:
    """Every function calls the next one twice."""
    text = f"{HEAD}network (float[2] x) => (float[2] y) {{ y = block.B0 (x) }}\n"
    for index in range(depth):
        text += f"{FUNCTION}B{index} (x) => (z) {{ y = block.B{index + 1} (x) z = block.B{index + 1} (y) }}\n"
    return f"{text}{FUNCTION}B{depth} (x) => (y) {{ y = Relu (x) }}\n"


def einsum(equation: str) -> str:
    return f'{HEAD}network (float[2,3] x) => (float[M,N] y) {{ y = Einsum <equation = "{equation}"> (x) }}'


@pytest.mark.parametrize("opened", ["seq(", "optional(", "{ y = If (c) <then_branch = g () => (float[2] y) "])
def test_deep_brackets_never_reach_the_parser(opened):
    with pytest.raises(OnnxTextError, match=r"ONNX text: expected at most 100 nested brackets, got more at"):
        parse(f"{HEAD}network ({opened * 100_000}")


@pytest.mark.parametrize("harmless", ['"' + "(" * 200 + '"', '"\\"' + "(" * 200, "#" + "(" * 200 + "\n", "()" * 200])
def test_brackets_in_names_and_comments_do_not_count(harmless):
    assert not excess_of_text(f"(({harmless}))")


def test_calls_that_multiply_are_counted_not_written_out():
    assert not excess_of_model(parse(calls(10)))
    reason = rf"expected at most {MAX_NODES} nodes with all functions inlined, got {2**50}\."
    with pytest.raises(OnnxTextError, match=reason):
        to_model(calls(50))
    with pytest.raises(OnnxModelError, match=reason):
        model_to_onnx_text(parse(calls(50)))


@pytest.mark.parametrize("equation", ["ij->ji", "ij", "...j -> j...", "i j", "...", "aB,Bc->ac", "ij->"])
def test_equations_are_read(equation):
    assert not excess_of_model(parse(einsum(equation)))


@pytest.mark.parametrize("equation", ["ij(", "....", "i.j", "ij->i->j", "1j", "...i..."])
def test_equations_that_are_none_never_reach_shape_inference(equation):
    for refused, convert in ((OnnxTextError, to_model), (OnnxModelError, lambda text: model_to_onnx_text(parse(text)))):
        with pytest.raises(refused, match=r"expected an equation of letters, .*in Einsum, got"):
            convert(einsum(equation))


def test_a_sum_that_doubles_for_ever_is_not_multiplied_out():
    """2 ** 2000 is no float; every twelfth sum or so is written as it stands."""
    doubled = [node("Sum", f"a{index} a{index}", f"a{index + 1}") for index in range(2000)]
    deep = graph(node("Relu", "x", "a0"), *doubled, outputs="a2000")
    assert "nn.Scale" in graph_to_onnx_text(deep)


def test_many_alike_operands_are_ordered_in_time():
    """Of operands that nothing tells apart one after another is chosen: each choice must not look at all pairs."""
    names = [f"a{index}" for index in range(400)]
    wide = Graph(("x",), ("y",), (*[conv("x", a, a) for a in names], node("Sum", " ".join(names), "y")), {"x": SHAPE})
    assert len(canonicalise(wide).nodes) == 401
