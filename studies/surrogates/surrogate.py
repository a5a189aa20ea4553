"""A predictor as an evaluator of architectures."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from converters.tables.counts import named_counts
from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from studies.surrogates.counting_predictor import with_counts
from studies.surrogates.memory import PredictorMemory, TextPredictor, of_space

A = TypeVar("A", bound=Hashable)

QUANTILES = (0.1, 0.5, 0.9)


class Surrogate(Generic[A]):
    """Evaluates architectures by predictions, each text once.

    Counts, such as ``macs@onnx``, are computed. Texts are not cached: those of 100,000 DARTS networks would take a
    gigabyte, and a search evaluates each network once.

    Args:
        space: the search space.
        predictor: predicts from texts; of a ``nasrlm.Predictor``, its ``of_space`` does.
        objectives: M names, in the order of the results.
        to_text: converts an architecture to the text that the predictor reads.
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
        self.predictor = PredictorMemory(of_space(predictor, space))
        self.objectives = tuple(objectives)
        self.to_text = to_text

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """Predict or count every objective, with one call of the predictor for all new texts.

        Args:
            architectures: N architectures, repetitions allowed.

        Returns:
            (N, M, 3) values in own units, at ``QUANTILES``.
        """

        def count(names: Sequence[str]) -> FloatArray:
            return named_counts(self.space, architectures, names)

        def ask(names: Sequence[str]) -> FloatArray:
            texts = [self.to_text(architecture) for architecture in architectures]
            return self.predictor.predict(texts, names, QUANTILES).values

        return Prediction(self.objectives, QUANTILES, with_counts(self.objectives, len(QUANTILES), count, ask))
