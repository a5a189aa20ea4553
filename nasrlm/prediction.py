"""Predictions: quantiles of every objective. N architectures, M objectives, Q quantiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nasrlm.arguments import checked_levels, checked_names
from nasrlm.arrays import FloatArray, to_floats

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)  # compared by identity, as arrays have no single answer
class Prediction:
    """Quantiles of M objectives for N architectures.

    Attributes:
        objectives: M names, the second axis of ``values``.
        quantiles: Q levels in (0, 1), ascending, the third axis.
        values: (N, M, Q) in the objectives' own units. They are guesses for objectives that the model has not learned
            in a text's space; ``Predictor.objectives_of(space)`` lists those that it has.

    Raises:
        ValueError: names or levels are no list, levels do not ascend, or values are no numbers of this shape.
    """

    objectives: tuple[str, ...]
    quantiles: tuple[float, ...]
    values: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "objectives", checked_names(self.objectives))
        object.__setattr__(self, "quantiles", checked_levels(self.quantiles))
        try:
            object.__setattr__(self, "values", to_floats(self.values))
        except (TypeError, ValueError) as e:
            raise ValueError(f"prediction: expected numbers as values, got {repr(self.values)[:60]}.") from e
        expected = (len(self.objectives), len(self.quantiles))
        if self.values.ndim != 3 or self.values.shape[1:] != expected:
            raise ValueError(
                f"prediction: expected values of shape (N, {expected[0]}, {expected[1]}), "
                f"got {self.values.shape}. The axes are architecture, objective, quantile."
            )

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row per architecture and the columns of ``columns_of``."""
        import pandas as pd  # here: takes half a second, and predicting does not need it

        names = columns_of(self.objectives, self.quantiles)
        return pd.DataFrame(self.values.reshape(len(self), len(names)), columns=names)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        sizes = f"{len(self):,} texts x {len(self.objectives)} objectives x {len(self.quantiles)} quantiles"
        return f"Prediction({sizes}; see values, median, low, high, to_frame())"

    @property
    def median(self) -> FloatArray:
        """(N, M) medians in the objectives' own units.

        Raises:
            ValueError: 0.5 is not among the quantiles.
        """
        if 0.5 not in self.quantiles:
            raise ValueError(
                f"prediction: expected 0.5 among the quantiles, got {self.quantiles}. Add it when predicting."
            )
        return self.values[:, :, self.quantiles.index(0.5)]

    @property
    def low(self) -> FloatArray:
        """(N, M) lowest quantiles in the objectives' own units."""
        return self.values[:, :, 0]

    @property
    def high(self) -> FloatArray:
        """(N, M) highest quantiles in the objectives' own units."""
        return self.values[:, :, -1]

    @property
    def interval(self) -> float | None:
        """The probability between ``low`` and ``high``, such as 0.8 for 0.1 to 0.9; None for one quantile."""
        return round(self.quantiles[-1] - self.quantiles[0], 6) if len(self.quantiles) > 1 else None


def columns_of(objectives: Sequence[str], quantiles: Sequence[float]) -> list[str]:
    """Return the column names of M × Q values, objective by objective.

    The median has the objective's name, ``latency_ms@pixel3``, and its 10 % quantile is ``latency_ms@pixel3.q0.1``.
    Levels are written with 12 digits, which hides rounding errors, unless two would then be equal.
    """
    spelled = [f"{level:.12g}" for level in quantiles]
    if len(set(spelled)) < len(spelled):
        spelled = [*map(str, quantiles)]
    levels = [*zip(quantiles, spelled, strict=True)]
    return [name if level == 0.5 else f"{name}.q{word}" for name in objectives for level, word in levels]


def spell_interval(answer: Mapping[str, float]) -> str:
    """Return ``median (low to high)``, from values with these keys."""
    return f"{answer['median']:.4g} ({answer['low']:.4g} to {answer['high']:.4g})"
