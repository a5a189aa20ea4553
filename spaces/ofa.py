"""What once-for-all networks have in common: settings of the whole, and stages that use their first blocks.

Source:
    Cai et al. 2020, "Once-for-All: Train One Network and Specialize it for Efficient Deployment";
    mit-han-lab/once-for-all f03b267, ofa/imagenet_classification/elastic_nn/networks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, product
from math import prod
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from spaces.notation import check_list, choice_index
from spaces.space import ArchitectureError, Genotype, SearchSpace

RESOLUTIONS = tuple(range(128, 225, 4))

Block = tuple[float, ...]
Stages = tuple[tuple[Block, ...], ...]


@dataclass(frozen=True)
class Choices:
    """The choices of a supernet, and the genes they make.

    Genes stand in this order: one for every setting; then stage by stage the number of blocks and, for as many
    blocks as there can be, one for every part of a block. Those of blocks that are left out are not in use.

    Attributes:
        space: the name that opens the message of an error.
        settings: choices for the network as a whole, by their names in the notation.
        depths: the numbers of blocks that each stage can have, ascending.
        parts: choices for every block, by their names in the notation.
        make_block: a block of one value for every part.
    """

    space: str
    settings: Mapping[str, Sequence[float]]
    depths: tuple[tuple[int, ...], ...]
    parts: Mapping[str, Sequence[float]]
    make_block: Callable[..., Block]

    @property
    def remedy(self) -> str:
        """Where a refused notation is told to look."""
        return f"See Choices in spaces/{self.space}.py."

    @cached_property
    def gene_sizes(self) -> tuple[int, ...]:
        """(G,) number of choices of every gene."""
        block = [len(choices) for choices in self.parts.values()]
        stages = [[len(depths), *block * depths[-1]] for depths in self.depths]
        return (*map(len, self.settings.values()), *chain(*stages))

    @property
    def num_networks(self) -> int:
        """All settings times all stages of all depths."""
        block = prod(map(len, self.parts.values()))
        stages = prod(sum(block**depth for depth in depths) for depths in self.depths)
        return stages * prod(map(len, self.settings.values()))

    def fixed(self, **settings: float | None) -> Choices:
        """The same with one choice for every setting that is given a value here; None leaves it free."""
        chosen = {name: value for name, value in settings.items() if value is not None}
        indices = {name: self.index(name, value, self.settings[name]) for name, value in chosen.items()}
        only = {name: (self.settings[name][index],) for name, index in indices.items()}
        return replace(self, settings={**self.settings, **only})

    def index(self, name: str, value: object, choices: Sequence[float]) -> int:
        """The gene of a value; ``name`` tells a refused one's position."""
        return choice_index(self.space, name, value, choices, self.remedy)

    def encode(self, settings: Sequence[float], stages: Stages) -> Genotype:
        """The genotype; genes not in use are 0.

        Raises:
            ArchitectureError: names the position of what is no choice.
        """
        if len(stages) != len(self.depths):
            raise ArchitectureError(
                f"{self.space}: expected {len(self.depths)} stages, got {len(stages)} of them. {self.remedy}"
            )
        pairs = zip(self.settings.items(), settings, strict=True)
        genes = [self.index(name, value, choices) for (name, choices), value in pairs]
        for stage, (blocks, depths) in enumerate(zip(stages, self.depths, strict=True)):
            genes.append(self.index(f"the number of blocks in stage {stage}", len(blocks), depths))
            genes += [gene for position, block in enumerate(blocks) for gene in self._genes(block, stage, position)]
            genes += [0] * ((depths[-1] - len(blocks)) * len(self.parts))
        return tuple(genes)

    def decode(self, genotype: Genotype) -> tuple[tuple[float, ...], Stages]:
        """Settings and stages."""
        genes = iter(genotype)
        settings = tuple(choices[gene] for choices, gene in zip(self.settings.values(), genes, strict=False))
        return settings, tuple(self._stage(list(islice(genes, size)), at) for at, size in enumerate(self._stage_sizes))

    def in_use(self, genotype: Genotype) -> list[bool]:
        """(G,) whether a gene matters."""
        flags = [True] * len(self.settings)
        for size, depths in zip(self._stage_sizes, self.depths, strict=True):
            blocks = depths[genotype[len(flags)]] * len(self.parts)
            flags += [True] * (1 + blocks) + [False] * (size - 1 - blocks)
        return flags

    def genotypes(self) -> Iterator[Genotype]:
        """All, in lexicographic order, genes not in use 0."""
        block = [range(len(choices)) for choices in self.parts.values()]
        stages = [
            [
                (gene, *used, *[0] * ((depths[-1] - depth) * len(block)))
                for gene, depth in enumerate(depths)
                for used in product(*block * depth)
            ]
            for depths in self.depths
        ]
        settings = [[(gene,) for gene in range(len(choices))] for choices in self.settings.values()]
        return (tuple(chain(*genes)) for genes in product(*settings, *stages))

    def read_stages(self, num_blocks: Sequence[int], lists: Mapping[str, Any]) -> Stages:
        """Stages from the lists of a notation, one list for every part of a block.

        Args:
            num_blocks: of every stage, valid.
            lists: values of the blocks in use, or of all that there can be, of which those in use are read.
        """
        used, total = sum(num_blocks), sum(depths[-1] for depths in self.depths)
        columns = [check_list(self.space, name, lists[name], [used, total], self.remedy) for name in self.parts]
        if len({len(column) for column in columns}) > 1:
            lengths = ", ".join(f"{len(column)} in {name}" for name, column in zip(self.parts, columns, strict=True))
            raise ArchitectureError(f"{self.space} notation: expected lists of one length, got {lengths}. {self.remedy}")
        sizes = num_blocks if len(columns[0]) == used else [depths[-1] for depths in self.depths]
        blocks = zip(*columns, strict=True)
        rows = [list(islice(blocks, size))[:depth] for size, depth in zip(sizes, num_blocks, strict=True)]
        return tuple(
            tuple(self._read_block(block, stage, position) for position, block in enumerate(row))
            for stage, row in enumerate(rows)
        )

    @cached_property
    def _stage_sizes(self) -> tuple[int, ...]:
        """Genes of every stage."""
        return tuple(1 + depths[-1] * len(self.parts) for depths in self.depths)

    def _stage(self, genes: list[int], stage: int) -> tuple[Block, ...]:
        depth = self.depths[stage][genes.pop(0)]
        parts = list(self.parts.values())
        rows = [genes[start : start + len(parts)] for start in range(0, depth * len(parts), len(parts))]
        return tuple(self.make_block(*map(_pick, parts, row)) for row in rows)

    def _genes(self, block: Block, stage: int, position: int) -> list[int]:
        pairs = zip(self.parts.items(), block, strict=True)
        return [self.index(f"{name} of stage {stage}, block {position}", x, choices) for (name, choices), x in pairs]

    def _read_block(self, block: Block, stage: int, position: int) -> Block:
        """A block whose numbers are the choices' own: 3.0 reads as 3."""
        return self.make_block(*map(_pick, self.parts.values(), self._genes(block, stage, position)))


@dataclass(frozen=True)
class Subnet(ABC):
    """A network of a supernet: its stages, each a tuple of blocks, and what a subclass adds for the whole."""

    stages: Stages
    resolution: int

    choices: ClassVar[Choices]

    def __post_init__(self) -> None:
        self.choices.encode(self.settings, self.stages)

    @property
    @abstractmethod
    def settings(self) -> tuple[float, ...]:
        """One value for every setting of ``choices``."""

    @classmethod
    @abstractmethod
    def of(cls, settings: Sequence[float], stages: Stages) -> Self:
        """The network of these settings and stages."""


S = TypeVar("S", bound=Subnet)


class OnceForAll(SearchSpace[S]):
    """Networks of one supernet. Blocks beyond a stage's depth are no part of a network, so they are never unequal.

    Args:
        settings: names of settings and the only value each of them shall take; None leaves it free.
    """

    subnet: type[S]

    def __init__(self, **settings: float | None) -> None:
        self.choices = self.subnet.choices.fixed(**settings)
        self.gene_sizes = self.choices.gene_sizes

    @property
    def size(self) -> int:
        return self.choices.num_networks

    def crossover(self, first: S, second: S, rng: np.random.Generator) -> S:
        """Each gene from either parent, even odds; of a block that only one of them has, from that one."""
        parents = [self.encode(first), self.encode(second)]
        used = [self.choices.in_use(genotype) for genotype in parents]
        coins = rng.integers(2, size=len(self.gene_sizes)).tolist()
        sources = [coin if a == b else int(b) for coin, a, b in zip(coins, *used, strict=True)]
        return self._build(tuple(parents[source][position] for position, source in enumerate(sources)))

    def enumerate(self) -> Iterator[S]:
        return map(self._build, self.choices.genotypes())

    def encode(self, architecture: S) -> Genotype:
        return self.choices.encode(architecture.settings, architecture.stages)

    def _build(self, genotype: Genotype) -> S:
        return self.subnet.of(*self.choices.decode(genotype))

    def _neighbours(self, genotype: Genotype, rng: np.random.Generator) -> Iterator[Genotype]:
        """As in every space, but blocks that a deeper stage adds are drawn, not the first of the choices."""
        drawn = np.where(self.choices.in_use(genotype), genotype, rng.integers(self.gene_sizes))
        return super()._neighbours(tuple(drawn.tolist()), rng)


def _pick(choices: Sequence[float], index: int) -> float:
    return choices[index]
