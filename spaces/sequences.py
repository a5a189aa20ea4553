"""Sequences of operations in GENNAPE's spaces: convolutions, and at most one supplementary operation among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

import numpy as np

from spaces.notation import check_list, choice_index
from spaces.shown import shown
from spaces.space import ArchitectureError, Genotype

T = TypeVar("T")

Operations = tuple[str, ...]


@dataclass(frozen=True)
class Sequences:
    """The sequences of a space, and the genes they make.

    The genes of a sequence are its supplementary operation (0 for none), the position of that, and the convolution
    at every other position. Any genes make a sequence of any length; what has no use is 0 in ``encode``.

    Attributes:
        space: the name that opens the message of an error.
        convolutions: operations of which a sequence needs one.
        supplementary: operations of which it may have one.
        max_length: operations in the longest.
    """

    space: str
    convolutions: Operations
    supplementary: Operations
    max_length: int

    @property
    def gene_sizes(self) -> Genotype:
        """Choices of every gene of a sequence."""
        return 1 + len(self.supplementary), self.max_length, *(len(self.convolutions),) * self.max_length

    def check(self, operations: Operations, name: str) -> None:
        """Refuse what is no sequence.

        Raises:
            ArchitectureError: it says at which position.
        """
        known = (*self.convolutions, *self.supplementary)
        for position, operation in enumerate(operations):
            if operation not in known:
                choice_index(f"{self.space} notation", f"{name}[{position}]", operation, known, self._remedy)
        num_extra = sum(operation in self.supplementary for operation in operations)
        if not 1 <= len(operations) <= self.max_length or num_extra > 1 or num_extra == len(operations):
            raise ArchitectureError(
                f"{self.space} notation: expected {name} to have 1 to {self.max_length} operations, a convolution "
                f"among them and at most one supplementary, got {shown(list(operations))}. {self._remedy}"
            )

    def read(self, names: Any, types: Any, name: str) -> Operations:
        """A sequence from its lists of names and types, ``conv`` or ``supp``."""
        names = check_list(self.space, name, names, range(1, self.max_length + 1), self._remedy)
        self.check(tuple(names), name)
        types = check_list(self.space, f"types of {name}", types, [len(names)], self._remedy)
        for position, (found, operation) in enumerate(zip(types, names, strict=True)):
            expected = [self.kind(operation)]
            choice_index(f"{self.space} notation", f"type {position} of {name}", found, expected, self._remedy)
        return tuple(names)

    def kind(self, operation: str) -> str:
        """The type that the notation gives with an operation."""
        return "conv" if operation in self.convolutions else "supp"

    def sample(self, length: int, rng: np.random.Generator) -> Operations:
        """A sequence as the space was sampled: one convolution, then any operations, shuffled.

        Source: sample_block_ops in GENNAPE, model_src/search_space/hiaml_two_path/arch_samplers.py.
        """
        drawn = [rng.choice(self.convolutions)]
        share = len(self.supplementary) / (len(self.supplementary) + len(self.convolutions))
        for _ in range(length - 1):
            extra = rng.random() < share and all(operation in self.convolutions for operation in drawn)
            drawn.append(rng.choice(self.supplementary if extra else self.convolutions))
        return tuple(str(drawn[position]) for position in rng.permutation(length))

    def encode(self, operations: Operations) -> Genotype:
        """The genes of a sequence."""
        extra = position = 0
        genes = [0] * self.max_length
        for index, operation in enumerate(operations):
            if operation in self.supplementary:
                extra, position = 1 + self.supplementary.index(operation), index
            else:
                genes[index] = self.convolutions.index(operation)
        return extra, position, *genes

    def encode_filled(self, operations: Operations, rng: np.random.Generator) -> Genotype:
        """The genes of a sequence, convolutions and a position drawn where ``encode`` has 0 for what has no use."""
        extra, position, *genes = self.encode(operations)
        in_use = [operation in self.convolutions for operation in operations]
        drawn = rng.integers(len(self.convolutions), size=self.max_length).tolist()
        drawn[: len(in_use)] = [gene if used else draw for gene, used, draw in zip(genes, in_use, drawn, strict=False)]
        return extra, position if extra else int(rng.integers(self.max_length)), *drawn

    def decode(self, genes: Sequence[int], length: int) -> Operations:
        """The sequence of ``length`` operations that genes spell."""
        extra, position, *convolutions = genes
        operations = [self.convolutions[gene] for gene in convolutions[:length]]
        if extra > 0 and length > 1:
            operations[min(position, length - 1)] = self.supplementary[extra - 1]
        return tuple(operations)

    def enumerate(self, length: int) -> Iterator[Operations]:
        """Every sequence of ``length`` operations, in lexicographic order of its genes."""
        yield from product(self.convolutions, repeat=length)
        if length > 1:
            for extra, position in product(self.supplementary, range(length)):
                for names in product(self.convolutions, repeat=length - 1):
                    yield (*names[:position], extra, *names[position:])

    def count(self, length: int) -> int:
        """How many sequences of ``length`` operations there are."""
        convolutions = len(self.convolutions)
        with_extra = length * len(self.supplementary) * convolutions ** (length - 1) if length > 1 else 0
        return int(convolutions**length) + with_extra

    @property
    def _remedy(self) -> str:
        return f"See CONVOLUTIONS and SUPPLEMENTARY in spaces/{self.space}_blocks.py."


def lazy_product(*factories: Callable[[], Iterator[T]]) -> Iterator[tuple[T, ...]]:
    """``itertools.product`` of iterators too long to be held in memory; each is made anew as often as needed."""
    if not factories:
        yield ()
        return
    for head in factories[0]():
        for tail in lazy_product(*factories[1:]):
            yield (head, *tail)
