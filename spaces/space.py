"""What every search space promises, with defaults for spaces whose genotype is a row of independent genes."""

from __future__ import annotations

import itertools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from spaces.shown import cut

A = TypeVar("A", bound=Hashable)
Genotype = tuple[int, ...]

MAX_DRAWS = 100_000  # before giving up on a space whose genotypes are nearly all invalid


class ArchitectureError(ValueError):
    """A notation, genotype or index that spells no architecture of its space."""


class SearchSpace(ABC, Generic[A]):
    """A set of architectures: how to draw, vary, list, spell and compare them.

    Architectures are frozen, hashable dataclasses. A genotype is G flat integers, gene g in
    ``range(gene_sizes[g])``. A space sets ``name``, ``objectives`` and ``gene_sizes``, and writes five methods:
    ``encode``, ``_build`` (behind ``decode``), ``parse``, ``format`` and ``architecture_key``. It overrides
    ``sample``, ``mutate`` or ``crossover`` where the space was published with a procedure of its own.

    Genotypes may be invalid (``_build`` raises ArchitectureError) or redundant (a gene that is not in use;
    ``encode`` then gives one canonical genotype). The defaults draw again, or step over; such a space
    overrides ``size``.

    Attributes:
        name: the registered name, "nasbench201".
        objectives: published label names, ``metric_unit@context``.
        gene_sizes: (G,) number of choices of every gene.
        gene_help: where a refused genotype is told to look.
        runs_lost_operations: whether its networks run operations whose results are lost, so that isomorphic ones
            differ in latency.
    """

    name: str
    objectives: tuple[str, ...]
    gene_sizes: tuple[int, ...]
    gene_help: str = "Its gene_sizes lists the choices of every gene."
    runs_lost_operations: bool = False
    _address: str = ""  # what get_space was asked for, if it made the space

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {len(self.gene_sizes)} genes; see objectives, size)"

    @property
    def address(self) -> str:
        """What ``get_space`` opens it by, and tables name it by: ``name``, or file and class of a user's own space."""
        return self._address or self.name

    @property
    def sampled_sizes(self) -> tuple[int, ...]:
        """(G,) number of choices of every gene that a search draws from; all of them unless a space says less."""
        return self.gene_sizes

    def is_drawn(self, architecture: A) -> bool:
        """Whether all its genes are among ``sampled_sizes``; others are of published records, or outside the labels."""
        genes = zip(self.encode(architecture), self.sampled_sizes, strict=True)
        return all(gene < size for gene, size in genes)

    @property
    def size(self) -> int:
        """Number of architectures that can be drawn, isomorphic ones counted apart."""
        return math.prod(self.sampled_sizes)

    def sample(self, rng: np.random.Generator) -> A:
        """One architecture, genes drawn uniformly; drawn again where invalid."""
        draws = (tuple(rng.integers(self.sampled_sizes).tolist()) for _ in range(MAX_DRAWS))
        return self._first(self._valid(draws), "sample")

    def mutate(self, architecture: A, rng: np.random.Generator) -> A:
        """A valid architecture other than its parent: one gene, drawn uniformly, takes another choice.

        Where no such choice is valid, because genes have to agree, several genes do.
        """
        parent = self._encode_filled(architecture, rng)
        children = self._valid(itertools.chain(self._neighbours(parent, rng), self._redrawn(parent, rng)))
        return self._first((child for child in children if child != architecture), "mutate")

    def crossover(self, first: A, second: A, rng: np.random.Generator) -> A:
        """A valid architecture with each gene from either parent, even odds; it may equal a parent."""
        parents = np.array([self.encode(first), self.encode(second)])
        genes = np.arange(len(self.gene_sizes))
        draws = (tuple(parents[rng.integers(2, size=len(genes)), genes].tolist()) for _ in range(MAX_DRAWS))
        return self._first(self._valid(draws), "crossover")

    def enumerate(self) -> Iterator[A]:
        """Every architecture that can be drawn, once, in lexicographic order of its genotype."""
        for genotype in itertools.product(*map(range, self.sampled_sizes)):
            for architecture in self._valid([genotype]):
                if self.encode(architecture) == genotype:
                    yield architecture

    @abstractmethod
    def encode(self, architecture: A) -> Genotype:
        """Its genotype: G integers. ``decode(encode(a)) == a``."""

    def decode(self, genotype: Sequence[int]) -> A:
        """The architecture of a genotype.

        Args:
            genotype: (G,) integers, NumPy's own included.

        Raises:
            ArchitectureError: wrong length, a gene that is no integer or out of range, or genes that do not
                go together.
        """
        return self._build(self._checked(genotype))

    @abstractmethod
    def _build(self, genotype: Genotype) -> A:
        """Decode G integers that are in range."""

    @abstractmethod
    def parse(self, notation: str) -> A:
        """The architecture of a published notation.

        Raises:
            ArchitectureError: names the position and what was expected there.
        """

    @abstractmethod
    def format(self, architecture: A) -> str:
        """Its one canonical spelling in the published notation. ``parse(format(a)) == a``."""

    @abstractmethod
    def architecture_key(self, architecture: A) -> str:
        """One line, equal for two architectures if and only if their networks are isomorphic."""

    def representative(self, architecture: A) -> A:
        """The architecture that stands for others of its key; itself in spaces that name none."""
        return architecture

    def _checked(self, genotype: Sequence[int]) -> Genotype:
        if len(genotype) != len(self.gene_sizes):
            raise self._genotype_error(genotype, max(self.gene_sizes), f"{len(genotype)} of them")
        genes = []
        for position, (gene, choices) in enumerate(zip(genotype, self.gene_sizes, strict=True)):
            try:
                genes.append(operator.index(gene))
            except TypeError as error:
                raise self._genotype_error(genotype, choices, f"position {position}") from error
            if not 0 <= genes[-1] < choices:
                raise self._genotype_error(genotype, choices, f"position {position}")
        return tuple(genes)

    def _genotype_error(self, genotype: Sequence[int], choices: int, where: str) -> ArchitectureError:
        got = cut(f"({', '.join(map(str, genotype))})")
        return ArchitectureError(
            f"{self.name} genotype: expected {len(self.gene_sizes)} integers in 0..{choices - 1}, got {got}, {where}. "
            f"{self.gene_help}"
        )

    def _encode_filled(self, architecture: A, rng: np.random.Generator) -> Genotype:
        """As ``encode``, but genes that the architecture does not use are drawn.

        So what a mutation brings into use is random, not the first of the choices.
        """
        return self.encode(architecture)

    def _neighbours(self, genotype: Genotype, rng: np.random.Generator) -> Iterator[Genotype]:
        """Genotypes with one gene set anew, in random order of the gene, then of its choice; its own among them."""
        for position in rng.permutation(len(genotype)).tolist():
            for choice in rng.permutation(self.sampled_sizes[position]).tolist():
                yield (*genotype[:position], choice, *genotype[position + 1 :])

    def _redrawn(self, genotype: Genotype, rng: np.random.Generator) -> Iterator[Genotype]:
        """Genotypes with some genes drawn anew, each at even odds."""
        kept, sizes = np.array(genotype), np.array(self.sampled_sizes)
        for _ in range(MAX_DRAWS):
            yield tuple(np.where(rng.random(len(kept)) < 0.5, kept, rng.integers(sizes)).tolist())

    def _valid(self, genotypes: Iterable[Genotype]) -> Iterator[A]:
        for genotype in genotypes:
            try:
                architecture = self._build(genotype)
            except ArchitectureError:
                continue
            yield architecture

    def _first(self, architectures: Iterator[A], method: str) -> A:
        for architecture in architectures:
            return architecture
        raise ValueError(
            f"{self.name} {method}: expected a valid architecture among the genotypes tried, got none. "
            f"Write the space's own {method}."
        )
