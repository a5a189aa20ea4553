"""Learn an objective that the predictor does not know, from results and features of texts.

A Gaussian process has groups of features: the predictor's medians of other objectives, and counts of what is in the
text, see ``nasrlm.text.counts``. If the predictor does not know the space either, nearly all information is in the
counts. In contrast to ``graph_process``, networks need not be known beforehand.

N texts, F features of a group, C counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from nasrlm.adaptation.group_process import GroupProcess
from nasrlm.arrays import FloatArray
from nasrlm.model.readout import HASHED, NAMES
from nasrlm.text.counts import PARTS, text_counts
from studies.surrogates.corrected_predictor import LearnedObjective
from studies.surrogates.memory import digest_of
from studies.surrogates.scale import LearningScale, Scale

STANDARDISED = tuple(name not in HASHED for name in NAMES[1:])  # for each of PARTS; NAMES[0] are the encoder's states
LEAST_NOISE = 0.01  # share of the results' variance; a few equal results do not mean that others do not differ
FARTHEST = 5.0  # standard deviations from the pool's mean to which a standardised feature is clipped


class TextGroups:
    """Groups of features of texts, each with variance of about 1 over a pool of texts.

    Args:
        predicted: converts texts to (N, F) standardised predictions.
        pool: texts of the space.

    Attributes:
        linear: indices of groups with a linear kernel too: predictions, the first, and sizes, the last.
    """

    def __init__(self, predicted: Callable[[Sequence[str]], FloatArray], pool: Sequence[str]) -> None:
        self._predicted = predicted
        self._counted: dict[bytes, NDArray[np.float16]] = {}  # by digest; 4 KB per text
        counts, borders = self._counts(pool), np.cumsum([0, *PARTS])
        parts = [
            _Part.of(counts, slice(*part), standardised)
            for part, standardised in zip(pairwise(borders), STANDARDISED, strict=True)
        ]
        self._parts = [part for part in parts if part.columns.size]  # empty if texts are not ONNX
        self.linear = (0, len(self._parts)) if self._parts else (0,)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the cached counts out of copies."""
        return vars(self) | {"_counted": {}}

    def of(self, texts: Sequence[str]) -> list[FloatArray]:
        """Return the (N, F) features of each group, predictions first."""
        counts = self._counts(texts)
        return [self._predicted(texts), *[part.features(counts) for part in self._parts]]

    def _counts(self, texts: Sequence[str]) -> FloatArray:
        """Return the (N, C) counts of texts; cached."""
        digests = list(map(digest_of, texts))
        new = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in self._counted}
        self._counted |= zip(new, text_counts(list(new.values())).astype(np.float16), strict=True)
        counted = [self._counted[digest] for digest in digests]
        return np.array(counted, dtype=np.float64).reshape(len(texts), sum(PARTS))


@dataclass(frozen=True)
class _Part:
    """A group of counts that are features.

    Attributes:
        columns: (F,) columns of the counts. A standardised group has those that vary in the pool, another one all.
        means: (F,) means over the pool.
        units: (F,) divisors: each feature's standard deviation over the pool, or one for the whole group.
        farthest: largest distance from the mean, in units; features are clipped to it.
    """

    columns: NDArray[np.intp]
    means: FloatArray
    units: FloatArray
    farthest: float

    @classmethod
    def of(cls, counts: FloatArray, columns: slice, standardised: bool) -> _Part:
        """Create a group from the (N, C) counts of a pool; it has no columns if none of them varies."""
        means, deviations = counts[:, columns].mean(axis=0), counts[:, columns].std(axis=0)
        differ = deviations > 0
        typical = np.full(len(deviations), np.sqrt((deviations**2).mean()))
        kept = differ if standardised else np.full(len(deviations), differ.any())
        units, farthest = (deviations, FARTHEST) if standardised else (typical, np.inf)
        return cls(columns.start + np.flatnonzero(kept), means[kept], units[kept], farthest)

    def features(self, counts: FloatArray) -> FloatArray:
        """Return the (N, F) features of (N, C) counts."""
        return ((counts[:, self.columns] - self.means) / self.units).clip(-self.farthest, self.farthest)


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
        features = self._groups.of(texts)
        mean, squares = np.zeros(len(texts)), np.zeros(len(texts))
        for process, share in zip(self._processes, self._shares, strict=True):
            of_one, deviation = process.predict_others(features[: process.num_groups])
            mean += share * of_one
            squares += share * (of_one**2 + deviation**2 + max(process.noise, LEAST_NOISE))
        return mean, np.sqrt(squares - mean**2)
