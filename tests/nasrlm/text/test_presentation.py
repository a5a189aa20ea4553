"""Canonical text in postfix form; every other text as it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from converters import to_measured_text, to_onnx_text
from nasrlm.text import inlining
from nasrlm.text.presentation import MAX_TREE_LINES, present
from spaces import get_space, space_names

PREAMBLE = '<\n   ir_version: 13,\n   opset_import: ["" : 26, "nn" : 1, "block" : 1]\n>\n'
CONV = "nn.Conv <weight_shape: ints = [8, 8, 3, 3]>"


def network(*nodes: str, inputs: str = "float[1,8] v0", outputs: str = "float[1,8] v9") -> str:
    lines = "".join(f"   {node}\n" for node in nodes)
    return f"{PREAMBLE}network ({inputs}) => ({outputs}) {{\n{lines}}}"


def function(header: str, *nodes: str) -> str:
    lines = "".join(f"   {node}\n" for node in nodes)
    return f'\n<\n  domain: "block",\n  opset_import: ["" : 26,"nn" : 1,"block" : 1]\n>\n{header}\n{{\n{lines}}}'


def rows(text: str) -> list[str]:
    presented = present(text)
    assert presented.endswith("\n")
    return presented.splitlines()


def test_a_chain_is_its_operators_in_order() -> None:
    text = network(f"v1 = {CONV} (v0)", "v2 = Relu (v1)", "v9 = Flatten <axis: int = 1> (v2)")
    assert rows(text) == ["network float[1,8]", "nn.Conv weight_shape=[8,8,3,3]", "Relu", "Flatten axis=1"]


@pytest.mark.parametrize("change", ["\ufeff{}", "\n{}", "{}\n\n", "\r\n", " \n", "\t\n", "\t\r\n", "{} ", "{}\n\t"])
def test_what_editors_add_is_no_matter(change: str) -> None:
    text = network(f"v1 = {CONV} (v0)", "v9 = Flatten <axis: int = 1> (v1)")
    changed = change.format(text) if "{}" in change else text.replace("\n", change)
    assert changed != text
    assert present(changed) == present(text) != text
    assert present("a = 1 \r\n") == "a = 1 \r\n"


def test_a_short_shared_value_is_written_out_where_it_is_read() -> None:
    text = network("v1 = Relu (v0)", "v2 = Tanh (v1)", "v9 = Add (v1, v2)")
    assert rows(text) == ["network float[1,8]", "2 x Relu", "Tanh", "Add 2"]


def test_an_input_that_is_read_twice_is_named() -> None:
    assert rows(network("v1 = Relu (v0)", "v9 = Add (v0, v1)"))[1:] == ["2 x v0", "Relu", "Add 2"]


def test_several_inputs_are_named_and_several_outputs_follow_each_other() -> None:
    text = network(
        "v2 = Relu (v0)",
        "v3, v4 = Split (v1)",
        "v5 = Mul (v2, v4)",
        inputs="float[1,8] v0, float[1,4] v1",
        outputs="float[1,8] v5, float[1,2] v3",
    )
    header, *lines = rows(text)
    assert header == "network float[1,8] float[1,4]"
    assert lines == ["v0", "Relu", "v1", "Split", "output 1", "Mul 2", "v1", "Split"]


def test_runs_are_counted() -> None:
    nodes = [f"v{index + 1} = Relu (v{index})" for index in range(9)]
    assert rows(network(*nodes)) == ["network float[1,8]", "9 x Relu"]


def called(times: int, call: str) -> list[str]:
    """Nodes from v0 to v9 by way of equal calls of a block."""
    names = ["v0", *(f"c{index}" for index in range(1, times)), "v9"]
    return [f"{names[index + 1]} = {call} ({names[index]})" for index in range(times)]


def test_blocks_without_a_cell_are_written_out_with_the_values_of_each_call() -> None:
    text = network("v1 = block.B0 <a0: int = 3> (v0)", "v9 = block.B0 <a0: int = 5> (v1)")
    text += function("B0 <a0>(v0) => (v2)", "v1 = block.B1 <a0: int = @a0, a1: int = 7> (v0)", "v2 = Relu (v1)")
    text += function("B1 <a0,a1>(v0) => (v1)", "v1 = My <a: int = @a0, b: int = @a1> (v0)")
    assert rows(text)[1:] == ["My a=3,b=7", "Relu", "My a=5,b=7", "Relu"]


def test_values_are_told_by_how_many_were_named_since() -> None:
    layer = function("B0 (v0) => (v3)", "v1 = Tanh (v0)", "v2 = Exp (v1)", "v3 = Add (v0, v2)")
    residual = ["as", "again 0", "Tanh", "Exp", "Add 2"]
    start = ("v1 = Tanh (v0)", "v2 = Exp (v1)", "v3 = Sqrt (v2)")
    text = network(*start, "v4 = block.B0 (v3)", "v5 = block.B0 (v4)", "v9 = Add (v5, v3)") + layer
    assert rows(text)[1:] == ["Tanh", "Exp", "Sqrt", *residual, *residual, "again 1", "Add 2"]


def test_a_cell_follows_with_its_name() -> None:
    text = network(*called(6, "block.B0 <a0: ints = [8, 8, 3, 3]>"))
    text += function("B0 <a0>(v0) => (v2)", "v1 = nn.Conv <weight_shape: ints = @a0> (v0)", "v2 = Relu (v1)")
    text += function("B1 (v0) => (v0)")
    assert rows(text)[1:] == ["6 x block.B0 [8,8,3,3]", "B0", "nn.Conv weight_shape=[8,8,3,3]", "Relu", "B1"]


@pytest.mark.parametrize(
    ("values", "is_cell"),
    [([3] * 6, True), ([3] * 5, False), ([0, 0, 1, 1, 2, 2, 3], True), ([0, 0, 1, 1, 2, 3, 4], False)],
)
def test_a_cell_is_called_often_and_alike(values: list[int], is_cell: bool) -> None:
    nodes = called(len(values), "block.B0 <a0: int = ?>")
    text = network(*[node.replace("?", str(value)) for node, value in zip(nodes, values, strict=True)])
    text += function("B0 <a0>(v0) => (v1)", "v1 = My <a: int = @a0> (v0)")
    assert ("B0" in rows(text)) == is_cell


def test_values_that_the_first_call_gives_twice_stay_parameters() -> None:
    text = network(*called(6, "block.B0 <a0: int = 3, a1: int = 5, a2: int = 3>"))
    text += function("B0 <a0,a1,a2>(v0) => (v1)", "v1 = My <a: int = @a0, b: int = @a1, c: int = @a2> (v0)")
    assert rows(text)[1:] == ["6 x block.B0 3,5,3", "B0", "My a=@a0,b=5,c=@a2"]


@pytest.mark.parametrize("depth", [30, 200])
def test_blocks_that_would_be_too_long_written_out_stay(depth: int) -> None:
    text = network("v9 = block.B0 (v0)")
    for index in range(depth):
        twice = (f"v1 = block.B{index + 1} (v0)", f"v2 = block.B{index + 1} (v1)")
        text += function(f"B{index} (v0) => (v2)", *twice)
    text += function(f"B{depth} (v0) => (v1)", "v1 = Relu (v0)")
    assert len(rows(text)) == 2 + 2 * depth + 2


@pytest.mark.parametrize(("limit", "has_blocks"), [(7, False), (6, True)])
def test_lines_are_counted_with_every_block_written_out(
    limit: int, has_blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inlining, "MAX_LINES", limit)
    text = network("v1 = block.B0 (v0)", "v2 = block.B0 (v1)", "v9 = Sqrt (v2)")
    text += function("B0 (v0) => (v3)", "v1 = Relu (v0)", "v2 = Tanh (v1)", "v3 = Exp (v2)")
    assert ("B0" in rows(text)) == has_blocks


def test_calls_of_empty_blocks_end() -> None:
    text = network("v9 = block.B0 (v0)")
    for index in range(60):
        twice = (f"v1 = block.B{index + 1} (v0)", f"v2 = block.B{index + 1} (v1)")
        text += function(f"B{index} (v0) => (v2)", *twice)
    assert present(text + function("B60 (v0) => (v0)")).startswith("network")


def test_blocks_that_call_each_other_are_other_text() -> None:
    text = network("v9 = block.B0 (v0)") + function("B0 (v0) => (v1)", "v1 = block.B1 (v0)")
    text += function("B1 (v0) => (v1)", "v1 = block.B0 (v0)")
    assert present(text) == text


def test_blocks_as_executed_write_each_operator_once() -> None:
    nodes = ("v1 = Relu (v0)", "v2 = Tanh (v1)", "v3 = Exp (v2)", "v4 = Add (v3, v2)")
    shared = ["Relu", "Tanh", "as 0", "Exp", "again 0", "Add 2"]
    written_out = ["Relu", "Tanh", "Exp", "Relu", "Tanh", "Add 2"]
    text = network("v9 = Sqrt (v0)") + function("E0 (v0) => (v4)", *nodes) + function("F0 (v0) => (v4)", *nodes)
    assert rows(text)[2:] == ["E0", *shared, "F0", *written_out]


def test_a_shared_value_of_a_long_body_is_written_once_and_named() -> None:
    nodes = [f"v{index + 1} = {'Relu' if index % 2 else 'Tanh'} (v{index})" for index in range(MAX_TREE_LINES)]
    last = MAX_TREE_LINES
    text = network(*nodes, f"v{last + 1} = Sqrt (v{last})", f"v99 = Add (v{last}, v{last + 1})", outputs="float[1] v99")
    assert rows(text)[-4:] == ["as", "again 0", "Sqrt", "Add 2"]
    assert len(rows(text)) == 1 + last + 4


@pytest.mark.parametrize("depth", [10, 300])
def test_a_deep_chain_of_shared_values_stays_short(depth: int) -> None:
    nodes = [f"v{index + 1} = Mul (v{index}, v{index})" for index in range(depth)]
    text = network(*nodes, outputs=f"float[1] v{depth}")
    assert len(rows(text)) <= 4 * depth + 2 * MAX_TREE_LINES


def test_a_node_with_two_outputs_is_written_once() -> None:
    nodes = [f"v{2 * i + 2}, v{2 * i + 3} = Split (v{2 * i}, v{2 * i + 1})" for i in range(40)]
    text = network(*nodes, inputs="float[1] v0, float[1] v1", outputs="float[1] v80, float[1] v81")
    lines = rows(text)
    assert sum(line == "Split 2" for line in lines) == 40
    assert lines[-2:] == ["again 0", "output 1"]


CANONICAL = network("v1 = Relu (v0)", "v9 = Add (v0, v1)")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a recipe\n",
        PREAMBLE,
        CANONICAL[:-1],
        CANONICAL + "\nmore",
        CANONICAL.replace("(v0, v1)", "(v0, v7)"),
        CANONICAL.replace("(v0, v1)", "(v0, , v1)"),
        CANONICAL.replace("v1 = Relu (v0)", "v1 = Relu (v0)\n   v1 = Relu (v1)"),
        CANONICAL.replace("v1 = Relu", "[relu] v1 = Relu"),
        CANONICAL.replace("float[1,8] v9)", "float[1,8] v8)"),
        CANONICAL.replace(") {", ")\n<float[1] w = {1}>\n{"),
        CANONICAL.replace("network", "main_graph"),
        network(*called(6, "block.B0")) + function("B0 (v0) => (v2)", "v1 = Relu (v0)"),
    ],
)
def test_other_text_passes_unchanged(text: str) -> None:
    assert present(CANONICAL) != CANONICAL
    assert present(text) == text


@pytest.mark.parametrize("name", space_names())
def test_the_texts_of_every_space_are_presented(name: str) -> None:
    space = get_space(name)
    architecture = space.sample(np.random.default_rng(0))
    for text in (to_onnx_text(space, architecture), to_measured_text(space, architecture)):
        assert present(text).startswith("network float[")


@given(st.text())
def test_any_text_passes_unchanged(text: str) -> None:
    assert present(text) == text
    assert present(PREAMBLE + text) == PREAMBLE + text


@pytest.mark.parametrize(
    "text",
    [
        f"{PREAMBLE}network ({'a' * 200_000}) => () {{\n}}",
        f"{PREAMBLE}network ({'a[, ' * 50_000}) => () {{\n}}",
        f"{PREAMBLE}f ({') => (' * 40_000}",
        f"{PREAMBLE}network () => () {{\n   y = Op <{'> (' * 70_000}\n}}",
    ],
    ids=["name", "types", "function", "node"],
)
def test_long_text_that_is_none_of_ours_passes_at_once(text: str) -> None:
    assert present(text) == text  # takes minutes where a pattern goes back and forth
