"""NAS-Bench-201: 15,625 cells of four nodes and six edges with five choices of operation each.

Source:
    Dong & Yang 2020, "NAS-Bench-201: Extending the Scope of Reproducible Neural Architecture Search";
    D-X-Y/AutoDL-Projects f46486e, xautodl/models. Labels also from HW-NAS-Bench (Li et al. 2021) and HELP
    (Lee et al. 2021), whose device names end in the batch size.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from spaces.isomorphism import ZERO, Dataflow, Value, add
from spaces.notation import checked_text
from spaces.shown import shown
from spaces.space import ArchitectureError, Genotype, SearchSpace, check_generator

OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))  # (source, node), in the order of the notation
NUM_NODES = 4
DATASETS = {"cifar10": (32, 10), "cifar100": (32, 100), "imagenet16-120": (16, 120)}  # resolution, classes

_ACCURACIES = tuple(f"{metric}@{name}" for name in DATASETS for metric in ("accuracy", "valid_accuracy"))
_HWNASBENCH_DEVICES = ("edgegpu", "raspi4", "edgetpu", "pixel3", "eyeriss", "fpga")
_HELP_DEVICES = (
    *("1080ti_1", "1080ti_256", "1080ti_32", "2080ti_1", "2080ti_256", "2080ti_32", "essential_ph_1"),
    *("gold_6240", "samsung_a50", "samsung_s7", "silver_4114", "silver_4210r", "titan_rtx_1", "titan_rtx_32"),
    *("titanx_1", "titanx_256", "titanx_32", "titanxp_1", "titanxp_256", "titanxp_32"),
)


@dataclass(frozen=True)
class Cell:
    """A cell: node 0 is the input, node 3 the output, and every node from 1 on is the sum of its incoming edges.

    Attributes:
        operations: (6,) one of OPERATIONS for every edge, in the order of EDGES.
    """

    operations: tuple[str, ...]

    def __post_init__(self) -> None:
        unknown = [position for position, name in enumerate(self.operations) if name not in OPERATIONS]
        if unknown or len(self.operations) != len(EDGES):
            where = f"position {unknown[0]}" if unknown else f"{len(self.operations)} operations"
            raise ArchitectureError(
                f"nasbench201 cell: expected {len(EDGES)} operations of {', '.join(OPERATIONS)}, "
                f"got {self.operations}, {where}. See EDGES in spaces/nasbench201.py."
            )

    def inputs(self, node: int) -> tuple[tuple[str, int], ...]:
        """Return (operation, source node) of every edge into ``node``."""
        edges = zip(self.operations, EDGES, strict=True)
        return tuple((operation, source) for operation, (source, target) in edges if target == node)


class NASBench201(SearchSpace[Cell]):
    """The topology space of NAS-Bench-201 (= NATS-Bench TSS).

    The data set determines the network around the cell, but not the cell: spaces of all three data sets have equal
    architectures with equal keys.

    Args:
        dataset: cifar10, cifar100 or imagenet16-120.

    Attributes:
        input_shape: NCHW of one image.
        num_classes: width of the logits.

    Example:
        >>> space = NASBench201()
        >>> cell = space.decode((3, 3, 3, 1, 3, 2))
        >>> space.format(cell)
        '|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|'
        >>> space.official_index(cell)
        6111
    """

    name = "nasbench201"
    runs_lost_operations = True
    objectives = (
        *_ACCURACIES,
        "valid_accuracy_12ep@cifar10",
        *(f"latency_ms@{device}" for device in _HWNASBENCH_DEVICES),
        *(f"energy_mj@{device}" for device in ("edgegpu", "eyeriss", "fpga")),
        *(f"latency_ms@{device}" for device in _HELP_DEVICES),
    )
    gene_sizes = (len(OPERATIONS),) * len(EDGES)
    gene_help = "See OPERATIONS in spaces/nasbench201.py."

    def __init__(self, *, dataset: str = "cifar10") -> None:
        if dataset not in DATASETS:
            raise ValueError(f"nasbench201 dataset: expected one of {', '.join(DATASETS)}, got {dataset!r}.")
        resolution, self.num_classes = DATASETS[dataset]
        self.dataset = dataset
        self.input_shape = (1, 3, resolution, resolution)

    def mutate(self, architecture: Cell, rng: np.random.Generator) -> Cell:
        """Change the operation of one edge.

        NOTE: the node is sampled first, then one of its edges, so the only edge into node 1 changes three times as
        often as an edge into node 3.

        Source:
            mutate_arch_func in AutoDL-Projects, exps/NATS-algos/regularized_ea.py.
        """
        check_generator("mutate", rng)
        node = int(rng.integers(1, NUM_NODES))
        position = EDGES.index((int(rng.integers(node)), node))
        genes = list(self.encode(architecture))
        genes[position] = (genes[position] + int(rng.integers(1, len(OPERATIONS)))) % len(OPERATIONS)
        return self._build(tuple(genes))

    def encode(self, architecture: Cell) -> Genotype:
        return tuple(OPERATIONS.index(operation) for operation in architecture.operations)

    def _build(self, genotype: Genotype) -> Cell:
        return Cell(tuple(OPERATIONS[gene] for gene in genotype))

    def parse(self, notation: str) -> Cell:
        nodes = checked_text(self.name, notation).split("+")
        if len(nodes) != NUM_NODES - 1:
            raise ArchitectureError(
                f"nasbench201 notation: expected {NUM_NODES - 1} nodes joined by '+', got {len(nodes)} "
                f"in {shown(notation)}. Write it like {self.format(self._build((0,) * len(EDGES)))}."
            )
        inputs = (_parsed_inputs(text, node, notation) for node, text in enumerate(nodes, start=1))
        return Cell(tuple(operation for operations in inputs for operation in operations))

    def format(self, architecture: Cell) -> str:
        inputs = (architecture.inputs(node) for node in range(1, NUM_NODES))
        return "+".join("|" + "".join(f"{operation}~{source}|" for operation, source in row) for row in inputs)

    def architecture_key(self, architecture: Cell) -> str:
        """Return a key, equal if and only if two cells compute the same function up to a renaming of their weights.

        Every convolution has weights of its own. Pools of equal values are equal. A convolution of zero is kept,
        because its batch norm makes it a constant other than zero.

        NOTE: the 15,625 cells have 5,875 keys. The 6,466 in the paper are strings of
        ``to_unique_str(consider_zero=True)`` in AutoDL-Projects, which is wrong in both directions. It separates equal
        cells: zeros stay in sums (``#+x`` is not ``x``, ``#+#`` is no zero), and a sum that is skipped is sorted as one
        piece (841 keys have several strings). It merges different cells: as the string is a tree, two convolutions of a
        value look like one that is used twice, and convolutions of zero are dropped (523 strings have several keys).
        Trees with flat sums would give 5,545.
        """
        graph = Dataflow()
        values = [graph.fresh("input")]
        for node in range(1, NUM_NODES):
            terms = [_term(graph, operation, values[source]) for operation, source in architecture.inputs(node)]
            values.append(add(*terms))
        return graph.key(values[-1])

    def representative(self, architecture: Cell) -> Cell:
        """Return the isomorphic cell with the smallest genotype, in which edges without effect are ``none``.

        NOTE: published latencies of isomorphic cells differ, because the measured networks executed dead operations
        too; the representative executes the fewest. The first call builds a table of 15,625 in about a second.
        """
        return self._build(_representatives()[self.architecture_key(architecture)])

    def official_index(self, architecture: Cell) -> int:
        """Return the index in the published benchmark files, 0 to 15,624. The first call builds a table of 15,625."""
        return _official_indices()[self.encode(architecture)]

    def from_official_index(self, index: int) -> Cell:
        """Return the architecture with an index in the published benchmark files.

        Raises:
            ArchitectureError: the index is outside 0..15624.
        """
        if not 0 <= index < self.size:
            raise ArchitectureError(f"nasbench201 index: expected 0..{self.size - 1}, got {index}.")
        return self._build(_official_genotypes()[index])


def _parsed_inputs(text: str, node: int, notation: str) -> Iterator[str]:
    entries = text[1:-1].split("|")
    if text[:1] != "|" or text[-1:] != "|" or len(entries) != node:
        raise ArchitectureError(
            f"nasbench201 notation: expected {node} inputs of node {node}, each between bars, got {shown(text)} "
            f"in {shown(notation)}. See EDGES in spaces/nasbench201.py."
        )
    for source, entry in enumerate(entries):
        operation, _, index = entry.rpartition("~")
        if operation not in OPERATIONS or index != str(source):
            raise ArchitectureError(
                f"nasbench201 notation: expected OPERATION~{source} with one of {', '.join(OPERATIONS)}, "
                f"got {shown(entry)}, position {EDGES.index((source, node))} (node {source} to {node}) "
                f"in {shown(notation)}. See OPERATIONS in spaces/nasbench201.py."
            )
        yield operation


def _term(graph: Dataflow, operation: str, source: Value) -> Value:
    if operation == "none":
        return ZERO
    if operation == "skip_connect":
        return source
    if operation == "avg_pool_3x3":
        # NOTE: average pooling is linear, pool(x + y) = pool(x) + pool(y), but that is not used here: the two
        # networks run different operators and differ in latency.
        return graph.shared(operation, source) if source else ZERO
    return graph.fresh(operation, source)


@cache
def _official_genotypes() -> tuple[Genotype, ...]:
    """Return the genotypes by official index.

    Source:
        AutoDL-Projects: CellStructure.gen_all lists the cells in lexicographic order, with edges as in EDGES; the
        generator of the benchmark then runs ``random.seed(88); random.shuffle(archs)``.
    """
    genotypes = list(product(range(len(OPERATIONS)), repeat=len(EDGES)))
    random.Random(88).shuffle(genotypes)
    return tuple(genotypes)


@cache
def _representatives() -> dict[str, Genotype]:
    space = NASBench201()
    smallest: dict[str, Genotype] = {}
    for cell in space.enumerate():
        smallest.setdefault(space.architecture_key(cell), space.encode(cell))
    return smallest


@cache
def _official_indices() -> dict[Genotype, int]:
    return {genotype: index for index, genotype in enumerate(_official_genotypes())}
