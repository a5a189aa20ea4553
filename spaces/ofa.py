"""Base classes of the once-for-all spaces, whose architectures are sub-networks of a supernet.

Source:
    Cai et al. 2020, "Once-for-All: Train One Network and Specialize it for Efficient Deployment";
    mit-han-lab/once-for-all f03b267, ofa/imagenet_classification/elastic_nn/networks.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from spaces.space import Genotype, SearchSpace, check_generator
from spaces.stages import Stages, SupernetChoices

RESOLUTIONS = tuple(range(128, 225, 4))


@dataclass(frozen=True)
class Subnet(ABC):
    """A sub-network: its stages, each a tuple of blocks, its resolution, and what a subclass adds."""

    stages: Stages
    resolution: int

    choices: ClassVar[SupernetChoices]

    def __post_init__(self) -> None:
        self.choices.encode(self.settings, self.stages)

    @property
    @abstractmethod
    def settings(self) -> tuple[float, ...]:
        """The value of every setting of ``choices``."""

    @classmethod
    @abstractmethod
    def of(cls, settings: Sequence[float], stages: Stages) -> Self:
        """Return the network with these settings and stages."""


S = TypeVar("S", bound=Subnet)


class OnceForAll(SearchSpace[S]):
    """The sub-networks of one supernet. Blocks beyond the depth of a stage are not part of an architecture.

    Args:
        settings: values of settings to fix, by name; None leaves a setting free.
    """

    subnet: type[S]

    def __init__(self, **settings: float | None) -> None:
        self.choices = self.subnet.choices.fixed(**settings)
        self.gene_sizes = self.choices.gene_sizes

    @property
    def size(self) -> int:
        return self.choices.num_networks

    def crossover(self, first: S, second: S, rng: np.random.Generator) -> S:
        """Take each gene from either parent with equal odds, but those of a block that only one has from that one."""
        check_generator("crossover", rng)
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

    def _encode_filled(self, architecture: S, rng: np.random.Generator) -> Genotype:
        genotype = self.encode(architecture)
        drawn = np.where(self.choices.in_use(genotype), genotype, rng.integers(self.gene_sizes))
        return tuple(drawn.tolist())


class MobileBlock(NamedTuple):
    """An inverted residual: the kernel of its depthwise convolution and the expansion of its input channels."""

    kernel: int
    expansion: int


@dataclass(frozen=True)
class MobileSubnet(Subnet):
    """A network of inverted residuals, ``width`` times as wide as the base network."""

    stages: tuple[tuple[MobileBlock, ...], ...]
    width: float

    @property
    def settings(self) -> tuple[float, ...]:
        return self.resolution, self.width

    @classmethod
    def of(cls, settings: Sequence[float], stages: Stages) -> Self:
        resolution, width = settings
        return cls(resolution=int(resolution), width=width, stages=stages)


M = TypeVar("M", bound=MobileSubnet)


class MobileOnceForAll(OnceForAll[M]):
    """Networks of inverted residuals, written ``{"ks": [...], "e": [...], "d": [...], "r": 224, "w": 1.2}``.

    ``d`` lists the number of blocks in every stage, ``ks`` and ``e`` kernel and expansion of every block. These two may
    cover only the blocks in use, or the maximum number of blocks, of which the first in every stage are in use. A
    setting with only one choice may be omitted.
    """

    def parse(self, notation: str) -> M:
        choices = self.choices
        free = [name for name, values in choices.settings.items() if len(values) > 1]
        required, optional = (*choices.parts, "d", *free), (*choices.settings,)
        value = choices.reader.read_object(notation, required=required, optional=optional)
        depths = choices.reader.check_list("d", value["d"], [len(choices.depths)])
        pairs = enumerate(zip(depths, choices.depths, strict=True))
        num_blocks = [choices.pick(f"d at position {stage}", depth, among) for stage, (depth, among) in pairs]
        settings = [choices.pick(name, value.get(name, among[0]), among) for name, among in choices.settings.items()]
        return self.subnet.of(settings, choices.read_stages(num_blocks, value))

    def format(self, architecture: M) -> str:
        choices = self.choices
        blocks = [block for stage in architecture.stages for block in stage]
        lists = {name: [block[part] for block in blocks] for part, name in enumerate(choices.parts)}
        depths = [len(stage) for stage in architecture.stages]
        settings = dict(zip(choices.settings, architecture.settings, strict=True))
        return json.dumps({**lists, "d": depths, **settings})

    def architecture_key(self, architecture: M) -> str:
        """Return the notation, since no two architectures are isomorphic."""
        return self.format(architecture)
