"""Blocks as they are run: what canonical text leaves out and devices spend time on."""

from converters import to_measured_text, to_onnx_text
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
