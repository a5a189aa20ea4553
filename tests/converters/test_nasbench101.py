"""NAS-Bench-101's graphs against the reference networks."""

import pytest

from converters import statistics, to_graph, to_onnx_text
from converters.nasbench101 import vertex_channels
from spaces.nasbench101 import Module, NASBench101
from tests.converters.golden import GoldenContract, TableContract, operators, read_table, some_rows

SPACE = NASBench101()
POOL, CONV = "maxpool3x3", "conv1x1-bn-relu"


class TestGoldens(GoldenContract):
    space_name = "nasbench101"
    run_rows = (2, 50)


class TestTable(TableContract):
    space_name = "nasbench101"

    @pytest.mark.shared
    def test_published_counts(self):
        """Where a row was rebuilt from its hash, the vertices may stand in another order than the published one."""
        rows = some_rows(read_table(self.space_name))
        architectures = map(SPACE.parse, rows["architecture"])
        counted = [statistics(to_graph(SPACE, architecture)).params for architecture in architectures]
        ratios = [ours / theirs for ours, theirs in zip(counted, rows["params"], strict=True)]
        assert all(0.98 < ratio < 1.02 for ratio in ratios)
        assert sum(ratio == 1 for ratio in ratios) > 0.95 * len(ratios)


class TestVertexChannels:
    def test_the_first_vertices_take_the_rest(self):
        adjacency = ((0, 1, 1, 1, 1), (0, 0, 0, 0, 1), (0, 0, 0, 0, 1), (0, 0, 0, 0, 1), (0, 0, 0, 0, 0))
        assert vertex_channels(Module(adjacency, (POOL,) * 3), 128) == [43, 43, 42]
        assert vertex_channels(Module(adjacency, (POOL,) * 3), 512) == [171, 171, 170]

    def test_others_have_as_many_as_the_widest_they_feed(self):
        adjacency = ((0, 1, 0, 0, 0, 0), (0, 0, 1, 1, 1, 0), *[(0, 0, 0, 0, 0, 1)] * 3, (0,) * 6)
        channels = vertex_channels(Module(adjacency, (CONV, POOL, POOL, POOL)), 128)
        assert channels == [43, 43, 43, 42]

    def test_one_channel_too_many_is_cut_off(self):
        adjacency = ((0, 1, 0, 0, 0, 0), (0, 0, 1, 1, 1, 0), *[(0, 0, 0, 0, 0, 1)] * 3, (0,) * 6)
        assert to_onnx_text(SPACE, Module(adjacency, (CONV, POOL, POOL, POOL))).count("nn.Slice") > 0


def test_operators():
    """Nine modules; poolings of 2 between the stages, and a ReLU after the stem and every convolution."""
    adjacency = ((0, 1, 0, 1), (0, 0, 1, 1), (0, 0, 0, 1), (0, 0, 0, 0))
    found = operators(SPACE, Module(adjacency, (POOL, CONV)))
    assert (found["MaxPool"], found["Concat"], found["Relu"], found["nn.Conv"]) == (2 + 9, 9, 1 + 27, 1 + 27)


def test_input_and_output_alone():
    """Published: 882,570 parameters."""
    counts = statistics(to_graph(SPACE, SPACE.parse('{"adjacency": "0100", "operations": ["input", "output"]}')))
    assert (counts.params, counts.convs) == (882_570, 10)


def test_branches_of_a_sum_commute():
    """Numberings that change neither channels nor the order of a concatenation give one text."""
    first = Module(((0, 1, 1, 0, 0), (0, 0, 0, 1, 0), (0, 0, 0, 1, 0), (0, 0, 0, 0, 1), (0,) * 5), (CONV, POOL, POOL))
    second = Module(first.adjacency, (POOL, CONV, POOL))
    assert SPACE.architecture_key(first) == SPACE.architecture_key(second)
    assert to_onnx_text(SPACE, first) == to_onnx_text(SPACE, second)
