"""NAS-Bench-101: pruning, the official hash, one module of every isomorphism class."""

import itertools
import json

import numpy as np
import pytest

from spaces import ArchitectureError
from spaces.nasbench101 import OPERATIONS, Module, NASBench101
from spaces.nasbench101_graphs import EDGES, graph_classes, labellings
from tests.converters.golden import read_table
from tests.spaces.contract import SEEDS, SpaceContract, read_goldens, rng

SPACE = NASBench101()
CONV3, CONV1, POOL = OPERATIONS
CHAIN = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6))


def module(*edges: tuple[int, int], operations: tuple[str, ...]) -> Module:
    """A module by its edges."""
    vertices = range(len(operations) + 2)
    return Module(tuple(tuple(int((u, v) in edges) for v in vertices) for u in vertices), operations)


def notation(*edges: tuple[int, int], operations: tuple[str, ...]) -> str:
    """Official matrix and labels, not pruned."""
    vertices = range(len(operations) + 2)
    adjacency = [[int((u, v) in edges) for v in vertices] for u in vertices]
    return json.dumps({"adjacency": adjacency, "operations": ["input", *operations, "output"]})


def relabelled(architecture: Module, order: tuple[int, ...]) -> Module | None:
    """The module whose vertex i is vertex order[i] of the first; None if an edge would run backwards."""
    adjacency = tuple(tuple(architecture.adjacency[u][v] for v in order) for u in order)
    try:
        return Module(adjacency, tuple(architecture.operations[v - 1] for v in order[1:-1]))
    except ArchitectureError:
        return None


def relabellings(architecture: Module) -> set[Module]:
    last = len(architecture.adjacency) - 1
    orders = itertools.permutations(range(1, last))
    return {found for order in orders if (found := relabelled(architecture, (0, *order, last))) is not None}


class TestContract(SpaceContract):
    space_name = "nasbench101"
    malformed = (*SpaceContract.malformed, "null", "[[]]", '{"adjacency": "", "operations": []}', "[" * 100_000)

    def test_crossover_takes_genes_from_its_parents(self, space):
        """Pruning closes up the vertices of a child, so it is its genotype before that shows the parents' genes."""
        first = module(*CHAIN, operations=(CONV3, CONV3, POOL, CONV3, CONV3))
        second = module(*CHAIN, (1, 6), (3, 6), operations=(CONV3, CONV1, POOL, CONV3, CONV1))
        genes = zip(space.encode(first), space.encode(second), strict=True)
        possible = {space.decode(mixed) for mixed in itertools.product(*[sorted(set(pair)) for pair in genes])}
        assert len(possible) == 16
        assert {space.crossover(first, second, rng(seed)) for seed in range(200)} == possible

    def test_mutate_reaches_every_gene(self, space):
        """From 7 vertices: one of 250 architectures drawn has as many, so a walk seldom comes there."""
        parent, generator = module(*CHAIN, operations=(CONV3, CONV1, POOL, CONV3, CONV1)), rng(0)
        children = [space.encode(space.mutate(parent, generator)) for _ in range(400)]
        changes = [[gene != old for gene, old in zip(child, space.encode(parent), strict=True)] for child in children]
        assert all(any(column) for column in zip(*changes, strict=True))


class TestPruning:
    def test_vertices_on_no_path_go(self):
        text = notation((0, 1), (0, 2), (1, 4), (3, 4), (4, 5), (4, 6), operations=(POOL, CONV3, CONV3, CONV1, CONV3))
        pruned = module((0, 1), (1, 2), (2, 3), operations=(POOL, CONV1))
        assert SPACE.parse(text) == pruned
        assert SPACE.format(pruned) == (
            '{"adjacency": "0100001000010000", "operations": ["input", "maxpool3x3", "conv1x1-bn-relu", "output"]}'
        )

    def test_edges_are_counted_after_it(self):
        """15 edges among 6 vertices, of which two reach the output."""
        edges = [(u, v) for u, v in EDGES if v < 6 and u > 0]
        text = notation((0, 1), (1, 6), *edges, operations=(CONV3,) * 5)
        assert SPACE.parse(text) == module((0, 1), (1, 2), operations=(CONV3,))

    def test_goldens(self):
        for row in read_goldens("nasbench101"):
            architecture = SPACE.parse(json.dumps(row["genotype"]))
            assert [list(found) for found in architecture.adjacency] == row["pruned_adjacency"]
            assert ["input", *architecture.operations, "output"] == row["pruned_operations"]

    def test_small_modules_encode_with_the_output_last(self):
        genotype = SPACE.encode(module((0, 1), (0, 2), (1, 2), operations=(POOL,)))
        assert [edge for edge, bit in zip(EDGES, genotype, strict=False) if bit] == [(0, 1), (0, 6), (1, 6)]
        assert genotype[len(EDGES) :] == (2, 0, 0, 0, 0)

    def test_genotypes_of_one_network_decode_to_one_architecture(self):
        third = SPACE.decode([int(edge in ((0, 3), (3, 6), (4, 6))) for edge in EDGES] + [0, 1, 2, 0, 1])
        assert third == module((0, 1), (1, 2), operations=(POOL,))


class TestNotation:
    def test_digits_and_rows(self):
        digits = '{"adjacency": "0111001000010000", "operations": ["input", "maxpool3x3", "maxpool3x3", "output"]}'
        rows = notation((0, 1), (0, 2), (0, 3), (1, 2), (2, 3), operations=(POOL, POOL))
        assert SPACE.parse(digits) == SPACE.parse(rows)
        assert SPACE.format(SPACE.parse(rows)) == digits

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"adjacency": "0100"}, "got no operations"),
            ({"operations": ["input"]}, r"expected a list of operations, got \['input'\]"),
            ({"operations": ["output", "input"]}, "operation 0 to be one of input, got 'output'"),
            ({"operations": ["input", "conv", "output"]}, "operation 1 to be one of conv3x3-bn-relu, .*, got 'conv'"),
            ({"operations": ["input", POOL, POOL]}, "operation 2 to be one of output"),
            ({"adjacency": "010"}, "expected 4 digits of adjacency for 2 operations, got 3 of them"),
            ({"adjacency": "0200"}, "adjacency 0, 1 to be one of 0, 1, got '2'"),
            ({"adjacency": "0110"}, "adjacency 1, 0 to be one of 0, got 1"),
            ({"adjacency": [[0, 1], [0, 1]]}, "adjacency 1, 1 to be one of 0, got 1"),
            ({"adjacency": [[0, "1"], [0, 0]]}, "adjacency 0, 1 to be one of 0, 1, got '1'"),
            ({"adjacency": [[0, True], [0, 0]]}, "adjacency 0, 1 to be one of .*, got True"),
            ({"adjacency": [[0, 1]]}, "expected a list of 2 in adjacency, got 1 of them"),
            ({"adjacency": [[0, 1], [0]]}, "expected a list of 2 in adjacency row 1, got 1 of them"),
            ({"adjacency": 5}, "expected a list of 2 in adjacency, got 5"),
            ({"adjacency": "0000"}, "expected a path from input to output, got none"),
        ],
    )
    def test_errors_name_the_position(self, fields, message):
        value = {"adjacency": "0100", "operations": ["input", "output"]} | fields
        if fields == {"adjacency": "0100"}:
            value = fields
        with pytest.raises(ArchitectureError, match=f"^nasbench101.*{message}"):
            SPACE.parse(json.dumps(value))

    @pytest.mark.parametrize(
        ("adjacency", "operations", "message"),
        [
            (((0, 1), (0, 0)), ("conv",), "expected one of .*, got 'conv', vertex 1"),
            (((0, 1), (0, 0)), (POOL,), r"expected 3 rows and columns, got sizes \[2, 2, 2\]"),
            (((0, 1), (0, 1)), (), r"expected an upper triangle of 0 and 1, got \(0, 1\), row 1"),
            (((0, 1.0), (0, 0)), (), "expected an upper triangle"),
            (((0, 0, 1), (0, 0, 1), (0, 0, 0)), (POOL,), r"expected all vertices on paths .*, got only \[0, 2\]"),
            (((0,) * 8,) * 8, (POOL,) * 6, "expected at most 7 vertices, got 8 of them"),
        ],
    )
    def test_modules_made_by_hand_are_checked(self, adjacency, operations, message):
        with pytest.raises(ArchitectureError, match=message):
            Module(adjacency, operations)

    def test_ten_edges_are_too_many(self):
        with pytest.raises(ArchitectureError, match="expected at most 9 edges, got 10 of them"):
            module(*CHAIN, (0, 6), (1, 6), (2, 6), (3, 6), operations=(POOL,) * 5)


class TestMutate:
    def test_changes_edges_and_operations_at_the_published_odds(self):
        """Every edge with odds of 1/7, every operation with 1/5, if nothing is refused or pruned: so in small."""
        generator, parent = np.random.default_rng(0), module(*CHAIN, operations=(POOL,) * 5)
        children = [SPACE.mutate(parent, generator) for _ in range(2_000)]
        whole = [child for child in children if set(CHAIN) <= set(child.edges)]
        gained = sum(len(child.edges) - len(CHAIN) for child in whole) / len(whole)
        changed = sum(operation != POOL for child in whole for operation in child.operations) / len(whole)
        assert 1.2 < gained < 2.1, "15 / 7, less what more than three new edges and no change would add"
        assert 0.9 < changed < 1.2, "5 / 5, more since the parent itself is refused"


class TestKey:
    def test_is_the_published_hash(self):
        for row in read_goldens("nasbench101"):
            assert SPACE.architecture_key(SPACE.parse(json.dumps(row["genotype"]))) == row["module_hash"]

    @pytest.mark.parametrize("seed", SEEDS)
    def test_equal_for_all_numberings_of_the_vertices(self, seed):
        architecture = SPACE.sample(rng(seed))
        assert {SPACE.architecture_key(other) for other in relabellings(architecture)} == {
            SPACE.architecture_key(architecture)
        }

    @pytest.mark.shared
    def test_published_table(self):
        table = read_table("nasbench101")
        assert len(table) == 31_893
        rows = table.iloc[::10]
        for text, module_hash in zip(rows["architecture"], rows["module_hash"], strict=True):
            assert SPACE.architecture_key(SPACE.parse(text)) == module_hash


class TestEnumerate:
    def test_a_graph_stands_first_among_its_relabellings(self):
        """Of all graphs whose input feeds vertex 1 alone, listed the slow way."""
        first: dict[str, tuple[int, ...]] = {}
        for rest in itertools.product((0, 1), repeat=10):
            bits = (1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, *rest)
            try:
                architecture = SPACE.decode((*bits, 0, 0, 0, 0, 0))
            except ArchitectureError:
                continue
            key = SPACE.architecture_key(architecture)
            if key not in first:
                first[key] = min(SPACE.encode(other) for other in relabellings(architecture))[: len(EDGES)]
        expected = sorted(bits for bits in set(first.values()) if bits[6:11] == (1, 0, 0, 0, 0))
        listed = itertools.takewhile(lambda bits: bits[:6] == (1, 0, 0, 0, 0, 0), _after_two_vertices())
        assert [bits for bits in listed if bits[6:11] == (1, 0, 0, 0, 0)] == expected

    def test_labels_stand_first_among_their_images(self):
        for bits, automorphisms in itertools.islice(graph_classes(), 0, 400, 40):
            interior = len(automorphisms[0])
            first: dict[str, tuple[int, ...]] = {}
            for labels in itertools.product(range(3), repeat=interior):
                padded = (*labels, *[0] * (5 - interior))
                first.setdefault(SPACE.architecture_key(SPACE.decode((*bits, *padded))), labels)
            assert list(labellings(interior, 3, automorphisms)) == list(first.values())

    @pytest.mark.slow
    def test_lists_every_published_module_once(self):
        keys = [SPACE.architecture_key(architecture) for architecture in SPACE.enumerate()]
        assert len(set(keys)) == len(keys) == SPACE.size


def _after_two_vertices():
    graphs = (bits for bits, _ in graph_classes())
    return itertools.dropwhile(lambda bits: bits[0] == 0, graphs)
