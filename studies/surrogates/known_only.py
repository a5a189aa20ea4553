"""Ask a predictor only what it knows. N texts, M objectives, Q quantiles."""

from collections.abc import Collection, Sequence

import numpy as np

from nasrlm.prediction import Prediction
from studies.surrogates.memory import TextPredictor


class KnownOnly:
    """A predictor that answers NaN, by which the gate prunes nothing, for objectives that are still to be learned.

    Args:
        predictor: predicts the known objectives.
        known: their names.
    """

    def __init__(self, predictor: TextPredictor, known: Collection[str]) -> None:
        self.predictor = predictor
        self.known = known

    def predict(self, texts: Sequence[str], objectives: Sequence[str], quantiles: Sequence[float]) -> Prediction:
        """Return (N, M, Q) quantiles in own units; NaN for unknown objectives."""
        names, levels = tuple(objectives), tuple(quantiles)
        columns = [column for column, name in enumerate(names) if name in self.known]
        values = np.full((len(texts), len(names), len(levels)), np.nan)
        if columns:
            values[:, columns] = self.predictor.predict(texts, [names[column] for column in columns], levels).values
        return Prediction(names, levels, values)
