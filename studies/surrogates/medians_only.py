"""A predictor some of whose predictions count as certain. N texts, M objectives, Q quantiles, S samples."""

from collections.abc import Sequence

from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from studies.surrogates.memory import SamplingPredictor


class MediansOnly:
    """Gives the median of some objectives at every quantile and in every sample.

    It is for an evaluator that takes these objectives from the predictor: evaluating an architecture teaches nothing
    about them, so their uncertainty should not attract evaluations.

    Args:
        predictor: gives the predictions.
        certain: names of these objectives.
    """

    def __init__(self, predictor: SamplingPredictor, certain: Sequence[str]) -> None:
        self.predictor = predictor
        self.certain = tuple(certain)

    @property
    def objectives(self) -> tuple[str, ...]:
        """The names that the predictor knows."""
        return self.predictor.objectives

    def predict(self, texts: Sequence[str], objectives: Sequence[str], quantiles: Sequence[float]) -> Prediction:
        """Return (N, M, Q) quantiles in own units; 0.5 has to be among the levels."""
        answer = self.predictor.predict(texts, objectives, quantiles)
        columns = self._columns(answer.objectives)
        values = answer.values.copy()
        values[:, columns] = answer.median[:, columns, None]
        return Prediction(answer.objectives, answer.quantiles, values)

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        """Return (N, M, S) samples in own units."""
        drawn = self.predictor.sample(texts, objectives, samples, seed).copy()
        columns = self._columns(objectives)
        if columns:
            names = [objectives[column] for column in columns]
            drawn[:, columns] = self.predictor.predict(texts, names, (0.5,)).values
        return drawn

    def _columns(self, objectives: Sequence[str]) -> list[int]:
        return [column for column, name in enumerate(objectives) if name in self.certain]
