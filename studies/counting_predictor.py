"""A predictor that counts what can be counted. N texts, M objectives, Q quantiles, S samples."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from converters.counts import COUNTS, named_counts
from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from studies.memory import JointPredictor, SamplingPredictor, TextMemory

A = TypeVar("A", bound=Hashable)


class CountingPredictor(Generic[A]):
    """Answers ``COUNTS``, such as ``params@onnx``, at every level and in every sample by counting; others by a model.

    Args:
        predictor: answers all else.
        space: of the networks.
        texts: wrote every text that is asked about.
    """

    def __init__(self, predictor: SamplingPredictor, space: SearchSpace[A], texts: TextMemory[A]) -> None:
        self.predictor = predictor
        self.space = space
        self.texts = texts

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names the predictor knows, and all counts."""
        return tuple(dict.fromkeys((*self.predictor.objectives, *COUNTS)))

    def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Prediction:
        """(N, M, Q) quantiles in own units."""
        names = self.objectives if objectives is None else tuple(objectives)

        def ask(others: Sequence[str]) -> FloatArray:
            return self.predictor.predict(texts, others, quantiles).values

        return Prediction(names, tuple(quantiles), self._answers(texts, names, len(quantiles), ask))

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        """(N, M, S) values in own units."""

        def ask(others: Sequence[str]) -> FloatArray:
            return self.predictor.sample(texts, others, samples, seed)

        return self._answers(texts, objectives, samples, ask)

    def _answers(
        self, texts: Sequence[str], names: Sequence[str], depth: int, ask: Callable[[Sequence[str]], FloatArray]
    ) -> FloatArray:
        """(N, M, depth) counts, and what ``ask`` answers of other names."""
        values = np.empty((len(texts), len(names), depth))
        is_counted = np.array([name in COUNTS for name in names])
        if is_counted.any():
            architectures = [self.texts.architecture_of(text) for text in texts]
            counts = named_counts(self.space, architectures, [name for name in names if name in COUNTS])
            values[:, is_counted] = counts[:, :, None]
        if not is_counted.all():
            values[:, ~is_counted] = ask([name for name in names if name not in COUNTS])
        return values


class JointCountingPredictor(CountingPredictor[A]):
    """The same of a ``JointPredictor``."""

    def joint_samples(self, texts: Sequence[str], objectives: Sequence[str], samples: int, *, seed: int) -> FloatArray:
        """(N, M, S) values in own units."""

        def ask(others: Sequence[str]) -> FloatArray:
            assert isinstance(self.predictor, JointPredictor)
            return self.predictor.joint_samples(texts, others, samples, seed=seed)

        return self._answers(texts, objectives, samples, ask)


def counting(predictor: SamplingPredictor, space: SearchSpace[A], texts: TextMemory[A]) -> CountingPredictor[A]:
    """The predictor, but for counts; it draws jointly if the predictor does."""
    kind = JointCountingPredictor if isinstance(predictor, JointPredictor) else CountingPredictor
    return kind(predictor, space, texts)
