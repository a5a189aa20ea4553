"""Blocks as they are run: what canonical text leaves out and devices spend time on."""

from converters import to_measured_text, to_onnx_text
from converters.convert import to_graph
from converters.graph import Graph
from converters.passes.executed import compiled_graph, spell_scales
from spaces.nasbench201 import Cell, NASBench201
from tests.converters.twins import bypassed
from tests.spaces.contract import rng

SPACE = NASBench201()
OF_INPUT = Cell(("skip_connect", "nor_conv_3x3", "none", "none", "none", "nor_conv_3x3"))
OF_COPY = Cell(("skip_connect", "none", "nor_conv_3x3", "none", "none", "nor_conv_3x3"))


def executed(cell: Cell) -> str:
    """The part of a measured text that canonical text lacks."""
    return to_measured_text(SPACE, cell).removeprefix(to_onnx_text(SPACE, cell))


def test_lost_operations_are_run():
    assert executed(OF_INPUT).count("factor: float = 0>") == 3
    assert executed(OF_INPUT).count("nn.ConvBias") == 2


def test_a_copy_is_not_its_original():
    assert to_onnx_text(SPACE, OF_INPUT) == to_onnx_text(SPACE, OF_COPY)
    assert executed(OF_INPUT) != executed(OF_COPY)


def test_twins_that_run_otherwise_are_told_apart():
    for seed in range(20):
        cell = Cell(("skip_connect", *SPACE.sample(rng(seed)).operations[1:]))
        assert (executed(cell) == executed(bypassed(cell))) == (cell == bypassed(cell))


def factors(graph: Graph) -> list[object]:
    """By which a network's values are scaled, in each of its fifteen cells."""
    found = [node.attribute("factor") for node in graph.nodes if node.op_type == "nn.Scale"]
    assert found == found[: len(found) // 15] * 15
    return found[: len(found) // 15]


def test_a_compiler_drops_zeros_from_sums_and_what_they_alone_read():
    of_input, of_copy = (compiled_graph(to_graph(SPACE, cell)) for cell in (OF_INPUT, OF_COPY))
    assert factors(of_input) == []
    assert factors(of_copy) == [1.0]  # a copy that a convolution reads


def test_a_compiler_keeps_what_reads_zeros_alone():
    nothing = to_graph(SPACE, Cell(("none",) * 5 + ("nor_conv_3x3",)))
    assert sorted(factors(spell_scales(nothing))) == [0.0] * 5
    compiled = compiled_graph(nothing)
    assert factors(compiled) == [0.0]
    assert sum(node.op_type == "Conv" for node in compiled.nodes) == sum(
        node.op_type == "Conv" for node in nothing.nodes
    )


def test_a_scaled_value_is_all_that_a_scale_reads():
    scaled = spell_scales(to_graph(SPACE, OF_INPUT))
    assert {len(node.inputs) for node in scaled.nodes if node.op_type == "nn.Scale"} == {1}
