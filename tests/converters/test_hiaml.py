"""HiAML's graphs against the reference networks."""

import pytest

from converters import statistics, to_graph, to_onnx_text
from spaces.hiaml import BLOCKS, HiAML, Stages
from tests.converters.golden import GoldenContract, operators

SPACE = HiAML()


class TestGoldens(GoldenContract):
    space_name = "hiaml"


def test_every_block_is_another_network():
    """That equal keys mean equal names only."""
    assert len({to_onnx_text(SPACE, Stages((name,) * 4)) for name in BLOCKS}) == len(BLOCKS)


def test_counted_by_hand():
    counts = statistics(to_graph(SPACE, Stages(("hiaml_l20",) * 4)))
    assert (counts.params, counts.macs, counts.convs) == (1_688_394, 74_893_824, 17)


@pytest.mark.parametrize(
    ("name", "clips", "sums"),
    [
        *(("hiaml_z", 3, 1), ("hiaml_a22", 2, 1), ("hiaml_l20", 1, 0), ("hiaml_j30", 3, 1), ("hiaml_b23", 4, 1)),
        *(("hiaml_t20", 2, 1), ("hiaml_g30", 4, 2), ("hiaml_r30", 4, 2), ("hiaml_t31", 5, 2), ("hiaml_src0", 2, 1)),
        *(("hiaml_src1", 2, 1), ("hiaml_src3", 2, 1), ("hiaml_src7", 4, 1), ("hiaml_src8", 2, 1)),
    ],
)
def test_operators(name, clips, sums):
    """Eight blocks, a plain ReLU after each and after the stem; ReLU6 after convolutions."""
    found = operators(SPACE, Stages((name,) * 4))
    assert (found["Relu"], found["nn.Clip"], found["Sum"]) == (1 + 8, 8 * clips, 8 * sums)
