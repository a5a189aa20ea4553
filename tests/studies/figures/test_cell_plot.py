"""Architectures are drawn as their cells."""

import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from spaces import get_space
from studies.figures.cell_graph import CellGraph, cell_graphs
from studies.figures.cells import cells_figure, interactive_cells


@pytest.mark.parametrize(
    ("space", "labels"),
    [
        ("nasbench201", {"nor_conv_3x3", "skip_connect"}),
        ("nasbench101", {""}),
        ("darts", {"sep_conv_3x3", ""}),
        ("nasbench_macro", {""}),
        ("mnasnet", {""}),
    ],
)
def test_architectures_are_drawn_as_their_cells(space: str, labels: set[str]) -> None:
    searched = get_space(space)
    rng = np.random.default_rng(0)
    notations = [searched.format(searched.sample(rng)) for _ in range(30)]
    graphs = [graph for notation in notations for graph in cell_graphs(searched, notation)]
    assert labels <= {label for graph in graphs for _, _, label in graph.edges}
    assert all(source < target < len(graph.nodes) for graph in graphs for source, target, _ in graph.edges)
    shown = [([notation], cell_graphs(searched, notation)) for notation in notations[:2]]
    assert len(cells_figure(shown).axes) == 2 * max(len(drawn) for _, drawn in shown)
    traces = interactive_cells(shown).data
    assert len(traces) == sum(len(graph.edges) + 1 for _, drawn in shown for graph in drawn)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("space", ["two_path", "inception", "ofa_resnet50", "mnasnet"])
def test_what_is_written_on_a_node_stays_in_its_column(space: str) -> None:
    searched = get_space(space)
    graphs = cell_graphs(searched, searched.format(searched.sample(np.random.default_rng(0))))
    figure = cells_figure([([], graphs)])
    FigureCanvasAgg(figure).draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if text.get_text()]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    assert all(box.y0 >= 0 and box.y1 <= figure.bbox.height for box in boxes)


def test_what_is_written_on_an_edge_is_clear_of_it() -> None:
    graphs = cell_graphs(get_space("nasbench201"), "|none~0|+|none~0|none~1|+|none~0|none~1|nor_conv_3x3~2|")
    figure = cells_figure([([], graphs)])
    FigureCanvasAgg(figure).draw()
    (label,) = [text for text in figure.axes[0].texts if text.get_text() == "nor_conv_3x3"]
    middle = figure.axes[0].transData.transform((2.5, 0))
    assert label.get_window_extent().y0 > middle[1] + 1


def test_what_is_written_on_edges_is_not_cut_off() -> None:
    searched = get_space("nasbench201")
    graphs = cell_graphs(searched, "|skip_connect~0|+|none~0|none~1|+|skip_connect~0|skip_connect~1|none~2|")
    figure = interactive_cells([([], graphs)])
    low, high = figure.layout.yaxis.range
    heights = np.concatenate([trace.y for trace in figure.data])
    assert low < heights.min() - 0.2
    assert high > heights.max() + 0.2
    sides = {trace.textposition for trace in figure.data[:-1] if min(trace.y) < 0}
    assert sides == {"bottom center"}


def test_cells_in_plotly_have_names_and_room_for_their_edges() -> None:
    searched, rng = get_space("darts"), np.random.default_rng(0)
    rows = [(["accuracy"], cell_graphs(searched, searched.format(searched.sample(rng)))) for _ in range(2)]
    layout = interactive_cells(rows).layout
    assert [note.text for note in layout.annotations] == ["accuracy"] * 2 + ["normal", "reduction"] * 2
    macro = [([""], cell_graphs(get_space("nasbench_macro"), "01201201"))] * 2
    assert layout.height > interactive_cells(macro).layout.height == 2 * 240


@pytest.mark.parametrize("notation", ["01201201", "12012010"])
def test_every_digit_is_a_part(notation: str) -> None:
    (graph,) = cell_graphs(get_space("nasbench_macro"), notation)
    assert graph.nodes == ("input", *notation, "output")


def test_a_cell_without_an_operation_has_no_edge() -> None:
    (graph,) = cell_graphs(get_space("nasbench201"), "|none~0|+|nor_conv_1x1~0|none~1|+|skip_connect~0|none~1|none~2|")
    assert graph.edges == ((0, 2, "nor_conv_1x1"), (0, 3, "skip_connect"))
    np.testing.assert_allclose(graph.curve(1)[[0, -1]], [[0, 0], [3, 0]], atol=1e-9)


def test_a_number_stays_beside_its_name() -> None:
    searched = get_space("mnasnet")
    (graph,) = cell_graphs(searched, searched.format(searched.sample(np.random.default_rng(0))))
    assert all(line.split(",")[0].count("\xa0") == 1 for node in graph.nodes[1:-1] for line in node.split("\n"))


@pytest.mark.parametrize("target", [1, 2])
def test_two_edges_between_the_same_nodes_are_apart(target: int) -> None:
    graph = CellGraph("", ("k-2", "k-1", "2"), ((0, target, "max_pool_3x3"), (0, target, "sep_conv_3x3")))
    first, second = (graph.curve(edge)[:, 1] for edge in range(2))
    assert np.abs(first - second).max() > 0.2


@pytest.mark.parametrize("space", ["two_path", "inception"])
def test_nothing_is_cut_off_that_is_written_on_parallel_paths(space: str) -> None:
    searched, rng = get_space(space), np.random.default_rng(0)
    graphs = [graph for _ in range(100) for graph in cell_graphs(searched, searched.format(searched.sample(rng)))]
    assert not [node for graph in graphs for node in graph.nodes if "…" in node]


def test_two_paths_are_drawn_beside_each_other() -> None:
    path = '[{"op_names": ["conv3x3"], "op_types": ["conv"]}, {"op_names": ["conv5x5"], "op_types": ["conv"]}]'
    reductions = '"path1_reduce_inds": [0, 1], "path2_reduce_inds": [0, 1]'
    (graph,) = cell_graphs(get_space("two_path"), f'{{"path1": {path}, "path2": {path}, {reductions}}}')
    blocks = ("conv3x3,\nstride\xa02", "conv5x5,\nstride\xa02")
    assert graph.nodes == ("input", *blocks, *blocks, "output")
    assert [edge[:2] for edge in graph.edges] == [(0, 1), (1, 2), (0, 3), (3, 4), (2, 5), (4, 5)]


def test_stages_of_parallel_paths_end_at_a_node() -> None:
    searched = get_space("inception")
    network = searched.sample(np.random.default_rng(0))
    (graph,) = cell_graphs(searched, searched.format(network))
    ends = [node for node, name in enumerate(graph.nodes) if name.endswith(" times")]
    assert [graph.nodes[end] for end in ends] == [f"{stage.num_blocks} times" for stage in network.stages]
    assert [[edge[1] for edge in graph.edges].count(end) for end in ends] == [len(s.paths) for s in network.stages]
