"""The graphs of the NDS family against the reference networks."""

from converters import to_graph, to_onnx_text
from spaces import get_space
from spaces.cells import Cell, CellNetwork
from tests.converters.golden import GoldenContract, operators

ENAS, DARTS = get_space("nds_enas"), get_space("nds_darts")


def cell(operation: str, *, last: tuple[int, int] = (0, 1)) -> Cell:
    """A cell of four nodes on both inputs; the last reads ``last``."""
    nodes = [((operation, 0), (operation, 1))] * 3 + [((operation, last[0]), (operation, last[1]))]
    return Cell(tuple(nodes), (2, 3, 4, 5))


class TestAmoebaNet(GoldenContract):
    space_name = "nds_amoebanet"


class TestENAS(GoldenContract):
    space_name = "nds_enas"


class TestNASNet(GoldenContract):
    space_name = "nds_nasnet"


class TestPNAS(GoldenContract):
    space_name = "nds_pnas"
    run_rows = (0,)


class TestDARTS(GoldenContract):
    space_name = "nds_darts"
    run_rows = (1,)


def test_strides_and_paddings_of_every_operation():
    """Each halves the resolution in a reduction and keeps it elsewhere."""
    for space in (get_space("nds_nasnet"), get_space("nds_amoebanet"), DARTS):
        for operation in space.operations:
            made = CellNetwork(cell(operation), cell(operation), 16, 4)
            graph = to_graph(space, made)
            assert {shape[2:] for shape in graph.shapes.values() if len(shape) == 4} >= {(32, 32), (16, 16), (8, 8)}


def test_operators_without_weights():
    """Three normal cells and two reductions of eight poolings; two cells slice in a factorized preprocessing."""
    network = CellNetwork(cell("max_pool_3x3"), cell("avg_pool_3x3"), 16, 5)
    found = operators(ENAS, network)
    assert (found["MaxPool"], found["AveragePool"], found["nn.Slice"]) == (24, 16, 2)
    assert found["Concat"] == 5 + 2
    assert found["Sum"] == 20
    assert "count_include_pad" not in to_onnx_text(ENAS, network)


def test_flat_convolutions_take_rows_first():
    made = cell("conv_7x1_1x7")
    graph = to_graph(get_space("nds_nasnet"), CellNetwork(made, made, 16, 4))
    kernels = [shape[2:] for node in graph.nodes if (shape := node.attribute("weight_shape")) and 7 in shape[2:]]
    assert kernels == [(1, 7), (7, 1)] * 8 * 4


def test_a_skip_that_reduces_is_a_layer():
    found = operators(ENAS, CellNetwork(cell("skip_connect"), cell("skip_connect"), 16, 4))
    assert found["nn.Slice"] == 2 + 2 * 8


def test_the_auxiliary_head_is_no_part_of_the_network():
    with_aux, without = (CellNetwork(cell("sep_conv_3x3"), cell("sep_conv_3x3"), 16, 4, aux) for aux in (True, False))
    assert to_onnx_text(ENAS, with_aux) == to_onnx_text(ENAS, without)


def test_dead_cells_leave_no_trace():
    """Of five cells that read only the one before the previous, 1 and 3, the reductions, are dead."""
    every_other = Cell(((("sep_conv_3x3", 0), ("sep_conv_3x3", 0)),) * 4, (2, 3, 4, 5))
    networks = [CellNetwork(every_other, reduce, 16, 5) for reduce in (every_other, cell("max_pool_3x3"))]
    assert DARTS.architecture_key(networks[0]) == DARTS.architecture_key(networks[1])
    assert to_onnx_text(DARTS, networks[0]) == to_onnx_text(DARTS, networks[1])


def test_representatives_of_isomorphic_cells_have_equal_texts():
    first, second = cell("sep_conv_3x3", last=(1, 2)), cell("sep_conv_3x3", last=(1, 4))
    networks = [DARTS.representative(CellNetwork(normal, first, 16, 4)) for normal in (first, second)]
    assert to_onnx_text(DARTS, networks[0]) == to_onnx_text(DARTS, networks[1])
