"""Functions for what repeats: inlining them gives back the flat graph."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from converters.builder import GraphBuilder
from converters.convert import to_canonical_graph, to_graph
from converters.graph import Graph, Reference
from converters.passes.canonical import canonicalise
from converters.passes.outline import DEFINITION_COST, outline
from converters.text import parse, write
from spaces.nasbench201 import NASBench201
from tests.converters.graphs import graph, node
from tests.converters.inlined import inlined, spelled


def repeated(num_blocks: int, *, widths: tuple[int, ...] = (4,), after: int = 0) -> Graph:
    """Residual blocks x + conv(relu(conv(relu(x)))), of each width so many, and ReLUs after them."""
    g = GraphBuilder((1, 4, 8, 8))
    x = g.input
    for width in widths:
        for _ in range(num_blocks):
            x = g.conv(g.relu(x), width, kernel=1)
            x = g.add(x, g.conv(g.relu(g.conv(g.relu(x), width, kernel=3)), width, kernel=3))
    for _ in range(after):
        x = g.sigmoid(x)
    return canonicalise(g.build(x))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 5**6 - 1))
def test_inlining_gives_back_nasbench201_networks(index):
    space = NASBench201()
    flat = to_canonical_graph(to_graph(space, space.from_official_index(index)))
    assert spelled(inlined(write(outline(flat)))) == spelled(parse(write(flat)))


def test_a_block_is_written_once():
    outlined = outline(repeated(6))
    (block,) = outlined.functions
    assert [node.op_type for node in outlined.nodes] == [f"block.{block.name}"] * 6
    assert (len(block.inputs), len(block.outputs), block.parameters) == (1, 1, ())


def test_what_differs_becomes_an_attribute():
    outlined = outline(repeated(4, widths=(4, 8)))
    shapes = {node.attribute("a0") for node in outlined.nodes}
    assert {(4, 4, 1, 1), (8, 8, 1, 1)} <= shapes
    references = [value for f in outlined.functions for n in f.nodes for _, value in n.attributes]
    assert any(isinstance(value, Reference) and value.kind == "ints" for value in references)


def test_functions_stand_in_the_order_of_their_calls():
    space = NASBench201()
    outlined = outline(to_canonical_graph(to_graph(space, space.from_official_index(6111))))
    calls = [node.op_type for node in outlined.nodes]
    calls += [node.op_type for function in outlined.functions for node in function.nodes]
    blocks = dict.fromkeys(call for call in calls if call.startswith("block."))
    assert [*blocks] == [f"block.{f.name}" for f in outlined.functions] == [f"block.B{i}" for i in range(len(blocks))]


@pytest.mark.parametrize("graph", [repeated(1), repeated(0, after=1), repeated(0, after=2)])
def test_what_would_not_get_shorter_stays(graph):
    assert outline(graph).nodes == graph.nodes


@pytest.mark.parametrize(("length", "calls"), [(DEFINITION_COST + 2, []), (DEFINITION_COST + 3, ["block.B0"] * 2)])
def test_two_blocks_side_by_side_are_one_function_where_that_saves_a_line(length, calls):
    operators = ["Relu", "Sigmoid", "Tanh", "Exp", "Sin", "Cos"][:length]
    values = ["x", *(f"v{index}" for index in range(2 * length))]
    chain = [node(op_type, *ends) for op_type, ends in zip(operators * 2, pairwise(values), strict=True)]
    flat = graph(*chain, outputs=values[-1])
    assert [each.op_type for each in outline(flat).nodes] == (calls or operators * 2)


def test_the_text_gets_shorter():
    flat = repeated(6)
    assert len(write(outline(flat)).splitlines()) < len(write(flat).splitlines())
