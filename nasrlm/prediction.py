"""What a predictor answers: quantiles of every objective. N architectures, M objectives, Q quantiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nasrlm.arguments import checked_levels
from nasrlm.arrays import FloatArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Prediction:
    """Quantiles of M objectives for N architectures.

    Attributes:
        objectives: M names, the second axis of ``values``.
        quantiles: Q levels in (0, 1), ascending, the third axis.
        values: (N, M, Q) in the objectives' own units; guesses where a text's space lacks the objective: those that
            it has are in ``Predictor.objectives_of(space)``.
    """

    objectives: tuple[str, ...]
    quantiles: tuple[float, ...]
    values: FloatArray

    def __post_init__(self) -> None:
        levels = checked_levels(self.quantiles)
        expected = (len(self.objectives), len(levels))
        if self.values.ndim != 3 or self.values.shape[1:] != expected:
            raise ValueError(
                f"prediction: expected values of shape (N, {expected[0]}, {expected[1]}), "
                f"got {self.values.shape}. The axes are architecture, objective, quantile."
            )

    def to_frame(self) -> pd.DataFrame:
        """A row an architecture, columns as ``columns_of`` has them."""
        import pandas as pd  # here: half a second, of which predicting has no use

        names = columns_of(self.objectives, self.quantiles)
        return pd.DataFrame(self.values.reshape(len(self), len(names)), columns=names)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        sizes = f"{len(self):,} texts x {len(self.objectives)} objectives x {len(self.quantiles)} quantiles"
        return f"Prediction({sizes}; see values, median, low, high, to_frame())"

    @property
    def median(self) -> FloatArray:
        """(N, M), own units.

        Raises:
            ValueError: 0.5 is not among the quantiles.
        """
        if 0.5 not in self.quantiles:
            raise ValueError(f"prediction: expected 0.5 among the quantiles, got {self.quantiles}. Ask for it.")
        return self.values[:, :, self.quantiles.index(0.5)]

    @property
    def low(self) -> FloatArray:
        """(N, M) lowest quantile, own units."""
        return self.values[:, :, 0]

    @property
    def high(self) -> FloatArray:
        """(N, M) highest quantile, own units."""
        return self.values[:, :, -1]

    @property
    def interval(self) -> float | None:
        """The probability that lies between ``low`` and ``high``, 0.8 for 0.1 to 0.9; None for one quantile."""
        return round(self.quantiles[-1] - self.quantiles[0], 6) if len(self.quantiles) > 1 else None


def columns_of(objectives: Sequence[str], quantiles: Sequence[float]) -> list[str]:
    """Names of M × Q values, objective by objective: a median has the objective's own, ``latency_ms@pixel3``.

    Its 10 % quantile is ``latency_ms@pixel3.q0.1``. What the arithmetic of levels has left behind their 12th digit is
    not spelled, unless some differ in nothing else.
    """
    spelled = [f"{level:.12g}" for level in quantiles]
    if len(set(spelled)) < len(spelled):
        spelled = [*map(str, quantiles)]
    levels = [*zip(quantiles, spelled, strict=True)]
    return [name if level == 0.5 else f"{name}.q{word}" for name in objectives for level, word in levels]


def spell_interval(answer: Mapping[str, float]) -> str:
    """``median (low to high)``, the three under these names."""
    return f"{answer['median']:.4g} ({answer['low']:.4g} to {answer['high']:.4g})"
