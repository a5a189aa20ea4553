"""A predictor that is asked each thing once. N texts, M objectives, Q quantiles, S samples."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from nasrlm.objective import FloatArray
from nasrlm.prediction import Prediction


class TextPredictor(Protocol):
    """The part of ``nasrlm.Predictor`` that a surrogate and the gate need."""

    def predict(
        self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]
    ) -> Prediction: ...


class SamplingPredictor(TextPredictor, Protocol):
    """The part that a search with real evaluations needs."""

    @property
    def objectives(self) -> tuple[str, ...]: ...

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray: ...


class PredictorMemory:
    """Answers again what it was asked before; each objective of a text is predicted once for given quantiles."""

    def __init__(self, predictor: TextPredictor) -> None:
        self.predictor = predictor
        self._answers: dict[tuple[float, ...], dict[str, dict[str, FloatArray]]] = {}  # text: objective: (Q,)

    def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Prediction:
        """(N, M, Q) quantiles in own units; one call for all texts of which the same objectives are new.

        Raises:
            ValueError: the objectives are not named.
        """
        if objectives is None:
            raise ValueError("predictor memory: expected objectives by name, got None. Name them.")
        names, levels = tuple(objectives), tuple(quantiles)
        answers = self._answers.setdefault(levels, {})
        new: dict[tuple[str, ...], list[str]] = {}
        for text in dict.fromkeys(texts):
            known = answers.setdefault(text, {})
            if missing := tuple(name for name in names if name not in known):
                new.setdefault(missing, []).append(text)
        for missing, unknown in new.items():
            predicted = self.predictor.predict(unknown, missing, levels).values
            for text, row in zip(unknown, predicted, strict=True):
                answers[text] |= zip(missing, row, strict=True)
        values = np.array([[answers[text][name] for name in names] for text in texts], dtype=np.float64)
        return Prediction(names, levels, values.reshape(len(texts), len(names), len(levels)))
