"""Labels of texts that occur in several rows: copies of a row, or networks that were measured repeatedly.

N rows with n different texts, M objectives. A text may be any hashable value that identifies a network.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from nasrlm.arrays import FloatArray


def mean_labels(texts: Sequence[Hashable], labels: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Average the labels of equal texts.

    Args:
        texts: N texts.
        labels: (N, M), NaN where a row has no label.

    Returns:
        (n,) the first row of each text, ascending, and (n, M) means of its labels, NaN where it has none. The mean of
        equal labels is that label, to the last bit.
    """
    places, known = places_of(texts), np.isfinite(labels)
    lowest = np.full((places.max(initial=-1) + 1, labels.shape[1]), np.inf)
    np.minimum.at(lowest, places, np.where(known, labels, np.inf))
    above, counts = np.zeros((2, *lowest.shape))
    np.add.at(above, places, np.where(known, labels - lowest[places], 0.0))
    np.add.at(counts, places, known)
    lowest[counts == 0] = np.nan
    return first_rows(texts), lowest + above / np.maximum(counts, 1)


def one_a_text(rows: NDArray[np.intp], labels: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Merge the (N,) labels of texts, given by (N,) indices of texts, to (n,) each: copies of a left-out label would
    reveal it.
    """
    firsts, means = mean_labels(rows.tolist(), labels[:, None])
    return rows[firsts], means[:, 0]


def deviations_of_one(texts: Sequence[Hashable], labels: FloatArray) -> FloatArray:
    """Estimate the noise of one label of each text that a model fitted to the texts' mean labels does not see.

    It is s √(1 - 1/k) for a text with k labels, since their mean keeps a noise of s / √k. The standard deviation s of
    single labels is estimated from repeated labels and shared by all texts; 0 if no text has several.

    Args:
        texts: N texts.
        labels: (N,) on a scale on which all deviate alike, NaN where a row has none.

    Returns:
        (n,) standard deviations.
    """
    places, known = places_of(texts), np.isfinite(labels)
    (_, means), counts = mean_labels(texts, labels[:, None]), np.bincount(places[known], minlength=len(set(texts)))
    repeated = int(known.sum() - np.count_nonzero(counts))
    if not repeated:
        return np.zeros(len(counts))
    variance = float(((labels - means[places, 0])[known] ** 2).sum() / repeated)
    deviations: FloatArray = np.sqrt(variance * (1 - 1 / np.maximum(counts, 1)))
    return deviations


def first_rows(texts: Sequence[Hashable]) -> NDArray[np.intp]:
    """Return (n,) the first row of each text, ascending."""
    _, firsts = np.unique(places_of(texts), return_index=True)
    return firsts


def first_of_each(texts: Sequence[Hashable]) -> NDArray[np.intp]:
    """Return (N,) for each row the first row with the same text."""
    return first_rows(texts)[places_of(texts)]


def places_of(texts: Sequence[Hashable]) -> NDArray[np.intp]:
    """Return (N,) for each row the number of its text, with texts numbered in order of first occurrence."""
    place_of = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return np.array([place_of[text] for text in texts], dtype=np.intp)
