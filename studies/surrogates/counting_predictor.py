"""A predictor that computes counts, such as parameters, instead of predicting them.

N texts, M objectives, Q quantiles, S samples.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from converters.tables.counts import COUNTS, named_counts
from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from studies.surrogates.memory import JointPredictor, SamplingPredictor, TextMemory

A = TypeVar("A", bound=Hashable)

Ask = Callable[[Sequence[str]], FloatArray]


def with_counts(names: Sequence[str], depth: int, count: Ask, ask: Ask) -> FloatArray:
    """Return (N, M, depth) values: ``COUNTS`` from ``count`` (N, m), repeated, others from ``ask`` (N, m, depth)."""
    counted, others = ([name for name in names if (name in COUNTS) is wanted] for wanted in (True, False))
    parts = [np.repeat(count(counted)[:, :, None], depth, axis=2)] if counted else []
    if others:
        parts.append(ask(others))
    order = [[*counted, *others].index(name) for name in names]
    return np.concatenate(parts, axis=1)[:, order]


class CountMemory(Generic[A]):
    """A cache of those of ``COUNTS`` that were asked for, by network; a copy starts empty.

    Args:
        space: the search space.
        texts: the cache that wrote every text, from which the architecture is found.
    """

    def __init__(self, space: SearchSpace[A], texts: TextMemory[A]) -> None:
        self.space = space
        self.texts = texts
        self._counts: dict[A, dict[str, float]] = {}

    def __reduce__(self) -> tuple[type[CountMemory[A]], tuple[SearchSpace[A], TextMemory[A]]]:
        return type(self), (self.space, self.texts)

    def of(self, texts: Sequence[str], names: Sequence[str]) -> FloatArray:
        """Return the (N, M) counts.

        Raises:
            KeyError: a text was not written by ``texts``.
        """
        architectures = [self.texts.architecture_of(text) for text in texts]
        new = [x for x in dict.fromkeys(architectures) if not self._counts.get(x, {}).keys() >= set(names)]
        for architecture, row in zip(new, named_counts(self.space, new, names).tolist(), strict=True):
            self._counts.setdefault(architecture, {}).update(zip(names, row, strict=True))
        rows = [[self._counts[architecture][name] for name in names] for architecture in architectures]
        return np.array(rows, dtype=np.float64).reshape(len(architectures), len(names))


class CountingPredictor(Generic[A]):
    """Computes ``COUNTS``, such as ``params@onnx``, and predicts all other objectives.

    A count is the same at every quantile and in every sample.

    Args:
        predictor: predicts the other objectives.
        counts: computes the counts of texts.
    """

    def __init__(self, predictor: SamplingPredictor, counts: CountMemory[A]) -> None:
        self.predictor = predictor
        self.counts = counts

    @property
    def objectives(self) -> tuple[str, ...]:
        """The names that the predictor knows, and all counts."""
        return tuple(dict.fromkeys((*self.predictor.objectives, *COUNTS)))

    def predict(self, texts: Sequence[str], objectives: Sequence[str], quantiles: Sequence[float]) -> Prediction:
        """Return (N, M, Q) quantiles in own units."""

        def ask(others: Sequence[str]) -> FloatArray:
            return self.predictor.predict(texts, others, quantiles).values

        return Prediction(tuple(objectives), tuple(quantiles), self._answers(texts, objectives, len(quantiles), ask))

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        """Return (N, M, S) samples in own units."""

        def ask(others: Sequence[str]) -> FloatArray:
            return self.predictor.sample(texts, others, samples, seed)

        return self._answers(texts, objectives, samples, ask)

    def _answers(self, texts: Sequence[str], names: Sequence[str], depth: int, ask: Ask) -> FloatArray:
        return with_counts(names, depth, lambda counted: self.counts.of(texts, counted), ask)


class JointCountingPredictor(CountingPredictor[A]):
    """A ``CountingPredictor`` around a ``JointPredictor``."""

    def joint_samples(self, texts: Sequence[str], objectives: Sequence[str], samples: int, *, seed: int) -> FloatArray:
        """Return (N, M, S) joint samples in own units."""

        def ask(others: Sequence[str]) -> FloatArray:
            assert isinstance(self.predictor, JointPredictor)
            return self.predictor.joint_samples(texts, others, samples, seed=seed)

        return self._answers(texts, objectives, samples, ask)


def counting(predictor: SamplingPredictor, counts: CountMemory[A]) -> CountingPredictor[A]:
    """Wrap a predictor so that counts are computed; the result samples jointly if the predictor does."""
    kind = JointCountingPredictor if isinstance(predictor, JointPredictor) else CountingPredictor
    return kind(predictor, counts)
