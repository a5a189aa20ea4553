"""Labels of texts that stand in several rows: copies of a row, or networks that were measured again and again.

N rows of n different texts, M objectives.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from nasrlm.arrays import FloatArray


def mean_labels(texts: Sequence[Hashable], labels: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """One row for each different text.

    Args:
        texts: N texts, or what tells one from others.
        labels: (N, M), NaN where a row has no label.

    Returns:
        (n,) the first row of each text, ascending, and (n, M) means of its labels, NaN where it has none. That of
        equal labels is the label, to the last bit.
    """
    places, known = places_of(texts), np.isfinite(labels)
    lowest = np.full((places.max(initial=-1) + 1, labels.shape[1]), np.inf)
    np.minimum.at(lowest, places, np.where(known, labels, np.inf))
    above, counts = np.zeros((2, *lowest.shape))
    np.add.at(above, places, np.where(known, labels - lowest[places], 0.0))
    np.add.at(counts, places, known)
    lowest[counts == 0] = np.nan
    return first_rows(texts), lowest + above / np.maximum(counts, 1)


def deviations_of_one(texts: Sequence[Hashable], labels: FloatArray) -> FloatArray:
    """(n,) by how much one more label of each text deviates, as far as the mean of those that it has does not.

    Of k labels that deviate by s it is s √(1 - 1/k). All texts have one s, which repeated labels tell; without any, 0.

    Args:
        texts: N texts, or what tells one from others.
        labels: (N,) on a scale on which they deviate alike, NaN where there is none.
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
    """(n,) the first row of each text, ascending."""
    first_of = {text: row for row, text in reversed([*enumerate(texts)])}
    return np.array(sorted(first_of.values()), dtype=np.intp)


def first_of_each(texts: Sequence[Hashable]) -> NDArray[np.intp]:
    """(N,) the first row that has each row's text."""
    return first_rows(texts)[places_of(texts)]


def places_of(texts: Sequence[Hashable]) -> NDArray[np.intp]:
    """(N,) the number of each row's text, in the order in which these come first."""
    place_of = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return np.array([place_of[text] for text in texts], dtype=np.intp)
