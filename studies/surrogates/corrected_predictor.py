"""A predictor some of whose objectives are replaced by ones learned from a study's real results.

N texts, M objectives, Q quantiles, S samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import norm

from nasrlm.adaptation.label_scales import LabelScale
from nasrlm.arrays import FloatArray
from nasrlm.objective import Objective
from nasrlm.prediction import Prediction
from studies.surrogates.memory import SamplingPredictor


class LearnedObjective(ABC):
    """The model of one objective that was learned from results: a normal distribution on a scale.

    Attributes:
        scale: converts numbers on the scale to labels.
    """

    scale: LabelScale

    @abstractmethod
    def normal(self, texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Return the (N,) means and standard deviations on the scale."""

    def quantiles(self, texts: Sequence[str], normal_quantiles: FloatArray) -> FloatArray:
        """Return (N, Q) labels at quantiles, (Q,) or (N, Q), of a standard normal distribution."""
        mean, deviation = self.normal(texts)
        return self.scale.backward(mean[:, None] + deviation[:, None] * normal_quantiles)

    def sample(self, texts: Sequence[str], samples: int, rng: np.random.Generator) -> FloatArray:
        """Return (N, S) labels, drawn independently for each text and with the noise of a measurement.

        A subclass may draw them jointly, and without this noise.
        """
        return self.quantiles(texts, rng.normal(size=(len(texts), samples)))


class CorrectedPredictor:
    """Predicts learned objectives by their own models, within their bounds, and the others by the predictor.

    Attributes:
        objectives: names that it can predict.
        learned: models of the learned objectives, by name.
    """

    def __init__(self, predictor: SamplingPredictor, learned: Mapping[str, LearnedObjective]) -> None:
        self._predictor = predictor
        self.learned = learned
        self.objectives = tuple(dict.fromkeys([*predictor.objectives, *learned]))

    def predict(self, texts: Sequence[str], objectives: Sequence[str], quantiles: Sequence[float]) -> Prediction:
        """Return (N, M, Q) quantiles in own units."""
        names = tuple(objectives)
        values = np.empty((len(texts), len(names), len(quantiles)))
        others = [column for column, name in enumerate(names) if name not in self.learned]
        if others and texts:
            values[:, others] = self._predictor.predict(texts, [names[column] for column in others], quantiles).values
        levels = np.asarray(norm.ppf(quantiles), dtype=np.float64)
        for column, learned in self._columns(names, texts):
            values[:, column] = learned.quantiles(texts, levels).clip(*Objective.parse(names[column]).bounds)
        return Prediction(names, tuple(quantiles), values)

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        """Return (N, M, S) samples in own units.

        NOTE: the predictor gets another seed, because otherwise its samples and those of the learned objectives would
        come from the same random bits.
        """
        values = np.empty((len(texts), len(objectives), samples))
        others = [column for column, name in enumerate(objectives) if name not in self.learned]
        if others and texts:
            names = [objectives[column] for column in others]
            values[:, others] = self._predictor.sample(texts, names, samples, seed + 1)
        rng = np.random.default_rng(seed)
        for column, learned in self._columns(objectives, texts):
            values[:, column] = learned.sample(texts, samples, rng).clip(*Objective.parse(objectives[column]).bounds)
        return values

    def _columns(self, names: Sequence[str], texts: Sequence[str]) -> list[tuple[int, LearnedObjective]]:
        if not texts:
            return []
        return [(column, self.learned[name]) for column, name in enumerate(names) if name in self.learned]
