"""A predictor of which some answers count as certain. N texts, M objectives, Q quantiles, S samples."""

from collections.abc import Sequence

from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from studies.surrogates.memory import SamplingPredictor


class MediansOnly:
    """Answers the median of some objectives at every level and in every sample.

    For an evaluator that takes them from the predictor: evaluating an architecture tells nothing new about them, so
    their uncertainty is no reason to evaluate it.

    Args:
        predictor: answers.
        certain: names of the objectives.
    """

    def __init__(self, predictor: SamplingPredictor, certain: Sequence[str]) -> None:
        self.predictor = predictor
        self.certain = tuple(certain)

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names the predictor knows."""
        return self.predictor.objectives

    def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Prediction:
        """(N, M, Q) quantiles, 0.5 among the levels."""
        answer = self.predictor.predict(texts, objectives, quantiles)
        columns = self._columns(answer.objectives)
        values = answer.values.copy()
        values[:, columns] = answer.median[:, columns, None]
        return Prediction(answer.objectives, answer.quantiles, values)

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        """(N, M, S) values in own units."""
        drawn = self.predictor.sample(texts, objectives, samples, seed).copy()
        columns = self._columns(objectives)
        if columns:
            names = [objectives[column] for column in columns]
            drawn[:, columns] = self.predictor.predict(texts, names, (0.5,)).values
        return drawn

    def _columns(self, objectives: Sequence[str]) -> list[int]:
        return [column for column, name in enumerate(objectives) if name in self.certain]
