"""The scale on which an objective is learned."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from nasrlm.arrays import FloatArray
from nasrlm.deviations import deviation_of
from nasrlm.objective import Objective

BEST_ACCURACY = 100.5  # percent; half above 100, so that the logarithm of what is missing stays finite


@dataclass(frozen=True)
class Scale:
    """An increasing map from an objective's values to the scale on which it is learned.

    Costs multiply, and so do errors in percent, so logarithms of these are learned; other values as they are.

    Attributes:
        kind: "error", "log" or "linear".
        floor: of the kind "error": below all accuracies that can be, where these are told apart at that end too.
    """

    kind: str
    floor: float = -np.inf

    @classmethod
    def of(cls, name: str, values: FloatArray) -> "Scale":
        """The map for an objective with such values."""
        if Objective.parse(name).is_accuracy and ((values > 0) & (values <= 100)).all():
            return cls("error")
        return cls("log" if (values > 0).all() else "linear")

    def forward(self, values: FloatArray) -> FloatArray:
        """Onto the scale; what lies beyond its ends counts as the end."""
        if self.kind == "error":
            values = np.minimum(values, 100)
            above = np.log(np.maximum(values - self.floor, 0.1)) if np.isfinite(self.floor) else 0.0
            return np.asarray(above - np.log(BEST_ACCURACY - values), dtype=np.float64)
        return np.asarray(np.log(np.maximum(values, 1e-12)) if self.kind == "log" else values, dtype=np.float64)

    def backward(self, values: FloatArray) -> FloatArray:
        """Values in the objective's unit; an accuracy is none below 0 or above 100 %."""
        if self.kind == "error":
            if np.isfinite(self.floor):
                accuracies = self.floor + (BEST_ACCURACY - self.floor) * expit(values)
            else:
                accuracies = BEST_ACCURACY - np.exp(-values)
            return np.asarray(np.clip(accuracies, 0.0, 100.0), dtype=np.float64)
        return np.asarray(np.exp(values) if self.kind == "log" else values, dtype=np.float64)

    def deviation(self, values: FloatArray) -> float:
        """Standard deviation of values on the scale; for equal values, what it would be if they varied e-fold."""
        largest = float(np.abs(values).max())
        return deviation_of(values, of_equal=largest if self.kind == "linear" and largest > 0 else 1.0)


@dataclass(frozen=True)
class LearningScale:
    """A scale whose labels have mean 0 and variance 1.

    Attributes:
        scale: before.
        mean: of the labels on it.
        deviation: likewise.
        low: least label that may come back.
    """

    scale: Scale
    mean: float
    deviation: float
    low: float

    @classmethod
    def of(cls, scale: Scale, labels: FloatArray, *, low: float = -np.inf) -> "LearningScale":
        """Take mean and deviation from these labels."""
        values = scale.forward(labels)
        return cls(scale, float(values.mean()), scale.deviation(values), low)

    def forward(self, labels: FloatArray) -> FloatArray:
        """Scores."""
        return np.asarray((self.scale.forward(labels) - self.mean) / self.deviation, dtype=np.float64)

    def backward(self, scores: FloatArray) -> FloatArray:
        """Labels."""
        return np.maximum(self.scale.backward(scores * self.deviation + self.mean), self.low)
