"""Sequences of operations in GENNAPE's spaces: convolutions and at most one supplementary operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

import numpy as np

from spaces.notation import NotationReader
from spaces.shown import shown
from spaces.space import Genotype

T = TypeVar("T")

Operations = tuple[str, ...]


@dataclass(frozen=True)
class Sequences:
    """The sequences of a space and their genes.

    The genes of a sequence are its supplementary operation (0 for none), the position of that operation, and the
    convolution at every other position. Any genes are valid for any length; ``encode`` sets genes that are not in use
    to 0.

    Attributes:
        space: name of the space, with which error messages start.
        convolutions: operations of which a sequence must have at least one.
        supplementary: operations of which a sequence may have at most one.
        max_length: maximum number of operations.
    """

    space: str
    convolutions: Operations
    supplementary: Operations
    max_length: int

    @property
    def gene_sizes(self) -> Genotype:
        """Number of choices of every gene of a sequence."""
        return 1 + len(self.supplementary), self.max_length, *(len(self.convolutions),) * self.max_length

    def check(self, operations: Operations, name: str) -> None:
        """Check that operations are a valid sequence.

        Raises:
            ArchitectureError: they are not; the message has the position.
        """
        known = (*self.convolutions, *self.supplementary)
        for position, operation in enumerate(operations):
            if operation not in known:
                self._reader.choice_index(f"{name}[{position}]", operation, known)
        num_extra = sum(operation in self.supplementary for operation in operations)
        if not 1 <= len(operations) <= self.max_length or num_extra > 1 or num_extra == len(operations):
            wanted = "operations, a convolution among them and at most one supplementary"
            raise self._reader.error(f"{name} to have 1 to {self.max_length} {wanted}", shown(list(operations)))

    def read(self, names: Any, types: Any, name: str) -> Operations:
        """Read a sequence from its lists of names and types (``conv`` or ``supp``)."""
        names = self._reader.check_list(name, names, range(1, self.max_length + 1))
        self.check(tuple(names), name)
        types = self._reader.check_list(f"types of {name}", types, [len(names)])
        for position, (found, operation) in enumerate(zip(types, names, strict=True)):
            self._reader.choice_index(f"type {position} of {name}", found, [self.kind(operation)])
        return tuple(names)

    def kind(self, operation: str) -> str:
        """Return the type of an operation in the notation."""
        return "conv" if operation in self.convolutions else "supp"

    def sample(self, length: int, rng: np.random.Generator) -> Operations:
        """Sample a sequence as published: one convolution and other operations, shuffled.

        Source: sample_block_ops in GENNAPE, model_src/search_space/hiaml_two_path/arch_samplers.py.
        """
        drawn = [self.convolutions[rng.integers(len(self.convolutions))]]
        share = len(self.supplementary) / (len(self.supplementary) + len(self.convolutions))
        for _ in range(length - 1):
            extra = rng.random() < share and all(operation in self.convolutions for operation in drawn)
            choices = self.supplementary if extra else self.convolutions
            drawn.append(choices[rng.integers(len(choices))])
        return tuple(drawn[position] for position in rng.permutation(length))

    def encode(self, operations: Operations) -> Genotype:
        """Return the genes of a sequence."""
        extra = position = 0
        genes = [0] * self.max_length
        for index, operation in enumerate(operations):
            if operation in self.supplementary:
                extra, position = 1 + self.supplementary.index(operation), index
            else:
                genes[index] = self.convolutions.index(operation)
        return extra, position, *genes

    def encode_filled(self, operations: Operations, rng: np.random.Generator) -> Genotype:
        """Return the genes of a sequence, with random values for genes that are not in use."""
        extra, position, *genes = self.encode(operations)
        in_use = [operation in self.convolutions for operation in operations]
        drawn = rng.integers(len(self.convolutions), size=self.max_length).tolist()
        drawn[: len(in_use)] = [gene if used else draw for gene, used, draw in zip(genes, in_use, drawn, strict=False)]
        return extra, position if extra else int(rng.integers(self.max_length)), *drawn

    def decode(self, genes: Sequence[int], length: int) -> Operations:
        """Return the sequence of ``length`` operations with these genes."""
        extra, position, *convolutions = genes
        operations = [self.convolutions[gene] for gene in convolutions[:length]]
        if extra > 0 and length > 1:
            operations[min(position, length - 1)] = self.supplementary[extra - 1]
        return tuple(operations)

    def enumerate(self, length: int) -> Iterator[Operations]:
        """Yield every sequence of ``length`` operations, in lexicographic order of genes."""
        yield from product(self.convolutions, repeat=length)
        if length > 1:
            for extra, position in product(self.supplementary, range(length)):
                for names in product(self.convolutions, repeat=length - 1):
                    yield (*names[:position], extra, *names[position:])

    def count(self, length: int) -> int:
        """Return the number of sequences of ``length`` operations."""
        convolutions = len(self.convolutions)
        with_extra = length * len(self.supplementary) * convolutions ** (length - 1) if length > 1 else 0
        return int(convolutions**length) + with_extra

    @property
    def _reader(self) -> NotationReader:
        return NotationReader(self.space, f"See CONVOLUTIONS and SUPPLEMENTARY in spaces/{self.space}_blocks.py.")


def lazy_product(*factories: Callable[[], Iterator[T]]) -> Iterator[tuple[T, ...]]:
    """Like ``itertools.product``, for iterators too long to be held in memory; each is created anew when needed."""
    if not factories:
        yield ()
        return
    for head in factories[0]():
        for tail in lazy_product(*factories[1:]):
            yield (head, *tail)
