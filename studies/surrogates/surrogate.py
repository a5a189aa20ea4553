"""A predictor in the terms of a search space."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from converters.tables.counts import named_counts
from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from studies.surrogates.counting_predictor import with_counts
from studies.surrogates.memory import PredictorMemory, TextPredictor

A = TypeVar("A", bound=Hashable)

QUANTILES = (0.1, 0.5, 0.9)


class Surrogate(Generic[A]):
    """A predictor in the terms of a search space; architectures of one text are predicted once.

    What can be counted, such as ``macs@onnx``, is counted. Texts are not kept: of 100,000 networks of DARTS they are a
    gigabyte, and a search asks about each network once.

    Args:
        space: the search space.
        predictor: texts to predictions.
        objectives: M names, in this order.
        to_text: architecture to the text that the predictor reads.
    """

    def __init__(
        self,
        space: SearchSpace[A],
        predictor: TextPredictor,
        *,
        objectives: Sequence[str],
        to_text: Callable[[A], str],
    ) -> None:
        self.space = space
        self.predictor = PredictorMemory(predictor)
        self.objectives = tuple(objectives)
        self.to_text = to_text

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """Predict, and count; one call of the predictor for all texts not met before.

        Args:
            architectures: N architectures, repetitions allowed.

        Returns:
            (N, M, 3) in own units.
        """

        def count(names: Sequence[str]) -> FloatArray:
            return named_counts(self.space, architectures, names)

        def ask(names: Sequence[str]) -> FloatArray:
            texts = [self.to_text(architecture) for architecture in architectures]
            return self.predictor.predict(texts, names, QUANTILES).values

        return Prediction(self.objectives, QUANTILES, with_counts(self.objectives, len(QUANTILES), count, ask))
