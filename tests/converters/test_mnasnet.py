"""The MnasNet space's graphs against the reference networks."""

import numpy as np
import pytest

from converters import statistics, to_graph, to_onnx_text
from spaces.mnasnet import Block, MnasNet, Network
from tests.converters.golden import GoldenContract, TableContract, operators, read_table, run, some_rows

SPACE = MnasNet()
SMALL = Network((Block(1, 3, 1, True),) * 7)


class TestGoldens(GoldenContract):
    space_name = "mnasnet"


class TestTable(TableContract):
    space_name = "mnasnet"

    @pytest.mark.shared
    def test_published_counts(self):
        """Parameters in millions; the table's ``mmacs`` count batch norms and pooling too."""
        for row in some_rows(read_table(self.space_name)).to_dict("records"):
            counts = statistics(to_graph(SPACE, SPACE.parse(row["architecture"])))
            assert counts.params == round(row["mparams"] * 1e6), row["architecture"]
            assert 0.85 < counts.macs / 1e6 / row["mmacs"] < 0.97, row["architecture"]


def test_attention_squeezes_to_a_quarter_of_the_layers_input():
    blocks = (*SMALL.blocks[:2], Block(6, 3, 2, True), *SMALL.blocks[3:])
    shapes = [
        node.attribute("weight_shape")
        for node in to_graph(SPACE, Network(blocks)).nodes
        if node.op_type == "nn.ConvBias"
    ]
    assert shapes[:8:2] == [(8, 32, 1, 1), (4, 16, 1, 1), (6, 144, 1, 1), (10, 240, 1, 1)]
    assert shapes[1:8:2] == [(32, 8, 1, 1), (16, 4, 1, 1), (144, 6, 1, 1), (240, 10, 1, 1)]


def test_relu_goes_with_a_hard_sigmoid():
    """Other activations, the same counts."""
    space = MnasNet(activation="relu")
    found = operators(space, SMALL)
    assert (found["Relu"], found["HardSigmoid"], found["Mul"]) == (9 + 7, 7, 7), "stem, header, 7 layers; 7 attentions"
    found = operators(SPACE, SMALL)
    assert (found["nn.Silu"], found["Sigmoid"], found["Mul"]) == (9 + 7, 7, 7)
    ours, theirs = statistics(to_graph(space, SMALL)), statistics(to_graph(SPACE, SMALL))
    assert (ours.params, ours.macs) == (theirs.params, theirs.macs)
    assert np.isfinite(run(to_onnx_text(space, SMALL))).all()
