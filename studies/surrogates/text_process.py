"""Learn an objective that the predictor does not know, from results and features of texts.

A Gaussian process has groups of features: the predictor's medians of other objectives, and what is counted in the text
(``text_parts``). If the predictor does not know the space either, nearly all information is in what is counted. In
contrast to ``graph_process``, networks need not be known beforehand.

N texts, F features of a group, S samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import softmax

from nasrlm.adaptation.group_process import GroupProcess
from nasrlm.arrays import FloatArray
from studies.surrogates.corrected_predictor import LearnedObjective
from studies.surrogates.scale import LearningScale, Scale
from studies.surrogates.text_parts import TextParts

LEAST_NOISE = 0.01  # share of the results' variance; a few equal results do not mean that others do not differ


class TextGroups:
    """Groups of features of texts: predictions, then ``TextParts``.

    Args:
        predicted: converts texts to (N, F) standardised predictions.
        pool: texts of the space.

    Attributes:
        linear: indices of groups with a linear kernel too: predictions and sizes.
    """

    def __init__(self, predicted: Callable[[Sequence[str]], FloatArray], pool: Sequence[str]) -> None:
        self._predicted, self._parts = predicted, TextParts(pool)
        self.linear = (0, *[1 + group for group in self._parts.of_sizes])

    def of(self, texts: Sequence[str]) -> list[FloatArray]:
        """Return the (N, F) features of each group."""
        return [self._predicted(texts), *self._parts.of(texts)]


class TextProcess(LearnedObjective):
    """An objective learned from features of texts.

    A mixture of two Gaussian processes, one with predictions as the only features and one with all groups, weighted by
    their marginal likelihoods: in a space that the predictor knows, predictions carry most information.

    Args:
        groups: features of texts.
        name: name of the objective.
        texts: N texts with results.
        labels: (N,) results in own unit.
    """

    def __init__(self, groups: TextGroups, name: str, texts: Sequence[str], labels: FloatArray) -> None:
        self._groups = groups
        self.scale = LearningScale.of(Scale.of(name, labels), labels)
        features, rows = groups.of(texts), np.arange(len(texts))
        self._processes = [
            GroupProcess(features[:count], linear=[group for group in groups.linear if group < count]).fit(
                rows, labels, self.scale
            )
            for count in sorted({1, len(features)})
        ]
        self._shares = softmax([-process.surprise for process in self._processes])

    def normal(self, texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Return the (N,) means and standard deviations of the mixture, on the scale."""
        features, rows = self._groups.of(texts), np.arange(len(texts))
        mean, squares = np.zeros(len(texts)), np.zeros(len(texts))
        for process, share in zip(self._processes, self._shares, strict=True):
            of_one, deviation = process.for_others(features).predict(rows)
            mean += share * of_one
            squares += share * (of_one**2 + deviation**2 + max(process.noise, LEAST_NOISE))
        return mean, np.sqrt(squares - mean**2)

    def sample(self, texts: Sequence[str], samples: int, rng: np.random.Generator) -> FloatArray:
        """Return (N, S) labels without the noise of a measurement, drawn jointly for all texts."""
        features, rows = self._groups.of(texts), np.arange(len(texts))
        drawn = [
            process.for_others(features).sample(rows, count, rng)
            for process, count in zip(self._processes, rng.multinomial(samples, self._shares).tolist(), strict=True)
        ]
        return self.scale.backward(rng.permutation(np.concatenate(drawn, axis=1), axis=1))
