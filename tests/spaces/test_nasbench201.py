"""NAS-Bench-201 against its published order, the reference networks and a slow definition of the key."""

import itertools
import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaces import ArchitectureError
from spaces.nasbench201 import DATASETS, EDGES, OPERATIONS, Cell, NASBench201
from tests.spaces.contract import SpaceContract, assert_keys_agree, read_goldens

TABLE = Path(__file__).parents[3] / "shared" / "data" / "nasbench201.parquet"
SPACE = NASBench201()
CONVOLUTIONS = ("nor_conv_1x1", "nor_conv_3x3")
cells = st.tuples(*[st.sampled_from(OPERATIONS)] * len(EDGES)).map(Cell)


def cell(*operations: str) -> Cell:
    """A cell by short names of its six operations."""
    short = {
        "0": "none",
        "x": "skip_connect",
        "c1": "nor_conv_1x1",
        "c3": "nor_conv_3x3",
        "p": "avg_pool_3x3",
    }
    return Cell(tuple(short[operation] for operation in operations))


def key(*operations: str) -> str:
    return SPACE.architecture_key(cell(*operations))


class TestContract(SpaceContract):
    space_name = "nasbench201"
    malformed = (*SpaceContract.malformed, "++", "|||+|||+||||", "|none~0|+|none~0|none~1|")


def test_isomorphic_cells_have_one_representative_without_dead_operations():
    twins = [
        "|none~0|+|none~0|nor_conv_3x3~1|+|skip_connect~0|none~1|none~2|",
        "|none~0|+|none~0|none~1|+|skip_connect~0|none~1|none~2|",
    ]
    first, second = (SPACE.representative(SPACE.parse(notation)) for notation in twins)
    assert first == second == SPACE.parse(twins[1])


class TestNotation:
    @given(cells)
    def test_round_trips(self, architecture):
        assert SPACE.parse(SPACE.format(architecture)) == architecture
        assert SPACE.decode(SPACE.encode(architecture)) == architecture

    @given(st.text("|+~012nor_cv"))
    def test_letters_at_random_are_refused(self, text):
        with pytest.raises(ArchitectureError):
            SPACE.parse(text)

    def test_no_letter_of_a_notation_may_be_another(self):
        notation = SPACE.format(cell("c3", "0", "p", "x", "c1", "0"))  # one of each
        for position, letter in itertools.product(range(len(notation)), "|+~012nor_cv"):
            if letter != notation[position]:
                with pytest.raises(ArchitectureError):
                    SPACE.parse(notation[:position] + letter + notation[position + 1 :])

    def test_official_string(self):
        notation = "|nor_conv_3x3~0|+|none~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_1x1~1|none~2|"  # one of each
        architecture = SPACE.parse(notation)
        assert architecture == cell("c3", "0", "p", "x", "c1", "0")
        assert SPACE.encode(architecture) == (3, 0, 4, 1, 2, 0)
        assert architecture.inputs(3) == (("skip_connect", 0), ("nor_conv_1x1", 1), ("none", 2))

    @pytest.mark.parametrize(
        ("notation", "message"),
        [
            ("|none~0|", r"expected 3 nodes joined by '\+', got 1"),
            ("|none~0|+|none~0|+|none~0|none~1|none~2|", "expected 2 inputs of node 2"),
            ("|none~0|+|none~0|none~1|+none~0|none~1|none~2|", "expected 3 inputs of node 3"),
            ("|none~0|+|none~0|conv~1|+|none~0|none~1|none~2|", r"got 'conv~1', position 2 \(node 1 to 2\)"),
            (
                "|none~0|+|none~1|none~0|+|none~0|none~1|none~2|",
                "expected OPERATION~0 .*got 'none~1', position 1",
            ),
            (
                "|none~0|+|none~0|none~1|+|none~0|none~1|none~02|",
                "expected OPERATION~2 .*'none~02', position 5",
            ),
            ("|none~0|+|none~0|none~1|+|none~0|none~1|none|", "got 'none', position 5"),
        ],
    )
    def test_errors_name_the_position(self, notation, message):
        with pytest.raises(ArchitectureError, match=message):
            SPACE.parse(notation)

    def test_genotype_error(self):
        with pytest.raises(ArchitectureError) as error:
            SPACE.decode((0, 4, 5, 1, 1, 0))
        assert str(error.value) == (
            "nasbench201 genotype: expected 6 integers in 0..4, got (0, 4, 5, 1, 1, 0), position 2. "
            "See OPERATIONS in spaces/nasbench201.py."
        )

    @pytest.mark.parametrize(
        ("operations", "where"), [(("none",) * 5, "5 operations"), (("none",) * 5 + ("conv",), "position 5")]
    )
    def test_cells_made_by_hand_are_checked(self, operations, where):
        with pytest.raises(ArchitectureError, match=f"expected 6 operations of none, .*{where}"):
            Cell(operations)


class TestDatasets:
    def test_input_and_classes(self):
        assert SPACE.dataset == "cifar10"
        for dataset, (resolution, num_classes) in DATASETS.items():
            space = NASBench201(dataset=dataset)
            assert (space.input_shape, space.num_classes) == ((1, 3, resolution, resolution), num_classes)

    def test_unknown(self):
        with pytest.raises(ValueError, match="expected one of cifar10, cifar100, imagenet16-120, got 'mnist'"):
            NASBench201(dataset="mnist")


class TestOfficialIndex:
    def test_is_a_bijection(self):
        architectures = [SPACE.from_official_index(index) for index in range(SPACE.size)]
        assert [SPACE.official_index(architecture) for architecture in architectures] == list(range(SPACE.size))
        assert set(architectures) == set(SPACE.enumerate())

    def test_leaves_the_global_random_state_alone(self):
        from spaces import nasbench201

        random.seed(1)
        state = random.getstate()
        nasbench201._official_genotypes.__wrapped__()
        assert random.getstate() == state

    @pytest.mark.parametrize("index", [-1, 15_625])
    def test_out_of_range(self, index):
        with pytest.raises(ArchitectureError, match=rf"index: expected 0\.\.15624, got {index}\."):
            SPACE.from_official_index(index)

    def test_goldens(self):
        for row in read_goldens("nasbench201"):
            assert SPACE.official_index(SPACE.parse(row["genotype"])) == row["arch_idx"]

    @pytest.mark.shared
    def test_published_table(self):
        if not TABLE.exists():
            pytest.skip(f"the published table is not at {TABLE}")
        table = pytest.importorskip("pandas").read_parquet(TABLE)
        assert len(table) == 10_341
        for index, notation in zip(table["index"], table["architecture"], strict=True):
            assert SPACE.format(SPACE.from_official_index(index)) == notation
        assert set(SPACE.objectives) == {column for column in table.columns if "@" in column}


class TestMutate:
    def test_changes_one_edge_and_draws_its_node_first(self):
        generator, parent = np.random.default_rng(0), cell("c3", "c3", "c3", "x", "c3", "c1")
        changes = [0] * len(EDGES)
        for _ in range(3_000):
            child = SPACE.mutate(parent, generator)
            changed = [i for i in range(6) if child.operations[i] != parent.operations[i]]
            assert len(changed) == 1
            changes[changed[0]] += 1
        expected = [1_000, 500, 500, 333, 333, 333]
        assert all(abs(count - mean) < 5 * mean**0.5 for count, mean in zip(changes, expected, strict=True))

    def test_draws_every_other_operation(self):
        generator, parent = np.random.default_rng(0), cell(*["x"] * 6)
        first = {SPACE.mutate(parent, generator).operations[0] for _ in range(200)}
        assert first == set(OPERATIONS)


class TestKey:
    def test_is_readable(self):
        assert key("c3", "c3", "c3", "x", "c3", "c1") == (
            "input();nor_conv_3x3(0);nor_conv_3x3(0);nor_conv_3x3(1);nor_conv_3x3(1);nor_conv_1x1(2+3)>0+4+5"
        )
        assert key("0", "0", "0", "0", "0", "0") == ">"
        assert key("x", "0", "0", "0", "x", "0") == "input()>0"

    def test_equal_cells(self):
        assert key("c1", "0", "0", "0", "x", "0") == key("0", "0", "0", "c1", "0", "0"), "a skip is no step"
        assert key("c1", "c3", "0", "0", "x", "x") == key("c3", "c1", "0", "0", "x", "x"), "sums commute"
        assert key("p", "p", "0", "0", "x", "x") == key("p", "0", "x", "0", "x", "x"), "one pooling, twice"
        assert key("0", "0", "p", "x", "c1", "0") == key("0", "0", "0", "x", "c1", "p"), "pooled zero is zero"
        assert key("c1", "c3", "p", "x", "0", "0") == key("0", "0", "0", "x", "0", "0"), "dead edges"

    def test_different_cells(self):
        assert key("x", "0", "0", "x", "x", "0") != key("0", "0", "0", "x", "0", "0"), "x + x is not x"
        assert key("c1", "0", "x", "0", "x", "x") != key("c1", "c1", "0", "0", "x", "x"), "weights are not shared"
        assert key("0", "0", "0", "x", "c1", "0") != key("0", "0", "0", "x", "0", "0"), "batch norm of zero lives"
        assert key("c1", "x", "x", "0", "0", "p") != key("c1", "p", "p", "0", "0", "x"), "pooling is no sum"

    def test_counts(self):
        """The NOTE at architecture_key: our keys and the strings of the paper."""
        strings, keys = defaultdict(set), defaultdict(set)
        for architecture in SPACE.enumerate():
            ours, theirs = SPACE.architecture_key(architecture), paper_string(architecture)
            strings[ours].add(theirs)
            keys[theirs].add(ours)
        assert (len(strings), len(keys)) == (5_875, 6_466)
        assert sum(len(found) > 1 for found in strings.values()) == 841
        assert sum(len(found) > 1 for found in keys.values()) == 523

    def test_live_convolutions_of_the_reference_networks(self):
        """7 outside the cells: stem and two reductions; a cell that ignores its input cuts all before it."""
        for row in read_goldens("nasbench201"):
            found = SPACE.architecture_key(SPACE.parse(row["genotype"]))
            in_cell = found.count("nor_conv")
            assert row["live_convs"] == (7 + 15 * in_cell if "input()" in found else in_cell), row["genotype"]

    def test_agrees_with_the_slow_definition_on_every_cell(self):
        assert_keys_agree((SPACE.architecture_key(cell), slow_key(cell)) for cell in SPACE.enumerate())


def slow_key(architecture: Cell) -> str:
    """The smallest of the cell's formulas under all numberings of its convolutions."""
    convolutions = [edge for edge, name in zip(EDGES, architecture.operations, strict=True) if name in CONVOLUTIONS]
    numberings = itertools.permutations(range(len(convolutions)))
    return min(formula(architecture, dict(zip(convolutions, numbers, strict=True))) for numbers in numberings)


def formula(architecture: Cell, numbers: dict[tuple[int, int], int]) -> str:
    """Node 3 written out as sums of terms; a convolution carries the number of its weights.

    Only live convolutions matter: some numbering gives the dead ones the highest numbers.
    """
    sums: list[list[str]] = [["x"]]
    for node in range(1, 4):
        terms = []
        for operation, source in architecture.inputs(node):
            operand = "+".join(sorted(sums[source]))
            if operation == "skip_connect":
                terms.extend(sums[source])
            elif operation in CONVOLUTIONS:
                terms.append(f"{operation}#{numbers[source, node]}({operand})")
            elif operation == "avg_pool_3x3" and operand:
                terms.append(f"pool({operand})")
        sums.append(terms)
    return "+".join(sorted(sums[3]))


def paper_string(architecture: Cell) -> str:
    """What to_unique_str(consider_zero=True) of AutoDL-Projects gives."""
    nodes = ["0"]
    for node in range(1, 4):
        terms = []
        for operation, source in architecture.inputs(node):
            if operation == "none" or nodes[source] == "#":
                terms.append("#")
            else:
                terms.append(nodes[source] if operation == "skip_connect" else f"({nodes[source]})@{operation}")
        nodes.append("+".join(sorted(terms)))
    return nodes[3]
