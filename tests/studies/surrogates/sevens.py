"""A predictor to which all networks are alike."""

from collections.abc import Sequence

import numpy as np

from converters.tables.counts import COUNTS
from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction


class Sevens:
    """Predicts 7 of the objectives that it knows, and must not be asked of others, of counts, or of none at all."""

    def __init__(self, *objectives: str) -> None:
        self.objectives = objectives

    def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Prediction:
        names = self.objectives if objectives is None else tuple(objectives)
        return Prediction(names, tuple(quantiles), self.sample(texts, names, len(quantiles), seed=0))

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        assert objectives
        assert set(objectives) <= set(self.objectives) - set(COUNTS)
        return np.full((len(texts), len(objectives), samples), 7.0)
