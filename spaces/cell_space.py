"""Spaces of stacked cells: genes for the inputs of each node and for the operations that it applies to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from spaces.cell_notation import CELL_KINDS, read_cell
from spaces.cells import NUM_INPUTS, Cell, CellNetwork, canonical_cell, network_key
from spaces.notation import NotationReader
from spaces.space import ArchitectureError, Genotype, SearchSpace, check_generator


@dataclass(frozen=True)
class Gene:
    """One gene.

    Attributes:
        name: what the gene decides, such as "normal node 3 inputs".
        choices: the values that it can have.
        sampled: number of choices, from the first, that the published space has. The others occur in published
            records only: they can be encoded and decoded, but are never sampled.
        weights: relative frequency with which each sampled choice is sampled; None if all are equal.
    """

    name: str
    choices: Sequence[Any]
    sampled: int
    weights: Sequence[int] | None = None

    def draw(self, rng: np.random.Generator) -> int:
        """Sample a choice; return its index."""
        if self.weights is None:
            return int(rng.integers(self.sampled))
        return int(rng.choice(np.repeat(np.arange(self.sampled), self.weights)))


class CellSpace(SearchSpace[CellNetwork]):
    """Networks of two kinds of stacked cells. For every node the genotype has the pair of inputs and both operations.

    If the published space requires the inputs of a node to differ, pairs of equal inputs are choices that are not
    sampled.

    Attributes:
        operations: operations that a node can apply; only the first ``sampled_operations`` are sampled, if that is set.
        num_nodes: number of nodes in a cell.
        equal_inputs: whether the published space allows a node to read one state twice.
        concat_all: whether the output of a cell concatenates all nodes, or only those that no other node reads.
        remedy: sentence with which messages about an invalid notation end.
    """

    operations: ClassVar[tuple[str, ...]]
    sampled_operations: ClassVar[int | None] = None
    num_nodes: ClassVar[int]
    equal_inputs: ClassVar[bool]
    concat_all: ClassVar[bool]
    remedy: ClassVar[str]

    def __init__(self, *network_genes: Gene) -> None:
        self.genes = (*self._cell_genes(), *network_genes)
        self.gene_sizes = tuple(len(gene.choices) for gene in self.genes)
        self.gene_help = f"See operations in {type(self).__module__} and CellSpace in {__name__}."

    @property
    def sampled_sizes(self) -> tuple[int, ...]:
        """(G,) number of choices of every gene that are sampled; the others occur in published records only."""
        return tuple(gene.sampled for gene in self.genes)

    def sample(self, rng: np.random.Generator) -> CellNetwork:
        """Sample operations and inputs uniformly; if the two inputs of a node may be equal, independently."""
        check_generator("sample", rng)
        return self._build(tuple([gene.draw(rng) for gene in self.genes]))

    def encode(self, architecture: CellNetwork) -> Genotype:
        """Return the genotype.

        Raises:
            ArchitectureError: the network has no genotype. Published notations also allow other widths, depths and
                concatenations than those that the space has.
        """
        values = [value for cell in (architecture.normal, architecture.reduce) for value in _cell_values(cell)]
        values += self._network_values(architecture)
        for cell, name in ((architecture.normal, "normal"), (architecture.reduce, "reduce")):
            if cell.concat != self._concat(cell):
                raise ArchitectureError(
                    f"{self.name} genotype: expected {name}_concat {list(self._concat(cell))}, got "
                    f"{list(cell.concat)}. A network of another form can be converted, but has no genotype."
                )
        return tuple(self._choice(gene, value) for gene, value in zip(self.genes, values, strict=True))

    def _choice(self, gene: Gene, value: object) -> int:
        if value not in gene.choices:
            raise ArchitectureError(
                f"{self.name} genotype: expected {gene.name} of {', '.join(map(str, gene.choices))}, got {value}. "
                "A network of another form can be converted, but has no genotype."
            )
        return gene.choices.index(value)

    def _read_cells(self, genotype: Mapping[str, Any]) -> list[Cell]:
        """Read both cells of a DARTS genotype."""
        return [read_cell(self.reader, genotype, kind, self.operations, self.num_nodes) for kind in CELL_KINDS]

    @property
    def reader(self) -> NotationReader:
        """The reader of the space's notations."""
        return NotationReader(self.name, self.remedy)

    def architecture_key(self, architecture: CellNetwork) -> str:
        """Return a key, equal if and only if two networks are isomorphic without dead cells and auxiliary heads.

        NOTE: networks with equal keys may concatenate nodes in different order, and then their texts differ. They
        compute the same only if the channels of all later weights are permuted accordingly.
        """
        return network_key(architecture)

    def representative(self, architecture: CellNetwork) -> CellNetwork:
        """Return the network with its nodes in canonical order and without auxiliary head.

        NOTE: cells that compute the same in different steps, such as with two skips at other positions of a sum, have
        equal keys but different representatives.
        """
        normal, reduce = canonical_cell(architecture.normal), canonical_cell(architecture.reduce)
        return replace(architecture, normal=normal, reduce=reduce, aux=False)

    def _network_values(self, architecture: CellNetwork) -> list[object]:
        """Return the values of the genes that follow those of the cells."""
        return [architecture.width, architecture.depth]

    def _build(self, genotype: Genotype) -> CellNetwork:
        values = [gene.choices[choice] for gene, choice in zip(self.genes, genotype, strict=True)]
        genes_per_cell = 3 * self.num_nodes
        normal, reduce = [self._cell(values[start : start + genes_per_cell]) for start in (0, genes_per_cell)]
        return CellNetwork(normal, reduce, *values[2 * genes_per_cell :])

    def _cell(self, values: Sequence[Any]) -> Cell:
        triples = zip(values[::3], values[1::3], values[2::3], strict=True)
        nodes = tuple(((first, low), (second, high)) for (low, high), first, second in triples)
        cell = Cell(nodes, tuple(range(NUM_INPUTS, NUM_INPUTS + self.num_nodes)))
        return cell if self.concat_all else Cell(nodes, cell.loose_ends)

    def _concat(self, cell: Cell) -> tuple[int, ...]:
        return cell.all_nodes if self.concat_all else cell.loose_ends

    def _cell_genes(self) -> Iterator[Gene]:
        for kind in CELL_KINDS:
            for state in range(NUM_INPUTS, NUM_INPUTS + self.num_nodes):
                yield self._inputs_gene(f"{kind} node {state} inputs", state)
                for which in ("first", "second"):
                    sampled = self.sampled_operations or len(self.operations)
                    yield Gene(f"{kind} node {state} {which} operation", self.operations, sampled)

    def _inputs_gene(self, name: str, state: int) -> Gene:
        different = list(combinations(range(state), 2))
        equal = [(source, source) for source in range(state)]
        if not self.equal_inputs:
            return Gene(name, different + equal, len(different))
        return Gene(name, different + equal, len(different + equal), [2] * len(different) + [1] * len(equal))


def _cell_values(cell: Cell) -> Iterator[object]:
    for (first, low), (second, high) in cell.nodes:
        yield from ((low, high), first, second)
