"""A predictor some of whose objectives have been learned from a study's own real results.

N texts, M objectives, Q quantiles, S samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import norm

from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from studies.surrogates.memory import SamplingPredictor


class LearnedObjective(ABC):
    """What was learned of one objective."""

    @abstractmethod
    def quantiles(self, texts: Sequence[str], normal_quantiles: FloatArray) -> FloatArray:
        """(N, Q) labels at quantiles of a standard normal distribution, (Q,) or (N, Q)."""

    def sample(self, texts: Sequence[str], samples: int, rng: np.random.Generator) -> FloatArray:
        """(N, S) labels; each text's are drawn independently of the others', unless a subclass draws them together."""
        return self.quantiles(texts, rng.normal(size=(len(texts), samples)))


class CorrectedPredictor:
    """Normal distributions on the scale of each objective that was learned; the predictor's own of the others.

    Attributes:
        objectives: that it can answer.
        learned: of them, by name.
    """

    def __init__(self, predictor: SamplingPredictor, learned: Mapping[str, LearnedObjective]) -> None:
        self._predictor = predictor
        self.learned = learned
        self.objectives = tuple(dict.fromkeys([*predictor.objectives, *learned]))

    def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Prediction:
        """(N, M, Q) quantiles in own units."""
        names = self.objectives if objectives is None else tuple(objectives)
        values = np.empty((len(texts), len(names), len(quantiles)))
        others = [column for column, name in enumerate(names) if name not in self.learned]
        if others and texts:
            values[:, others] = self._predictor.predict(texts, [names[column] for column in others], quantiles).values
        levels = np.asarray(norm.ppf(quantiles), dtype=np.float64)
        for column, learned in self._columns(names, texts):
            values[:, column] = learned.quantiles(texts, levels)
        return Prediction(names, tuple(quantiles), values)

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        """(N, M, S) values in own units.

        NOTE: the predictor has a seed of its own, or its draws and those of the processes would be made of the same
        random bits.
        """
        values = np.empty((len(texts), len(objectives), samples))
        others = [column for column, name in enumerate(objectives) if name not in self.learned]
        if others and texts:
            names = [objectives[column] for column in others]
            values[:, others] = self._predictor.sample(texts, names, samples, seed + 1)
        rng = np.random.default_rng(seed)
        for column, learned in self._columns(objectives, texts):
            values[:, column] = learned.sample(texts, samples, rng)
        return values

    def _columns(self, names: Sequence[str], texts: Sequence[str]) -> list[tuple[int, LearnedObjective]]:
        if not texts:
            return []
        return [(column, self.learned[name]) for column, name in enumerate(names) if name in self.learned]
