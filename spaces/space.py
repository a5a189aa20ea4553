"""The base class of search spaces, with default methods for spaces whose genes are independent.

A *notation* is the published text form of an architecture, a *genotype* its form as a row of integers (genes).
"""

from __future__ import annotations

import itertools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from spaces.shown import cut, shown

A = TypeVar("A", bound=Hashable)
Genotype = tuple[int, ...]

MAX_DRAWS = 100_000  # samples before giving up on a space whose genotypes are nearly all invalid


class ArchitectureError(ValueError):
    """A notation, genotype or index is not that of an architecture of the space."""


def check_generator(method: str, rng: object) -> None:
    """Check that an argument of ``sample``, ``mutate`` or ``crossover`` is a generator, not a seed.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(rng, np.random.Generator):
        raise ValueError(
            f"{method}: expected a generator, got {shown(rng)}. Make one with numpy.random.default_rng(0)."
        )


class SearchSpace(ABC, Generic[A]):
    """A set of architectures, with methods to sample, vary, enumerate, write and compare them.

    Architectures are frozen, hashable dataclasses. A genotype is a flat row of G integers, gene g in
    ``range(gene_sizes[g])``. A subclass sets ``name``, ``objectives`` and ``gene_sizes``, and implements five methods:
    ``encode``, ``_build`` (used by ``decode``), ``parse``, ``format`` and ``architecture_key``. It overrides
    ``sample``, ``mutate`` or ``crossover`` if the space was published with its own procedure.

    Genotypes may be invalid (``_build`` raises ArchitectureError) or redundant (genes that are not in use; ``encode``
    then gives one canonical genotype). The default methods sample again or skip such genotypes; a space that has them
    overrides ``size``.

    Attributes:
        name: the registered name, "nasbench201".
        objectives: published label names, ``metric_unit@context``.
        gene_sizes: (G,) number of choices of every gene.
        gene_help: end of the message about an invalid genotype, which says where the genes are explained.
        runs_lost_operations: whether its networks run operations whose results are unused, so that isomorphic networks
            differ in latency.
    """

    name: str
    objectives: tuple[str, ...]
    gene_sizes: tuple[int, ...]
    gene_help: str = "Its gene_sizes lists the choices of every gene."
    runs_lost_operations: bool = False
    _address: str = ""  # the name given to get_space, if it made the space

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {len(self.gene_sizes)} genes; see objectives, size)"

    @property
    def address(self) -> str:
        """The name of the space for ``get_space`` and in tables: ``name``, or for a user's space its file and class."""
        return self._address or self.name

    @property
    def sampled_sizes(self) -> tuple[int, ...]:
        """(G,) number of choices of every gene that are sampled, counted from the first; by default all."""
        return self.gene_sizes

    def is_drawn(self, architecture: A) -> bool:
        """Return whether all genes of an architecture are within ``sampled_sizes``.

        Other architectures occur only in published records, or have no labels.
        """
        if self.sampled_sizes == self.gene_sizes:
            return True
        genes = zip(self.encode(architecture), self.sampled_sizes, strict=True)
        return all(gene < size for gene, size in genes)

    @property
    def size(self) -> int:
        """Number of architectures that can be sampled; isomorphic ones are counted separately."""
        return math.prod(self.sampled_sizes)

    def sample(self, rng: np.random.Generator) -> A:
        """Return an architecture with genes sampled uniformly; invalid genotypes are sampled again."""
        check_generator("sample", rng)
        draws = (tuple(rng.integers(self.sampled_sizes).tolist()) for _ in range(MAX_DRAWS))
        return self._first(self._valid(draws), "sample")

    def mutate(self, architecture: A, rng: np.random.Generator) -> A:
        """Return a valid architecture other than the parent, in which one gene, sampled uniformly, has another choice.

        If no change of a single gene is valid, because genes depend on each other, several genes change.
        """
        check_generator("mutate", rng)
        parent = self._encode_filled(architecture, rng)
        children = self._valid(itertools.chain(self._neighbours(parent, rng), self._redrawn(parent, rng)))
        return self._first((child for child in children if child != architecture), "mutate")

    def crossover(self, first: A, second: A, rng: np.random.Generator) -> A:
        """Return a valid architecture with each gene from either parent with equal odds; it may equal a parent."""
        check_generator("crossover", rng)
        parents = np.array([self.encode(first), self.encode(second)])
        genes = np.arange(len(self.gene_sizes))
        draws = (tuple(parents[rng.integers(2, size=len(genes)), genes].tolist()) for _ in range(MAX_DRAWS))
        return self._first(self._valid(draws), "crossover")

    def enumerate(self) -> Iterator[A]:
        """Yield every architecture that can be sampled once, in lexicographic order of genotypes."""
        for genotype in itertools.product(*map(range, self.sampled_sizes)):
            for architecture in self._valid([genotype]):
                if self.encode(architecture) == genotype:
                    yield architecture

    @abstractmethod
    def encode(self, architecture: A) -> Genotype:
        """Return the genotype, G integers. ``decode(encode(a)) == a``."""

    def decode(self, genotype: Sequence[int]) -> A:
        """Return the architecture of a genotype.

        Args:
            genotype: (G,) integers, which may be NumPy's.

        Raises:
            ArchitectureError: the length is wrong, a gene is no integer or out of range, or the combination of genes
                is invalid.
        """
        return self._build(self._checked(genotype))

    @abstractmethod
    def _build(self, genotype: Genotype) -> A:
        """Return the architecture of a genotype whose genes are in range."""

    @abstractmethod
    def parse(self, notation: str) -> A:
        """Return the architecture of a published notation.

        Raises:
            ArchitectureError: the notation is invalid; the message has the position and what was expected there.
        """

    @abstractmethod
    def format(self, architecture: A) -> str:
        """Return the canonical form of the published notation. ``parse(format(a)) == a``."""

    @abstractmethod
    def architecture_key(self, architecture: A) -> str:
        """Return one line of text, equal for two architectures if and only if their networks are isomorphic."""

    def representative(self, architecture: A) -> A:
        """Return the architecture that represents all with the same key; by default the architecture itself."""
        return architecture

    def _checked(self, genotype: Sequence[int]) -> Genotype:
        try:
            length = len(genotype)
        except TypeError as error:
            got = shown(genotype)
            raise ArchitectureError(f"{self.name} genotype: expected a row of integers, got {got}.") from error
        if length != len(self.gene_sizes):
            raise self._genotype_error(genotype, max(self.gene_sizes), f"{length} of them")
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
        """Like ``encode``, but with random values for genes that the architecture does not use.

        If a mutation brings such a gene into use, its value is then random and not always the first choice.
        """
        return self.encode(architecture)

    def _neighbours(self, genotype: Genotype, rng: np.random.Generator) -> Iterator[Genotype]:
        """Yield genotypes that differ in one gene, and the genotype itself, in random order of genes and choices."""
        for position in rng.permutation(len(genotype)).tolist():
            for choice in rng.permutation(self.sampled_sizes[position]).tolist():
                yield (*genotype[:position], choice, *genotype[position + 1 :])

    def _redrawn(self, genotype: Genotype, rng: np.random.Generator) -> Iterator[Genotype]:
        """Yield genotypes in which each gene is sampled anew with odds of one half."""
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
            f"{self.name} {method}: expected a valid architecture among the genotypes tried, got none. Override "
            f"{method} in the space."
        )
