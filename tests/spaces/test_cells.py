"""Cells and stacks of them: their form, and their keys against a slow definition."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from spaces import ArchitectureError
from spaces.cells import Cell, CellNetwork, canonical_cell, cell_key, network_key
from spaces.nds import NDSNASNet
from tests.spaces.contract import assert_keys_agree

SKIP, SEP, POOL, NONE = "skip_connect", "sep_conv_3x3", "avg_pool_3x3", "none"
WEIGHTED = (SEP,)


def cell(*edges: tuple[str, int], concat: tuple[int, ...] = ()) -> Cell:
    """A cell from its edges, two a node; all nodes are concatenated unless told otherwise."""
    nodes = tuple(zip(edges[::2], edges[1::2], strict=True))
    return Cell(nodes, concat or tuple(range(2, 2 + len(nodes))))


PLAIN = cell((SEP, 0), (SEP, 1))


class TestCell:
    def test_edges_and_concat_stand_in_ascending_order(self):
        first = cell((SEP, 1), (POOL, 0), (SKIP, 2), (SEP, 1), concat=(3, 2))
        assert first.nodes == (((POOL, 0), (SEP, 1)), ((SEP, 1), (SKIP, 2)))
        assert first.concat == (2, 3)
        assert first == cell((POOL, 0), (SEP, 1), (SEP, 1), (SKIP, 2))

    def test_loose_ends_are_what_no_node_reads(self):
        chain = cell((SEP, 0), (SEP, 1), (SEP, 2), (SEP, 0), (SEP, 1), (SEP, 1))
        assert chain.loose_ends == (3, 4)
        assert chain.all_nodes == (2, 3, 4)

    @pytest.mark.parametrize("source", [-1, 2, 7])
    def test_a_node_reads_earlier_states(self, source):
        with pytest.raises(ArchitectureError, match=rf"expected node 2 to read states 0\.\.1, got {source} in"):
            cell((SEP, 0), (SEP, source))

    @pytest.mark.parametrize("concat", [(1,), (3,), (2, 2)])
    def test_concat_names_different_nodes(self, concat):
        with pytest.raises(ArchitectureError, match=r"expected concat to name different nodes of 2\.\.2, got"):
            cell((SEP, 0), (SEP, 1), concat=concat)

    def test_an_empty_concat_is_refused(self):
        with pytest.raises(ArchitectureError, match=r"got \[\]"):
            Cell(PLAIN.nodes, ())


class TestNetwork:
    def test_reductions_and_channels(self):
        network = CellNetwork(PLAIN, PLAIN, width=16, depth=8)
        assert [index for index in range(8) if network.is_reduction(index)] == [2, 5]
        assert [network.channels(index) for index in range(8)] == [16, 16, 32, 32, 32, 64, 64, 64]

    @pytest.mark.parametrize(("width", "depth"), [(0, 8), (16, 3), (16, 1001), (16, 10**30)])
    def test_width_and_depth_are_checked(self, width, depth):
        with pytest.raises(ArchitectureError, match=f"got width {width} and depth {depth}"):
            CellNetwork(PLAIN, PLAIN, width, depth)


class TestCellKey:
    def test_is_readable(self):
        key = cell_key(cell((SEP, 0), (POOL, 1)), reduction=False)
        assert key == "input0();input1();avg_pool_3x3(1);sep_conv_3x3(0);concat(2+3)>4"

    def test_skips_are_layers_where_they_reduce(self):
        skips = cell((SKIP, 0), (SKIP, 1))
        assert "skip_connect" not in cell_key(skips, reduction=False)
        assert cell_key(skips, reduction=True).count("skip_connect") == 2
        inner = cell((SEP, 0), (SEP, 1), (SKIP, 2), (SEP, 1))
        assert "skip_connect" not in cell_key(inner, reduction=True)

    @pytest.mark.parametrize("reduction", [False, True])
    def test_agrees_with_the_slow_definition(self, reduction):
        assert_keys_agree((cell_key(x, reduction=reduction), slow_key(x, reduction)) for x in small_cells())


class TestCanonicalCell:
    def test_is_one_for_all_numberings_and_keeps_the_key(self):
        space, rng = NDSNASNet(), np.random.default_rng(0)
        renumbered = 0
        for _ in range(20):
            drawn = space.sample(rng).normal
            canonical = canonical_cell(drawn)
            assert cell_key(canonical, reduction=True) == cell_key(drawn, reduction=True)
            assert canonical_cell(canonical) == canonical
            twins = set(shuffled(drawn))
            assert {canonical_cell(twin) for twin in twins} == {canonical}
            renumbered += len(twins) - 1
        assert renumbered > 50


class TestNetworkKey:
    def test_width_depth_and_cells_matter_but_no_auxiliary_head(self):
        network = CellNetwork(PLAIN, PLAIN, 16, 8)
        others = [
            replace(network, width=24),
            replace(network, depth=9),
            replace(network, normal=cell((SEP, 0), (SKIP, 1))),
        ]
        assert len({network_key(other) for other in (network, *others)}) == 4
        assert network_key(replace(network, aux=True)) == network_key(network)

    def test_skips_are_layers_in_reductions_alone(self):
        skips = cell((SKIP, 0), (SKIP, 1))
        assert "skip_connect" not in network_key(CellNetwork(skips, PLAIN, 16, 8))
        assert network_key(CellNetwork(PLAIN, skips, 16, 8)).count("skip_connect") == 2

    def test_names_the_live_cells(self):
        every_other = cell((SEP, 0), (SEP, 0))  # each cell reads the one before the previous
        key = network_key(CellNetwork(every_other, every_other, 16, 8))
        assert key.endswith(" | n16(-) n32(0) r64(1) n64(2)")
        assert network_key(CellNetwork(PLAIN, PLAIN, 16, 4)).endswith(" | n16(-,-) r32(-,0) r64(0,1) n64(1,2)")

    def test_a_dead_kind_of_cell_does_not_matter(self):
        """Of five cells 1 and 3 reduce; the last reads 2, and 2 reads 0."""
        every_other = cell((SEP, 0), (SEP, 0))
        network = CellNetwork(every_other, PLAIN, 16, 5)
        assert network_key(network) == network_key(replace(network, reduce=every_other))
        assert network_key(replace(network, depth=8)) != network_key(replace(network, depth=8, reduce=every_other))


def shuffled(original: Cell):
    """The cell with its nodes in every other order that it allows."""
    for order in itertools.permutations(range(2, 2 + len(original.nodes))):
        number = {0: 0, 1: 1} | {state: new for new, state in enumerate(order, start=2)}
        nodes = tuple(
            tuple((operation, number[source]) for operation, source in original.nodes[state - 2]) for state in order
        )
        if all(source < state for state, node in enumerate(nodes, start=2) for _, source in node):
            yield Cell(nodes, tuple(number[state] for state in original.concat))


def small_cells():
    """Every cell of two nodes that puts out both."""
    operations = (NONE, SKIP, SEP, POOL)
    for first, second in itertools.combinations_with_replacement(itertools.product(operations, range(2)), 2):
        for third, fourth in itertools.combinations_with_replacement(itertools.product(operations, range(3)), 2):
            yield cell(first, second, third, fourth)


def slow_key(small: Cell, reduction: bool) -> tuple[str, ...]:
    """The smallest spelling of the concatenated sums under all numberings of the operations with weights."""
    edges = [(node, edge) for node in range(len(small.nodes)) for edge in range(2)]
    numberings = itertools.permutations(range(len(edges)))
    return min(formulas(small, dict(zip(edges, numbers, strict=True)), reduction) for numbers in numberings)


def formulas(small: Cell, numbers: dict[tuple[int, int], int], reduction: bool) -> tuple[str, ...]:
    """The nodes written out as sums of terms, sorted; an operation with weights carries its number."""
    sums: list[list[str]] = [["x"], ["y"]]
    for index, node in enumerate(small.nodes):
        terms: list[str] = []
        for position, (operation, source) in enumerate(node):
            operand = "+".join(sorted(sums[source]))
            if operation in WEIGHTED or (operation == SKIP and reduction and source < 2):
                terms.append(f"{operation}#{numbers[index, position]}({operand})")
            elif operation == SKIP:
                terms.extend(sums[source])
            elif operation == POOL and operand:
                terms.append(f"pool({operand})")
        sums.append(terms)
    return tuple(sorted("+".join(sorted(sums[state])) for state in small.concat))
