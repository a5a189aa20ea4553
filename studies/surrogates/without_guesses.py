"""A predictor without what it can only guess. N texts, M objectives, Q quantiles, S samples."""

from collections.abc import Hashable, Sequence
from typing import TypeVar

from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from studies.surrogates.memory import SamplingPredictor

A = TypeVar("A", bound=Hashable)


class WithoutGuesses:
    """A predictor that does not know some objectives, until results have taught them.

    Args:
        predictor: answers.
        guessed: names of the objectives that are left out.
    """

    def __init__(self, predictor: SamplingPredictor, guessed: frozenset[str]) -> None:
        self.predictor = predictor
        self.objectives = tuple(name for name in predictor.objectives if name not in guessed)

    def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Prediction:
        """(N, M, Q) quantiles."""
        return self.predictor.predict(texts, self.objectives if objectives is None else objectives, quantiles)

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        """(N, M, S) values in own units."""
        return self.predictor.sample(texts, objectives, samples, seed)


def guessed_objectives(
    predictor: SamplingPredictor, space: SearchSpace[A], objectives: Sequence[str]
) -> frozenset[str]:
    """Return those of the objectives that a predictor can only guess: it learned them of other spaces alone.

    Args:
        predictor: of a ``nasrlm.Predictor`` it is known what it has learned of which space.
        space: of the networks that it is asked about.
        objectives: names.
    """
    checkpoint = getattr(predictor, "checkpoint", None)
    return frozenset() if checkpoint is None else checkpoint.guessed_of(space.address).intersection(objectives)


def without_guesses(predictor: SamplingPredictor, guessed: frozenset[str]) -> SamplingPredictor:
    """Return the predictor as one that does not know the objectives in ``guessed``.

    Guesses are as sure as answers: whoever goes by them passes over all that could teach better ones.
    """
    return WithoutGuesses(predictor, guessed) if guessed else predictor
