"""Scales on which objectives are learned."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from nasrlm.arrays import FloatArray
from nasrlm.deviations import deviation_of
from nasrlm.objective import Objective

BEST_ACCURACY = 100.5  # percent; above 100, so that the logarithm of the error stays finite


@dataclass(frozen=True)
class Scale:
    """An increasing map from an objective's values to the scale on which it is learned.

    Costs and errors in percent vary by factors, so their logarithms are learned; other values are learned unchanged.

    Attributes:
        kind: "error", "log" or "linear".
        floor: only for "error": if finite, a value below all accuracies, near which the scale is stretched as near
            100 %.
    """

    kind: Literal["error", "log", "linear"]
    floor: float = -np.inf

    @classmethod
    def of(cls, name: str, values: FloatArray) -> "Scale":
        """Return the scale for an objective with these values."""
        if Objective.parse(name).is_accuracy and ((values > 0) & (values <= 100)).all():
            return cls("error")
        return cls("log" if (values > 0).all() else "linear")

    def forward(self, values: FloatArray) -> FloatArray:
        """Map values to the scale; values beyond its ends are clipped."""
        if self.kind == "error":
            values = np.minimum(values, 100)
            above = np.log(np.maximum(values - self.floor, 0.1)) if np.isfinite(self.floor) else 0.0
            return np.asarray(above - np.log(BEST_ACCURACY - values), dtype=np.float64)
        return np.asarray(np.log(np.maximum(values, 1e-12)) if self.kind == "log" else values, dtype=np.float64)

    def backward(self, values: FloatArray) -> FloatArray:
        """Map back to values in the objective's unit; accuracies are clipped to 0 to 100 %."""
        if self.kind == "error":
            if np.isfinite(self.floor):
                accuracies = self.floor + (BEST_ACCURACY - self.floor) * expit(values)
            else:
                accuracies = BEST_ACCURACY - np.exp(-values)
            return np.asarray(np.clip(accuracies, 0.0, 100.0), dtype=np.float64)
        return np.asarray(np.exp(values) if self.kind == "log" else values, dtype=np.float64)

    def deviation(self, values: FloatArray) -> float:
        """Return the standard deviation of values on the scale.

        For equal values it is 1, or their absolute value on a linear scale.
        """
        if self.kind != "linear":
            return deviation_of(values, logarithmic=True)
        return deviation_of(values, of_equal=float(np.abs(values).max()) or 1.0)


@dataclass(frozen=True)
class LearningScale:
    """A standardised scale, on which the labels it was made from have mean 0 and variance 1.

    Attributes:
        scale: the scale before standardisation.
        mean: mean of the labels on ``scale``.
        deviation: standard deviation of the labels on ``scale``.
        low: smallest label that ``backward`` returns.
    """

    scale: Scale
    mean: float
    deviation: float
    low: float

    @classmethod
    def of(cls, scale: Scale, labels: FloatArray, *, low: float = -np.inf) -> "LearningScale":
        """Create a scale with the mean and standard deviation of these labels."""
        values = scale.forward(labels)
        return cls(scale, float(values.mean()), scale.deviation(values), low)

    def forward(self, labels: FloatArray) -> FloatArray:
        """Convert labels to standardised scores."""
        return np.asarray((self.scale.forward(labels) - self.mean) / self.deviation, dtype=np.float64)

    def backward(self, scores: FloatArray) -> FloatArray:
        """Convert standardised scores to labels."""
        return np.maximum(self.scale.backward(scores * self.deviation + self.mean), self.low)
