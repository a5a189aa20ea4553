"""What real results tell about networks that are met one after another, by what is said of their texts.

An objective that the predictor does not know is learned with a Gaussian process of groups of features: what the
predictor says of a text, and what the text says of its network, see ``nasrlm.text_counts``. Where the predictor does
not know the space either, the latter tells nearly all.

N texts, S samples, F features of a group, C counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nasrlm.arrays import FloatArray
from nasrlm.group_process import GroupProcess, Standardised
from nasrlm.text_counts import PARTS, text_counts
from studies.scale import Scale

STANDARDISED = (False, False, True, True)  # of PARTS: places and sizes are of many scales
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

    def of(self, texts: Sequence[str]) -> list[FloatArray]:
        """(N, F) of each group, predictions first."""
        counts = self._counts(texts)
        return [self._predicted(texts), *[part.features(counts) for part in self._parts]]

    def _counts(self, texts: Sequence[str]) -> FloatArray:
        """(N, C); a text is counted once."""
        digests = [blake2b(text.encode(), digest_size=16).digest() for text in texts]
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


class TextProcess:
    """What was learned of one objective.

    Args:
        groups: features of texts.
        name: of the objective.
        texts: that have results.
        labels: (N,) of these, own unit.
    """

    def __init__(self, groups: TextGroups, name: str, texts: Sequence[str], labels: FloatArray) -> None:
        self._groups = groups
        self._scale = Scale.of(name, labels)
        scores = self._scale.forward(labels)
        process = GroupProcess(groups.of(texts), linear=groups.linear)
        standardised = Standardised(float(scores.mean()), self._scale.deviation(scores))
        self._process = process.fit(np.arange(len(texts)), scores, standardised)

    def quantiles(self, texts: Sequence[str], normal_quantiles: FloatArray) -> FloatArray:
        """(N, Q) labels at Q quantiles of a standard normal distribution."""
        mean, deviation = self._process.predict_others(self._groups.of(texts))
        deviation = np.sqrt(deviation**2 + max(self._process.noise, LEAST_NOISE))
        scores = mean[:, None] + deviation[:, None] * normal_quantiles
        return self._scale.backward(self._process.scale.backward(scores))

    def sample(self, texts: Sequence[str], samples: int, rng: np.random.Generator) -> FloatArray:
        """(N, S) labels, each text's drawn on its own."""
        return self.quantiles(texts, rng.normal(size=(len(texts), samples)))
