"""The scales on which processes learn labels: a score is a label on such a scale, of mean 0 and variance about 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.stats import norm, rankdata

from nasrlm.arrays import FloatArray
from nasrlm.deviations import deviation_of


class LabelScale(Protocol):
    """A map from labels to scores and back."""

    def forward(self, labels: FloatArray) -> FloatArray: ...

    def backward(self, scores: FloatArray) -> FloatArray: ...


@dataclass(frozen=True)
class NormalScores:
    """Labels to normal scores of their ranks and back: piecewise linear, beyond the ends with the overall slope.

    The slope is 1 if all labels are equal.

    Attributes:
        labels: (K,) different labels, ascending.
        scores: (K,) their scores.
    """

    labels: FloatArray
    scores: FloatArray

    @classmethod
    def of(cls, labels: FloatArray) -> NormalScores:
        """Fit the map to these labels; ties share a rank."""
        different, first = np.unique(labels, return_index=True)
        scores: FloatArray = norm.ppf((rankdata(labels)[first] - 0.5) / len(labels))
        return cls(different, scores)

    def forward(self, labels: FloatArray) -> FloatArray:
        """Return the scores of labels; exact for those that the map was fitted to."""
        return np.interp(labels, self.labels, self.scores)

    def backward(self, scores: FloatArray) -> FloatArray:
        """Return the labels of any scores."""
        inside = np.clip(scores, self.scores[0], self.scores[-1])
        reach = self.scores[-1] - self.scores[0]
        slope = (self.labels[-1] - self.labels[0]) / reach if reach else 1.0
        return np.asarray(np.interp(inside, self.scores, self.labels) + slope * (scores - inside))


@dataclass(frozen=True)
class Standardised:
    """Labels minus their mean, divided by their standard deviation, and back."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, labels: FloatArray, logarithmic: bool = False) -> Standardised:
        """Use mean and standard deviation of these labels; ``logarithmic`` if they are logarithms of labels."""
        return cls(float(labels.mean()), deviation_of(labels, logarithmic=logarithmic))

    def forward(self, labels: FloatArray) -> FloatArray:
        """Return the scores of labels."""
        return (labels - self.mean) / self.deviation

    def backward(self, scores: FloatArray) -> FloatArray:
        """Return the labels of scores."""
        return self.mean + self.deviation * scores
