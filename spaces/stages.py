"""Networks in stages: grouping of layers, and the choices and genes of the sub-networks of a supernet.

A stage of a sub-network uses the first blocks of the supernet's stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, product
from math import prod
from typing import Any, TypeVar

from spaces.notation import NotationReader, check_count, choice_index
from spaces.space import Genotype

Layer = TypeVar("Layer")
Number = TypeVar("Number", bound=float)
Block = tuple[float, ...]
Stages = tuple[tuple[Any, ...], ...]  # the blocks of every stage, each a Block


def in_stages(layers: Iterable[Layer], sizes: Sequence[int]) -> tuple[tuple[Layer, ...], ...]:
    """Group consecutive layers into stages of these sizes."""
    rest = iter(layers)
    return tuple(tuple(islice(rest, size)) for size in sizes)


@dataclass(frozen=True)
class SupernetChoices:
    """The choices of a supernet and their genes.

    The order of genes is: one for every setting; then for every stage its number of blocks and, for the maximum number
    of blocks, one gene for every part of each block. Genes of blocks beyond the stage's number are not in use.

    Attributes:
        space: name of the space, with which error messages start.
        settings: choices for the whole network, by their names in the notation.
        depths: the numbers of blocks that each stage can have, ascending.
        parts: choices for every block, by their names in the notation.
        make_block: function that makes a block from one value for every part.
    """

    space: str
    settings: Mapping[str, Sequence[float]]
    depths: tuple[tuple[int, ...], ...]
    parts: Mapping[str, Sequence[float]]
    make_block: Callable[..., Block]

    @property
    def reader(self) -> NotationReader:
        """The reader of the space's notations."""
        return NotationReader(self.space, self.remedy)

    @property
    def remedy(self) -> str:
        """Sentence with which error messages end."""
        return f"See choices in spaces/{self.space}.py."

    @cached_property
    def gene_sizes(self) -> tuple[int, ...]:
        """(G,) number of choices of every gene."""
        block = [len(choices) for choices in self.parts.values()]
        stages = [[len(depths), *block * depths[-1]] for depths in self.depths]
        return (*map(len, self.settings.values()), *chain(*stages))

    @property
    def num_networks(self) -> int:
        """Number of networks: combinations of all settings and all stages of all depths."""
        block = prod(map(len, self.parts.values()))
        stages: int = prod(sum(block**depth for depth in depths) for depths in self.depths)
        return stages * prod(map(len, self.settings.values()))

    def fixed(self, **settings: float | None) -> SupernetChoices:
        """Return the choices with some settings fixed to a value; None leaves a setting free."""
        chosen = {
            name: (self.pick(name, value, self.settings[name]),)
            for name, value in settings.items()
            if value is not None
        }
        return replace(self, settings={**self.settings, **chosen})

    def pick(self, name: str, value: object, choices: Sequence[Number]) -> Number:
        """Return the choice that equals ``value``; ``name`` is its position for error messages."""
        return choices[self._index(name, value, choices)]

    def encode(self, settings: Sequence[float], stages: Stages) -> Genotype:
        """Return the genotype, in which genes not in use are 0.

        Raises:
            ArchitectureError: a value is none of the choices; the message has its position.
        """
        check_count(self.space, "stages", stages, len(self.depths), self.remedy)
        pairs = zip(self.settings.items(), settings, strict=True)
        genes = [self._index(name, value, choices) for (name, choices), value in pairs]
        for stage, (blocks, depths) in enumerate(zip(stages, self.depths, strict=True)):
            genes.append(self._index(f"the number of blocks in stage {stage}", len(blocks), depths))
            genes += [gene for position, block in enumerate(blocks) for gene in self._genes(block, stage, position)]
            genes += [0] * ((depths[-1] - len(blocks)) * len(self.parts))
        return tuple(genes)

    def decode(self, genotype: Genotype) -> tuple[tuple[float, ...], Stages]:
        """Return the settings and stages of a genotype."""
        genes = iter(genotype)
        settings = tuple(choices[gene] for choices, gene in zip(self.settings.values(), genes, strict=False))
        stages: list[tuple[Block, ...]] = []
        for depths in self.depths:
            depth = depths[next(genes)]
            blocks = [self._block(list(islice(genes, len(self.parts)))) for _ in range(depths[-1])]
            stages.append(tuple(blocks[:depth]))
        return settings, tuple(stages)

    def in_use(self, genotype: Genotype) -> list[bool]:
        """Return (G,) whether each gene is in use."""
        flags = [True] * len(self.settings)
        for depths in self.depths:
            depth = depths[genotype[len(flags)]]
            flags += [True] * (1 + depth * len(self.parts)) + [False] * ((depths[-1] - depth) * len(self.parts))
        return flags

    def genotypes(self) -> Iterator[Genotype]:
        """Yield all genotypes in lexicographic order; genes not in use are 0."""
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
        """Read stages from the lists of a notation, which has one list for every part of a block.

        Args:
            num_blocks: valid number of blocks of every stage.
            lists: values for the blocks in use only, or for the maximum number of blocks; the rest is then ignored.
        """
        most = [depths[-1] for depths in self.depths]
        lengths = [sum(num_blocks), sum(most)]
        columns = [self.reader.check_list(name, lists[name], lengths) for name in self.parts]
        listed = {len(column) for column in columns}
        if len(listed) > 1:
            counts = ", ".join(f"{len(column)} in {name}" for name, column in zip(self.parts, columns, strict=True))
            raise self.reader.error("lists of equal length", counts)
        rows = zip(*columns, strict=True)
        stages: list[tuple[Block, ...]] = []
        sizes = num_blocks if lengths[0] in listed else most
        for stage, (depth, size) in enumerate(zip(num_blocks, sizes, strict=True)):
            blocks = list(islice(rows, size))[:depth]
            stages.append(tuple(self._block(self._genes(block, stage, at)) for at, block in enumerate(blocks)))
        return tuple(stages)

    def _index(self, name: str, value: object, choices: Sequence[float]) -> int:
        return choice_index(self.space, name, value, choices, self.remedy)

    def _genes(self, block: Block, stage: int, position: int) -> list[int]:
        pairs = zip(self.parts.items(), block, strict=True)
        return [self._index(f"{name} of stage {stage}, block {position}", x, choices) for (name, choices), x in pairs]

    def _block(self, genes: Sequence[int]) -> Block:
        return self.make_block(*[choices[gene] for choices, gene in zip(self.parts.values(), genes, strict=True)])
