"""A predictor in the terms of a search space."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from converters.counts import COUNTS, named_counts
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from studies.memory import PredictorMemory, TextPredictor

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
        self._counted = [name for name in self.objectives if name in COUNTS]
        self._predicted = [name for name in self.objectives if name not in COUNTS]
        self.to_text = to_text

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """Predict, and count; one call of the predictor for all texts not met before.

        Args:
            architectures: N architectures, repetitions allowed.

        Returns:
            (N, M, 3) in own units.
        """
        counts = named_counts(self.space, architectures, self._counted)
        values = [np.repeat(counts[:, :, None], len(QUANTILES), axis=2)]
        if self._predicted:
            texts = [self.to_text(architecture) for architecture in architectures]
            values.append(self.predictor.predict(texts, self._predicted, QUANTILES).values)
        order = [[*self._counted, *self._predicted].index(name) for name in self.objectives]
        return Prediction(self.objectives, QUANTILES, np.concatenate(values, axis=1)[:, order])
