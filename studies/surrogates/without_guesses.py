"""Hide objectives that a predictor can only guess. N texts, M objectives, Q quantiles, S samples.

Guessed: learned from networks of other spaces only.
"""

from collections.abc import Hashable, Sequence
from typing import TypeVar

from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from studies.surrogates.memory import SamplingPredictor

A = TypeVar("A", bound=Hashable)


class WithoutGuesses:
    """A predictor that pretends not to know some objectives, so that they are learned from results.

    Args:
        predictor: predicts the other objectives.
        guessed: names of the objectives to hide.
    """

    def __init__(self, predictor: SamplingPredictor, guessed: frozenset[str]) -> None:
        self.predictor = predictor
        self.objectives = tuple(name for name in predictor.objectives if name not in guessed)

    def predict(self, texts: Sequence[str], objectives: Sequence[str], quantiles: Sequence[float]) -> Prediction:
        """Return (N, M, Q) quantiles in own units."""
        return self.predictor.predict(texts, objectives, quantiles)

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        """Return (N, M, S) samples in own units."""
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
    """Return a predictor that does not know the objectives in ``guessed``.

    Guesses have intervals as narrow as real knowledge, so a search that trusts them skips architectures whose results
    would correct them.
    """
    return WithoutGuesses(predictor, guessed) if guessed else predictor
