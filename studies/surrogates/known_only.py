"""Ask a predictor only what it knows. N texts, M objectives, Q quantiles, S samples.

Guessed: learned from networks of other spaces only.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from studies.surrogates.memory import SamplingPredictor

A = TypeVar("A", bound=Hashable)


class KnownOnly:
    """A predictor that answers NaN, by which the gate prunes nothing, for objectives that are still to be learned.

    Args:
        predictor: predicts the known objectives.
        objectives: their names.
    """

    def __init__(self, predictor: SamplingPredictor, objectives: Iterable[str]) -> None:
        self.predictor = predictor
        self.objectives = tuple(objectives)

    def predict(self, texts: Sequence[str], objectives: Sequence[str], quantiles: Sequence[float]) -> Prediction:
        """Return (N, M, Q) quantiles in own units; NaN for unknown objectives."""
        names, levels = tuple(objectives), tuple(quantiles)
        columns = [column for column, name in enumerate(names) if name in self.objectives]
        values = np.full((len(texts), len(names), len(levels)), np.nan)
        if columns:
            values[:, columns] = self.predictor.predict(texts, [names[column] for column in columns], levels).values
        return Prediction(names, levels, values)

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        """Return (N, M, S) samples in own units of known objectives."""
        return self.predictor.sample(texts, objectives, samples, seed)


def guessed_objectives(
    predictor: SamplingPredictor, space: SearchSpace[A], objectives: Sequence[str]
) -> frozenset[str]:
    """Return the objectives that a predictor can only guess, because it learned them from other spaces only.

    Args:
        predictor: a ``nasrlm.Predictor``, whose checkpoint names the objectives learned of each space; any other
            predictor guesses nothing.
        space: space of the networks to predict.
        objectives: names to check.
    """
    checkpoint = getattr(predictor, "checkpoint", None)
    return frozenset() if checkpoint is None else checkpoint.guessed_of(space.address).intersection(objectives)


def without_guesses(predictor: SamplingPredictor, guessed: frozenset[str]) -> SamplingPredictor:
    """Return a predictor that does not know the objectives in ``guessed``, so that they are learned from results.

    Guesses have intervals as narrow as real knowledge, so a search that trusts them skips architectures whose results
    would correct them.
    """
    known = [name for name in predictor.objectives if name not in guessed]
    return KnownOnly(predictor, known) if guessed else predictor
