"""The simplest base class for a space of your own: named genes with lists of choices."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from spaces.notation import NotationReader, choice_index
from spaces.shown import shown
from spaces.space import ArchitectureError, Genotype, SearchSpace

Choice = str | int | float


@dataclass(frozen=True)
class Choices:
    """An architecture: one choice for every gene, accessible by the gene's name or, as in a tuple, by position.

    Attributes:
        names: (G,) names of the genes.
        values: (G,) the choice for every gene.

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
    """A space in which an architecture is one independent choice for every gene.

    A subclass only has to set ``name`` and ``choices`` and to implement ``build``. The notation is the JSON list of the
    choices, in order. If different choices can give the same network, override ``architecture_key``; if some are
    invalid, let ``_build`` raise ArchitectureError and override ``size``.

    Attributes:
        choices: the distinct choices of every gene, strings or numbers, by the gene's name.

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
    objectives: tuple[str, ...] = ()

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
        """Return the network as a graph, made with a ``converters.builder.GraphBuilder``."""

    def encode(self, architecture: Choices) -> Genotype:
        return self._genes(self._values(architecture))

    def _build(self, genotype: Genotype) -> Choices:
        pairs = zip(genotype, self.choices.values(), strict=True)
        return Choices(tuple(self.choices), tuple(choices[gene] for gene, choices in pairs))

    def parse(self, notation: str) -> Choices:
        reader = NotationReader(self.name, self.gene_help)
        listed = reader.check_list("the notation", reader.read_json(notation), [len(self.choices)])
        return self.decode(self._genes(listed))

    def format(self, architecture: Choices) -> str:
        genes = zip(self._genes(self._values(architecture)), self.choices.values(), strict=True)
        return json.dumps([choices[gene] for gene, choices in genes], ensure_ascii=False)

    def architecture_key(self, architecture: Choices) -> str:
        """Return the notation, since different choices are assumed to give different networks."""
        return self.format(architecture)

    def _genes(self, values: Sequence[Any]) -> Genotype:
        pairs = zip(values, self.choices.items(), strict=True)
        return tuple([choice_index(self.name, name, x, choices, self.gene_help) for x, (name, choices) in pairs])

    def _values(self, architecture: object) -> tuple[Any, ...]:
        """Return the choices of an architecture; raise ArchitectureError if it has not this space's genes."""
        got = architecture
        if isinstance(architecture, Choices):
            if architecture.names == tuple(self.choices) and len(architecture) == len(self.choices):
                return architecture.values
            got = dict(zip(architecture.names, architecture, strict=False))
        raise ArchitectureError(
            f"{self.name}: expected an architecture, as returned by decode and parse, got {shown(got)}. "
            f"{self.gene_help}"
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
