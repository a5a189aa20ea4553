"""What is counted in texts, as groups of features: walks, rows, places and sizes; see ``nasrlm.text.counts``.

N texts, F features of a group, C counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from converters.engines import in_chunks
from nasrlm.arrays import FloatArray, units_of
from nasrlm.model.readout import HASHED, NAMES
from nasrlm.text.counts import NUM_LOG_SIZES, PARTS, counts_and_sizes
from studies.surrogates.memory import digest_of

# For each of PARTS, and for sizes; NAMES[0] are the encoder's states.
STANDARDISED = (*[name not in HASHED for name in NAMES[1:]], True)
FARTHEST = 5.0  # standard deviations from the pool's mean to which a standardised feature is clipped

_Counted = tuple[NDArray[np.float16], FloatArray]  # counts of a text, and the logarithms of its sizes


class TextParts:
    """Groups of features of texts, each with variance of about 1 over a pool of texts.

    There is one for each of ``PARTS``, then one of ``log_sizes``; without those that are constant in the pool, as all
    are if texts are not canonical ONNX.

    Args:
        pool: texts of the space.
        progress: show a bar on stderr while the pool is counted.

    Attributes:
        of_sizes: indices of groups that are about sizes; linear kernels on them extrapolate.
    """

    def __init__(self, pool: Sequence[str], *, progress: bool = False) -> None:
        self._counted: dict[bytes, _Counted] = {}  # by digest; 4 KB per text
        counts, borders = self._counts(pool, progress=progress), np.cumsum([0, *PARTS, NUM_LOG_SIZES])
        parts = [
            _Part.of(counts, slice(*part), standardised)
            for part, standardised in zip(pairwise(borders), STANDARDISED, strict=True)
        ]
        kept = [number for number, part in enumerate(parts) if part.columns.size]
        self._parts = [parts[number] for number in kept]
        self.of_sizes = tuple(place for place, number in enumerate(kept) if number >= len(parts) - 2)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the cached counts out of copies."""
        return vars(self) | {"_counted": {}}

    def of(self, texts: Sequence[str]) -> list[FloatArray]:
        """Return the (N, F) features of each group."""
        counts = self._counts(texts)
        return [part.features(counts) for part in self._parts]

    def _counts(self, texts: Sequence[str], *, progress: bool = False) -> FloatArray:
        """Return the (N, C) counts of texts, the logarithms of their sizes last; cached."""
        digests = list(map(digest_of, texts))
        new = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in self._counted}
        counted = in_chunks(_count, list(new.values()), "count", unit="text", progress=progress)
        self._counted |= zip(new, counted, strict=True)
        counts = np.empty((len(texts), sum(PARTS) + NUM_LOG_SIZES))
        for row, digest in zip(counts, digests, strict=True):
            row[: sum(PARTS)], row[sum(PARTS) :] = self._counted[digest]
        return counts


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
        means, deviations = counts[:, columns].mean(axis=0), units_of(counts[:, columns])
        differ = np.isfinite(deviations)
        deviations[~differ] = 0.0
        typical = np.full(len(deviations), np.sqrt((deviations**2).mean()))
        kept = differ if standardised else np.full(len(deviations), differ.any())
        units, farthest = (deviations, FARTHEST) if standardised else (typical, np.inf)
        return cls(columns.start + np.flatnonzero(kept), means[kept], units[kept], farthest)

    def features(self, counts: FloatArray) -> FloatArray:
        """Return the (N, F) features of (N, C) counts."""
        return ((counts[:, self.columns] - self.means) / self.units).clip(-self.farthest, self.farthest)


def _count(texts: Sequence[str]) -> list[_Counted]:
    counts, sizes = counts_and_sizes(texts)
    return list(zip(counts.astype(np.float16), sizes, strict=True))
