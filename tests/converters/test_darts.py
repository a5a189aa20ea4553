"""The graphs of DARTS against the reference networks, the published table and its parameter counts."""

import pytest

from converters import statistics, to_graph
from spaces.darts import DARTS
from tests.converters.golden import GoldenContract, TableContract, notation, read_table
from tests.spaces.contract import read_goldens

EVALUATION = DARTS(init_channels=36, layers=20)


class TestGoldens(GoldenContract):
    space_name = "darts"

    def test_evaluation_networks(self, goldens):
        """Wider and deeper, of the same cells."""
        for row in goldens[::6]:
            network = DARTS().parse(notation(row))
            cells = {"normal": network.normal, "reduce": network.reduce}
            counts = statistics(to_graph(EVALUATION, type(network)(**cells, width=36, depth=20)))
            assert (counts.params, counts.macs) == (row["params_C36_L20"], row["macs_C36_L20"])


class TestTable(TableContract):
    space_name = "darts"

    @pytest.mark.shared
    def test_parameters_are_those_of_evaluation_networks(self):
        table = read_table("darts").dropna(subset=["mparams"])
        for row in table.iloc[::10].to_dict("records"):
            counts = statistics(to_graph(EVALUATION, EVALUATION.parse(row["architecture"])))
            assert counts.params == round(row["mparams"] * 1e6)


def test_example_of_the_reference():
    """DARTS_V2, as its paper has it."""
    (row,) = [row for row in read_goldens("darts") if row["params"] == 919_722]
    counts = statistics(to_graph(DARTS(), DARTS().parse(notation(row))))
    assert (counts.params, counts.macs) == (919_722, 159_765_504)
