"""What real results tell about networks that are met one after another, by what is said of their texts.

An objective that the predictor does not know is learned with a Gaussian process of groups of features: what the
predictor says of a text, and what the text says of its network, see ``nasrlm.text.counts``. Where the predictor does
not know the space either, the latter tells nearly all.

N texts, S samples, F features of a group, C counts.
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
from nasrlm.adaptation.readout_fit import HASHED
from nasrlm.arrays import FloatArray
from nasrlm.model.readout import NAMES
from nasrlm.text.counts import PARTS, text_counts
from studies.surrogates.corrected_predictor import LearnedObjective
from studies.surrogates.memory import digest_of
from studies.surrogates.scale import LearningScale, Scale

STANDARDISED = tuple(name not in HASHED for name in NAMES[1:])  # of PARTS; the first of NAMES are the encoder's states
LEAST_NOISE = 0.01  # of the results' variance: a few equal ones do not tell how much others differ
FARTHEST = 5.0  # deviations from the pool's mean that a standardised feature may lie away


class TextGroups:
    """Features of texts, in groups of variance about 1 over a pool of them.

    Args:
        predicted: texts to (N, F) what a predictor says of them, standardised.
        pool: texts of the space.

    Attributes:
        linear: groups that labels may follow in proportion: predictions, and sizes, the last.
    """

    def __init__(self, predicted: Callable[[Sequence[str]], FloatArray], pool: Sequence[str]) -> None:
        self._predicted = predicted
        self._counted: dict[bytes, NDArray[np.float16]] = {}  # by digest: 4 KB a text
        counts, borders = self._counts(pool), np.cumsum([0, *PARTS])
        parts = [
            _Part.of(counts, slice(*part), standardised)
            for part, standardised in zip(pairwise(borders), STANDARDISED, strict=True)
        ]
        self._parts = [part for part in parts if part.columns.size]  # none where texts are no ONNX
        self.linear = (0, len(self._parts)) if self._parts else (0,)

    def __getstate__(self) -> dict[str, Any]:
        """State without the counts, so that a copy counts anew."""
        return vars(self) | {"_counted": {}}

    def of(self, texts: Sequence[str]) -> list[FloatArray]:
        """(N, F) of each group, predictions first."""
        counts = self._counts(texts)
        return [self._predicted(texts), *[part.features(counts) for part in self._parts]]

    def _counts(self, texts: Sequence[str]) -> FloatArray:
        """(N, C); a text is counted once."""
        digests = list(map(digest_of, texts))
        new = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in self._counted}
        self._counted |= zip(new, text_counts(list(new.values())).astype(np.float16), strict=True)
        counted = [self._counted[digest] for digest in digests]
        return np.array(counted, dtype=np.float64).reshape(len(texts), sum(PARTS))


@dataclass(frozen=True)
class _Part:
    """Counts that make a group of features.

    Attributes:
        columns: (F,) of the counts: those that differ among the texts of a pool, or all where each may.
        means: (F,) over the pool.
        units: (F,) what a feature is measured in: its own deviation there, or a typical one.
        farthest: from the mean that a feature may lie, in units.
    """

    columns: NDArray[np.intp]
    means: FloatArray
    units: FloatArray
    farthest: float

    @classmethod
    def of(cls, counts: FloatArray, columns: slice, standardised: bool) -> _Part:
        """By (N, C) counts of a pool; without columns where none differs."""
        means, deviations = counts[:, columns].mean(axis=0), counts[:, columns].std(axis=0)
        differ = deviations > 0
        typical = np.full(len(deviations), np.sqrt((deviations**2).mean()))
        kept = differ if standardised else np.full(len(deviations), differ.any())
        units, farthest = (deviations, FARTHEST) if standardised else (typical, np.inf)
        return cls(columns.start + np.flatnonzero(kept), means[kept], units[kept], farthest)

    def features(self, counts: FloatArray) -> FloatArray:
        """(N, F) of (N, C) counts."""
        return ((counts[:, self.columns] - self.means) / self.units).clip(-self.farthest, self.farthest)


class TextProcess(LearnedObjective):
    """What was learned of one objective.

    Of two processes, one that goes by predictions alone and one that goes by all groups, each counts as it makes the
    results probable: predictions tell most of a space that the predictor knows.

    Args:
        groups: features of texts.
        name: of the objective.
        texts: that have results.
        labels: (N,) of these, own unit.
    """

    def __init__(self, groups: TextGroups, name: str, texts: Sequence[str], labels: FloatArray) -> None:
        self._groups = groups
        self._scale = LearningScale.of(Scale.of(name, labels), labels)
        features, rows = groups.of(texts), np.arange(len(texts))
        self._processes = [
            GroupProcess(features[:count], linear=[group for group in groups.linear if group < count]).fit(
                rows, labels, self._scale
            )
            for count in sorted({1, len(features)})
        ]
        self._shares = softmax([-process.surprise for process in self._processes])

    def quantiles(self, texts: Sequence[str], normal_quantiles: FloatArray) -> FloatArray:
        """(N, Q) labels at quantiles of a standard normal distribution."""
        mean, deviation = self._normal(texts)
        return self._scale.backward(mean[:, None] + deviation[:, None] * normal_quantiles)

    def _normal(self, texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """(N,) means and deviations of the processes' mixture, on the scale of its scores."""
        features = self._groups.of(texts)
        mean, squares = np.zeros(len(texts)), np.zeros(len(texts))
        for process, share in zip(self._processes, self._shares, strict=True):
            of_one, deviation = process.predict_others(features[: process.num_groups])
            mean += share * of_one
            squares += share * (of_one**2 + deviation**2 + max(process.noise, LEAST_NOISE))
        return mean, np.sqrt(squares - mean**2)
