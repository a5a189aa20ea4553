"""NAS-Bench-101: 423,624 modules of up to 7 vertices and 9 edges with three operations.

Source:
    Ying et al. 2019, "NAS-Bench-101: Towards Reproducible Neural Architecture Search"; google-research/nasbench
    b942470.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from spaces.nasbench101_graphs import (
    EDGES,
    MAX_EDGES,
    MAX_VERTICES,
    Adjacency,
    graph_classes,
    labellings,
    module_hash,
    on_paths,
)
from spaces.notation import NotationReader, choice_index
from spaces.shown import shown
from spaces.space import MAX_DRAWS, ArchitectureError, Genotype, SearchSpace, check_generator

OPERATIONS = ("conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3")
INPUT, OUTPUT = "input", "output"
MAX_INTERIOR = MAX_VERTICES - 2
EDGE_ODDS, OPERATION_ODDS = 1 / MAX_VERTICES, 1 / MAX_INTERIOR  # probability that mutate changes an edge, an operation
REMEDY = 'Write it like {"adjacency": "010001000", "operations": ["input", "maxpool3x3", "output"]}.'
READER = NotationReader("nasbench101", REMEDY)


@dataclass(frozen=True)
class Module:
    """A pruned module: vertex 0 is the input, the last one the output, and all others lie on paths between them.

    Attributes:
        adjacency: (V, V) 0 or 1, upper triangular; row u, column v is the edge from u to v.
        operations: (V - 2,) one of OPERATIONS for every interior vertex.
    """

    adjacency: Adjacency
    operations: tuple[str, ...]

    def __post_init__(self) -> None:
        num_vertices = len(self.operations) + 2
        _check(num_vertices <= MAX_VERTICES, f"at most {MAX_VERTICES} vertices", f"{num_vertices} of them")
        for position, operation in enumerate(self.operations, start=1):
            _check(operation in OPERATIONS, f"one of {', '.join(OPERATIONS)}", f"{operation!r}, vertex {position}")
        sizes = [len(self.adjacency), *map(len, self.adjacency)]
        _check(set(sizes) == {num_vertices}, f"{num_vertices} rows and columns", f"sizes {sizes}")
        for source, row in enumerate(self.adjacency):
            upper = all(type(edge) is int and edge in (0, target > source) for target, edge in enumerate(row))
            _check(upper, "an upper triangle of 0 and 1", f"{row}, row {source}")
        _check(len(self.edges) <= MAX_EDGES, f"at most {MAX_EDGES} edges", f"{len(self.edges)} of them")
        used = on_paths(self.adjacency)
        _check(len(used) == num_vertices, "all vertices on paths from input to output", f"only {used} of them")

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The edges as (source, target), row by row."""
        return tuple((u, v) for u, row in enumerate(self.adjacency) for v, edge in enumerate(row) if edge)


class NASBench101(SearchSpace[Module]):
    """Networks of three stages, each with three copies of a module.

    Modules are pruned when they are decoded, parsed or varied: vertices that are on no path from input to output are
    deleted, and the others are renumbered in order. At most 9 edges may remain, as in the published files.

    A genotype has the 21 edges of 7 vertices, row by row, then the operations of the 5 interior vertices. For a smaller
    module, ``encode`` puts the interior vertices first, the output at vertex 6, and zeros in between. ``sample``
    samples genotypes uniformly until one is valid, as published.

    NOTE: every numbering of the vertices is a different architecture with its own genotype and network, because
    channels that do not divide evenly go to the first vertices (up to 1.3 % of the parameters). ``architecture_key``
    ignores that: as in the published files, isomorphic modules have equal keys, and ``size`` and ``enumerate`` count
    them once. Their texts differ in the channels or in the order in which vertices are concatenated, and with the same
    weights they compute different results.

    Attributes:
        input_shape: NCHW of one image.
        num_classes: width of the logits.

    Example:
        >>> space = NASBench101()
        >>> module = space.parse('{"adjacency": "010001000", "operations": ["input", "maxpool3x3", "output"]}')
        >>> module.edges, module.operations
        (((0, 1), (1, 2)), ('maxpool3x3',))
        >>> space.encode(module)
        (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0)
    """

    name = "nasbench101"
    objectives = (
        *("accuracy@cifar10", "valid_accuracy@cifar10", "valid_accuracy_12ep@cifar10"),
        "train_time_s@tpuv2",
    )
    gene_sizes = (2,) * len(EDGES) + (len(OPERATIONS),) * MAX_INTERIOR
    gene_help = "First EDGES of spaces/nasbench101_graphs.py, then 5 of OPERATIONS in spaces/nasbench101.py."
    size = 423_624
    input_shape = (1, 3, 32, 32)
    num_classes = 10

    def mutate(self, architecture: Module, rng: np.random.Generator) -> Module:
        """Change every edge with odds of 1/7 and every operation with odds of 1/5, until another module results.

        NOTE: this is as published except for the edges of vertices that were pruned: there they are inherited from the
        parent, here they are sampled anew. Without any such edges, modules hardly ever grow (a walk of 2,600 steps
        never reached 7 vertices).

        Source:
            mutate_spec in google-research/nasbench, NASBench.ipynb.
        """
        check_generator("mutate", rng)
        genes, choices = np.array(self._unpruned(architecture, rng)), np.array(self.gene_sizes)
        odds = np.where(np.arange(len(genes)) < len(EDGES), EDGE_ODDS, OPERATION_ODDS)
        draws = (
            tuple(((genes + (rng.random(len(genes)) < odds) * rng.integers(1, choices)) % choices).tolist())
            for _ in range(MAX_DRAWS)
        )
        return self._first((child for child in self._valid(draws) if child != architecture), "mutate")

    def enumerate(self) -> Iterator[Module]:
        """Yield one module of every isomorphism class, that of its first genotype, in lexicographic order.

        Cost: 423,624 modules in half a minute.
        """
        for bits, automorphisms in graph_classes():
            interior = len(automorphisms[0])
            for labels in labellings(interior, len(OPERATIONS), automorphisms):
                yield self._build((*bits, *labels, *[0] * (MAX_INTERIOR - interior)))

    def encode(self, architecture: Module) -> Genotype:
        last = len(architecture.adjacency) - 1
        edges = {(u, v if v < last else MAX_VERTICES - 1) for u, v in architecture.edges}
        labels = [OPERATIONS.index(operation) for operation in architecture.operations]
        return (*(int(edge in edges) for edge in EDGES), *labels, *[0] * (MAX_INTERIOR - len(labels)))

    def _build(self, genotype: Genotype) -> Module:
        return _pruned(_matrix(genotype), [OPERATIONS[label] for label in genotype[len(EDGES) :]])

    def _unpruned(self, architecture: Module, rng: np.random.Generator) -> Genotype:
        """Return a random genotype that decodes to ``architecture``, including vertices and edges that are pruned."""
        interior = len(architecture.operations)
        while True:
            genes = rng.integers(self.gene_sizes).tolist()
            places = sorted(rng.permutation(MAX_INTERIOR)[:interior].tolist())
            for place, operation in zip(places, architecture.operations, strict=True):
                genes[len(EDGES) + place] = OPERATIONS.index(operation)
            used = [0, *(place + 1 for place in places), MAX_VERTICES - 1]
            for u, v in combinations(range(len(used)), 2):
                genes[EDGES.index((used[u], used[v]))] = architecture.adjacency[u][v]
            if on_paths(_matrix(genes)) == used:
                return tuple(genes)

    def parse(self, notation: str) -> Module:
        fields = READER.read_object(notation, required=("adjacency", "operations"))
        operations = _parsed_operations(fields["operations"])
        return _pruned(_parsed_rows(fields["adjacency"], len(operations)), operations[1:-1])

    def format(self, architecture: Module) -> str:
        adjacency = "".join(str(edge) for row in architecture.adjacency for edge in row)
        return json.dumps({"adjacency": adjacency, "operations": [INPUT, *architecture.operations, OUTPUT]})

    def architecture_key(self, architecture: Module) -> str:
        """Return the published ``module_hash``. See the NOTE of the class."""
        labels = [OPERATIONS.index(operation) for operation in architecture.operations]
        return module_hash(architecture.adjacency, (-1, *labels, -2))


def _check(fulfilled: bool, expected: str, got: str) -> None:
    if not fulfilled:
        raise ArchitectureError(f"nasbench101 module: expected {expected}, got {got}. parse and decode prune first.")


def _matrix(genotype: Sequence[int]) -> list[list[int]]:
    rows = [[0] * MAX_VERTICES for _ in range(MAX_VERTICES)]
    for (source, target), bit in zip(EDGES, genotype, strict=False):
        rows[source][target] = bit
    return rows


def _pruned(rows: Sequence[Sequence[int]], operations: Sequence[str]) -> Module:
    """Return the pruned module of an adjacency matrix and the operations of its interior vertices."""
    used = on_paths(rows)
    if not used:
        raise ArchitectureError("nasbench101 module: expected a path from input to output, got none. Add edges.")
    adjacency = tuple(tuple(rows[source][target] for target in used) for source in used)
    return Module(adjacency, tuple(operations[vertex - 1] for vertex in used[1:-1]))


def _parsed_operations(value: Any) -> list[str]:
    """Return the operations of all vertices after checking them."""
    if not isinstance(value, list) or len(value) < 2:
        raise READER.error("a list of operations", shown(value))
    for position, name in enumerate(value):
        choices = (INPUT,) if position == 0 else (OUTPUT,) if position == len(value) - 1 else OPERATIONS
        choice_index("nasbench101", f"operation {position}", name, choices, REMEDY)
    return value


def _parsed_rows(value: Any, num_vertices: int) -> list[list[int]]:
    """Return (V, V) 0 or 1 from a list of rows, or from a string with the digits of all rows."""
    if isinstance(value, str):
        if len(value) != num_vertices**2:
            wanted = f"{num_vertices**2} digits of adjacency for {num_vertices} operations"
            raise READER.error(wanted, f"{len(value)} of them")
        digits = [int(digit) if digit in "01" else digit for digit in value]
        value = [digits[start : start + num_vertices] for start in range(0, len(value), num_vertices)]
    rows = [
        READER.check_list(f"adjacency row {source}", row, (num_vertices,))
        for source, row in enumerate(READER.check_list("adjacency", value, (num_vertices,)))
    ]
    for source, row in enumerate(rows):
        for target, edge in enumerate(row):
            choices = (0, 1) if target > source else (0,)
            choice_index("nasbench101", f"adjacency {source}, {target}", edge, choices, REMEDY)
    return [[int(edge) for edge in row] for row in rows]
