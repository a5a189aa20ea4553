"""A wrapper of a space in which isomorphic architectures count as different."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, TypeVar

import numpy as np

from spaces.space import Genotype, SearchSpace

A = TypeVar("A", bound=Hashable)


class Spellings(SearchSpace[A]):
    """A space with the notation as key, so that every architecture is different from those isomorphic to it.

    It is meant for searches in published tables: if networks run operations whose results are unused, isomorphic
    architectures differ in latency and energy, and each has labels of its own.

    Args:
        space: the wrapped space; everything except keys and representatives is that space's.

    Example:
        >>> from spaces import get_space
        >>> space = Spellings(get_space("nasbench201"))
        >>> cell = space.decode((0, 0, 0, 1, 0, 3))
        >>> space.representative(cell) == cell
        True
    """

    def __init__(self, space: SearchSpace[A]) -> None:
        self.space = space
        self.name = space.name
        self._address = space.address
        self.objectives = space.objectives
        self.gene_sizes = space.gene_sizes
        self.gene_help = space.gene_help
        self.runs_lost_operations = space.runs_lost_operations

    def __getattr__(self, name: str) -> Any:
        """Return attributes of the wrapped space that converters need, such as ``input_shape``."""
        if name == "space":  # not set yet, while the object is being copied or unpickled
            raise AttributeError(name)
        return getattr(self.space, name)

    @property
    def sampled_sizes(self) -> tuple[int, ...]:
        return self.space.sampled_sizes

    @property
    def size(self) -> int:
        return self.space.size

    def sample(self, rng: np.random.Generator) -> A:
        return self.space.sample(rng)

    def mutate(self, architecture: A, rng: np.random.Generator) -> A:
        return self.space.mutate(architecture, rng)

    def crossover(self, first: A, second: A, rng: np.random.Generator) -> A:
        return self.space.crossover(first, second, rng)

    def enumerate(self) -> Iterator[A]:
        return self.space.enumerate()

    def encode(self, architecture: A) -> Genotype:
        return self.space.encode(architecture)

    def _build(self, genotype: Genotype) -> A:
        return self.space.decode(genotype)

    def parse(self, notation: str) -> A:
        return self.space.parse(notation)

    def format(self, architecture: A) -> str:
        return self.space.format(architecture)

    def architecture_key(self, architecture: A) -> str:
        return self.space.format(architecture)
