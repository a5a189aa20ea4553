"""The short way to a space of one's own: named genes, each with its choices."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from spaces.notation import check_list, choice_index, read_json
from spaces.shown import shown
from spaces.space import ArchitectureError, Genotype, SearchSpace

Choice = str | int | float


@dataclass(frozen=True)
class Choices:
    """An architecture: one choice of every gene, by name or, as of a tuple, by place.

    Attributes:
        names: (G,) of the genes.
        values: (G,) what each of them chose.

    Example:
        >>> architecture = Choices(("depth", "activation"), (3, "relu"))
        >>> architecture["depth"]
        3
        >>> architecture[-1]
        'relu'
        >>> depth, activation = architecture
    """

    names: tuple[str, ...] = field(repr=False)
    values: tuple[Any, ...]

    def __getitem__(self, gene: str | int | slice) -> Any:
        if gene in self.names:
            return self.values[self.names.index(gene)]
        if isinstance(gene, str):
            raise KeyError(f"architecture: expected one of the genes {', '.join(self.names)}, got {gene!r}.")
        return self.values[gene]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)


class GenotypeSpace(SearchSpace[Choices]):
    """A space whose architectures are rows of independent choices.

    A subclass sets ``name`` and ``choices`` and writes ``build``; all else is given. The notation is the JSON list
    of the choices, in order. Where some rows spell the same network, override ``architecture_key``; where some spell
    none, let ``_build`` raise ArchitectureError and override ``size``.

    Attributes:
        choices: for every gene, by name, its different choices: strings and numbers.

    Example:
        >>> class Toy(GenotypeSpace):
        ...     name = "toy"
        ...     choices = {"depth": (1, 2), "activation": ("relu", "silu")}
        ...
        ...     def build(self, architecture): ...
        >>> space = Toy()
        >>> space.format(space.decode((1, 0)))
        '[2, "relu"]'
    """

    choices: ClassVar[Mapping[str, Sequence[Choice]]]
    objectives = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "choices" in vars(cls):
            if not isinstance(cls.choices, Mapping):
                raise ValueError(f"{cls.__name__}.choices: expected a dict of genes, got {cls.choices!r}.")
            for gene, choices in cls.choices.items():
                _check_choices(cls.__name__, gene, choices)
            cls.gene_sizes = tuple(len(choices) for choices in cls.choices.values())
            cls.gene_help = f"See {cls.__name__}.choices."

    def __init__(self) -> None:
        if not getattr(self, "choices", None):
            raise TypeError("no attribute choices, such as choices = {'depth': (1, 2)}")

    @abstractmethod
    def build(self, architecture: Choices) -> Any:
        """The network, as the graph of a ``converters.builder.GraphBuilder``."""

    def encode(self, architecture: Choices) -> Genotype:
        return self._genes(self._values(architecture))

    def _build(self, genotype: Genotype) -> Choices:
        pairs = zip(genotype, self.choices.values(), strict=True)
        return Choices(tuple(self.choices), tuple(choices[gene] for gene, choices in pairs))

    def parse(self, notation: str) -> Choices:
        value = read_json(self.name, notation, self.gene_help)
        listed = check_list(self.name, "the notation", value, [len(self.choices)], self.gene_help)
        return self.decode(self._genes(listed))

    def format(self, architecture: Choices) -> str:
        genes = zip(self._genes(self._values(architecture)), self.choices.values(), strict=True)
        return json.dumps([choices[gene] for gene, choices in genes], ensure_ascii=False)

    def architecture_key(self, architecture: Choices) -> str:
        """Its notation: every row of choices counts as a network of its own."""
        return self.format(architecture)

    def _genes(self, values: Sequence[Any]) -> Genotype:
        pairs = zip(values, self.choices.items(), strict=True)
        return tuple([choice_index(self.name, name, x, choices, self.gene_help) for x, (name, choices) in pairs])

    def _values(self, architecture: object) -> tuple[Any, ...]:
        """What an architecture chose, if it has this space's genes."""
        got = architecture
        if isinstance(architecture, Choices):
            if architecture.names == tuple(self.choices) and len(architecture) == len(self.choices):
                return architecture.values
            got = dict(zip(architecture.names, architecture, strict=False))
        raise ArchitectureError(
            f"{self.name}: expected an architecture, as decode and parse give it, got {shown(got)}. {self.gene_help}"
        )


def _check_choices(space: str, gene: str, choices: Sequence[Choice]) -> None:
    if isinstance(choices, str) or not isinstance(choices, Sequence):
        raise ValueError(f"{space}.choices: expected a tuple of choices for {gene}, got {choices!r}.")
    for choice in choices:
        is_plain = isinstance(choice, str | int | float) and not isinstance(choice, bool)
        if not is_plain or (isinstance(choice, float) and not math.isfinite(choice)):
            raise ValueError(f"{space}.choices: expected strings and finite numbers for {gene}, got {choice!r}.")
    if not choices or len(set(choices)) != len(choices):
        raise ValueError(f"{space}.choices: expected different choices for {gene}, got {choices!r}.")
