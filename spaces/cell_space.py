"""The genotypes of spaces of stacked cells: which inputs each node reads, which operations it applies to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np

from spaces.cell_notation import CELL_KINDS, read_cell
from spaces.cells import NUM_INPUTS, Cell, CellNetwork, canonical_cell, network_key
from spaces.space import ArchitectureError, Genotype, SearchSpace


@dataclass(frozen=True)
class Gene:
    """One choice.

    Attributes:
        name: what it decides, "normal node 3 inputs".
        choices: its values.
        sampled: how many of them, from the first, the space was published with. The others are in published
            records all the same: they encode and decode, and nothing that this class draws has them.
        weights: how often each of those is drawn; equally often where there are none.
    """

    name: str
    choices: Sequence[Any]
    sampled: int
    weights: Sequence[int] | None = None

    def draw(self, rng: np.random.Generator) -> int:
        """A sampled choice."""
        if self.weights is None:
            return int(rng.integers(self.sampled))
        return int(rng.choice(np.repeat(np.arange(self.sampled), self.weights)))


class CellSpace(SearchSpace[CellNetwork]):
    """Two cells in a stack. A genotype is, for every node of both, its pair of inputs and an operation on each.

    Where inputs of a node are published to differ, the pairs of equal ones come after the sampled choices.

    Attributes:
        operations: what a node can apply to a state; the first ``sampled_operations`` are sampled, or all.
        num_nodes: of a cell.
        equal_inputs: whether the space as published lets a node read one state twice.
        concat_all: whether a cell's output has all nodes, or only those that no other reads.
    """

    operations: ClassVar[tuple[str, ...]]
    sampled_operations: ClassVar[int | None] = None
    num_nodes: ClassVar[int]
    equal_inputs: ClassVar[bool]
    concat_all: ClassVar[bool]

    def __init__(self, *network_genes: Gene) -> None:
        self.genes = (*self._cell_genes(), *network_genes)
        self.gene_sizes = tuple(len(gene.choices) for gene in self.genes)
        self.gene_help = f"See operations in {type(self).__module__} and CellSpace in {__name__}."

    @property
    def sampled_sizes(self) -> tuple[int, ...]:
        """(G,) how many choices of every gene are sampled, from the first; the others are of published records."""
        return tuple(gene.sampled for gene in self.genes)

    def sample(self, rng: np.random.Generator) -> CellNetwork:
        """Operations and inputs drawn uniformly, each input by itself where both may be the same state."""
        return self._build(tuple([gene.draw(rng) for gene in self.genes]))

    def enumerate(self) -> Iterator[CellNetwork]:
        """Every architecture that can be sampled, once, in lexicographic order of its genotype."""
        return map(self._build, product(*map(range, self.sampled_sizes)))

    def encode(self, architecture: CellNetwork) -> Genotype:
        """Its genotype.

        Raises:
            ArchitectureError: a published notation can say more than the space has choices for: another width or
                depth, or a concatenation of its own.
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

    def _read_cells(self, genotype: Mapping[str, Any], remedy: str) -> list[Cell]:
        """Both cells of a DARTS genotype."""
        return [
            read_cell(
                self.name,
                kind,
                genotype[kind],
                genotype[f"{kind}_concat"],
                operations=self.operations,
                num_nodes=self.num_nodes,
                remedy=remedy,
            )
            for kind in CELL_KINDS
        ]

    def architecture_key(self, architecture: CellNetwork) -> str:
        """Equal if and only if two networks are isomorphic, dead cells left out and auxiliary heads aside.

        NOTE: nodes of one key may be concatenated in another order, which their texts say: with the same weights the
        networks compute different numbers, and only with the channels of all later weights in another order the same.
        """
        return network_key(architecture)

    def representative(self, architecture: CellNetwork) -> CellNetwork:
        """The network with its nodes in canonical order and without auxiliary head.

        NOTE: cells that compute the same in different steps, such as two skips in other places of a sum, share a
        key and keep representatives of their own.
        """
        normal, reduce = canonical_cell(architecture.normal), canonical_cell(architecture.reduce)
        return replace(architecture, normal=normal, reduce=reduce, aux=False)

    def _network_values(self, architecture: CellNetwork) -> list[object]:
        """What the genes after those of the cells hold."""
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
