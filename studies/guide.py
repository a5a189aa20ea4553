"""How a predictor guides a search with real evaluations, and its spelling in study.json."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

ACQUISITIONS = ("hypervolume", "median")


def levels_of(risk: float) -> tuple[float, float, float]:
    """The quantiles that a risk asks for: pessimistic or optimistic, median, the other.

    Raises:
        ValueError: ``risk`` outside (0, 0.5).
    """
    if not 0 < risk < 0.5:
        raise ValueError(f"gate: expected a risk between 0 and 0.5, got {risk}. Example: 0.05.")
    return (risk, 0.5, 1 - risk)


@dataclass(frozen=True)
class Guide:
    """Settings of a guided search.

    Attributes:
        acquisition: how candidates are chosen: "hypervolume", the improvement expected over samples of the
            predicted distributions, or "median", the improvement of the predicted medians.
        gate: whether the Pareto gate prunes candidates.
        risk: the gate's, and of the predicted bounds that are recorded; in (0, 0.5).
        batch_size: architectures chosen at a time, before the predictions are looked at again.
        generations: populations proposed on the predictions for every batch.
        samples: of each candidate's distributions, for the acquisition "hypervolume".
        adapt_every: real results after which the predictor learns from all of them; 0 leaves it as it is.
        exhaustive: whether every architecture is looked at for each batch, instead of those that an engine proposes.
            For spaces of some ten thousand; a table's rows if a table answers.
    """

    acquisition: str = "hypervolume"
    gate: bool = True
    risk: float = 0.05
    batch_size: int = 5
    generations: int = 10
    samples: int = 32
    adapt_every: int = 5
    exhaustive: bool = False

    def __post_init__(self) -> None:
        if self.acquisition not in ACQUISITIONS:
            raise ValueError(
                f"search: expected an acquisition of {', '.join(ACQUISITIONS)}, got {self.acquisition!r}. Name one."
            )
        for name in ("batch_size", "generations", "samples"):
            if getattr(self, name) < 1:
                raise ValueError(f"search: expected {name} of 1 or more, got {getattr(self, name)}.")
        if self.adapt_every < 0:
            raise ValueError(f"search: expected adapt_every of 0 or more, got {self.adapt_every}.")
        levels_of(self.risk)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; ``Guide.from_dict`` reads them back."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build from names and values.

        Raises:
            ValueError: an unknown name or a bad value.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        unknown = [name for name in values if name not in names]
        if unknown:
            raise ValueError(
                f"search guide: expected {', '.join(names)}, got {', '.join(unknown)}. Check the spelling."
            )
        return cls(**values)
