"""Checks of the labels that a checkpoint is adapted to: errors for those that cannot be learned, warnings for odd ones.

N texts, n labels.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized

import numpy as np
from numpy.typing import NDArray

from nasrlm.adaptation.pool import Pool
from nasrlm.adaptation.repeated_labels import one_a_text
from nasrlm.adaptation.stray_labels import groups_of_labels, stray_labels
from nasrlm.arguments import has_order, items_of
from nasrlm.arrays import FloatArray
from nasrlm.callers import warn_caller
from nasrlm.objective import MAX_LABEL, Objective

MOST_LABELS = 8000  # these take four gigabytes and minutes; the time grows with the cube of their number
SEEM_FRACTIONS = "adapt: expected percent, 0 to 100,"  # start of a warning


def labelled_rows(pool: Pool, objective: str, labels: FloatArray, names: Sequence[str] | None) -> NDArray[np.intp]:
    """Return the (n,) rows of a pool that have labels.

    Raises:
        ValueError: labels cannot be learned, or there are not as many names as texts.
    """
    if names is not None and not (isinstance(names, Sized) and has_order(names)):
        raise ValueError(f"adapt: expected one name per text, got {type(names).__name__}.")
    if names is not None and len(names) != len(pool.texts):
        raise ValueError(f"adapt: expected one name per text ({len(pool.texts):,}), got {len(names):,}.")
    if labels.shape != (len(pool.texts),) or np.isinf(labels).any():
        raise ValueError(
            f"adapt: expected {len(pool.texts):,} finite labels of {objective}, NaN where there is none, got an array "
            f"of shape {labels.shape}{' with infinite ones' if np.isinf(labels).any() else ''}."
        )
    known = np.flatnonzero(np.isfinite(labels))
    if not 2 <= len(known) <= MOST_LABELS:
        advice = " Leave some out, or train a separate model." if len(known) > MOST_LABELS else ""
        raise ValueError(f"adapt: expected 2 to {MOST_LABELS:,} labels of {objective}, got {len(known):,}.{advice}")
    check_sizes(objective, labels[known])
    wanted = Objective.parse(objective)
    beyond = labels[known][~wanted.allows(labels[known])]
    if len(beyond):
        raise ValueError(
            f"adapt: expected {wanted.range_in_words} as labels of {objective}, got {beyond[0]:g}. Give NaN where "
            "there is none, or rename the objective."
        )
    if len({pool.texts[row] for row in known.tolist()}) < 2:
        raise ValueError(
            f"adapt: expected labels of {objective} for different texts, got {len(known):,} for a single text."
        )
    return known


def check_sizes(objective: str, labels: FloatArray, fewest: int | None = None) -> None:
    """Check the sizes of labels before anything is computed from them.

    Args:
        objective: of the labels, for the message.
        labels: (n,), NaN where there is none.
        fewest: number of labels that will be learned, if they are not chosen yet; then so many must be small enough.

    Raises:
        ValueError: labels are too large to be learned.
    """
    sizes = np.abs(labels[np.isfinite(labels)])
    if np.count_nonzero(sizes <= MAX_LABEL) < (len(sizes) if fewest is None else min(fewest, len(sizes))):
        raise ValueError(f"adapt: expected labels of {objective} up to {MAX_LABEL:g}, got {sizes.max():g}.")


def warn_of_labels(objective: str, labels: FloatArray) -> None:
    """Warn if labels are all equal, accuracies look like fractions, or costs are 0 or seem to be in two units."""
    if labels.min() == labels.max():
        warn_caller(
            f"adapt: expected labels of {objective} that differ, got {len(labels):,} times {labels[0]:g}: no ranking "
            "can be learned."
        )
    wanted = Objective.parse(objective)
    if wanted.seems_fraction(largest := labels.max()):
        warn_caller(
            f"{SEEM_FRACTIONS} as labels of {objective}, got none above {largest:g}. If they are fractions, multiply "
            "them by 100."
        )
    if wanted.is_accuracy:
        return
    if labels.min() == 0 < labels.max():
        warn_caller(
            f"adapt: expected labels of {objective} above 0, got {np.count_nonzero(labels == 0)} of 0: ratios cannot "
            "be learned from them, and other values are predicted less accurately. Leave out failed measurements."
        )
    if groups := groups_of_labels(labels):
        (few, below), (more, above) = groups
        warn_caller(
            f"adapt: expected labels of {objective} in one unit, got {few:,} up to {below:.4g} and {more:,} from "
            f"{above:.4g}, with none between. They are learned unchanged."
        )


def warn_of_strays(
    pool: Pool, objective: str, rows: NDArray[np.intp], labels: FloatArray, names: Sequence[str] | None, what: str
) -> NDArray[np.intp]:
    """Warn of the (n,) labels far from what all others predict, see ``stray_labels``, and return their texts' rows.

    Labels of equal texts are averaged. There are no strays if costs are 0 or in two units. ``what`` becomes of strays
    is told in words.
    """
    if not Objective.parse(objective).is_accuracy and (labels.min() <= 0 or groups_of_labels(labels)):
        return rows[:0]
    rows, labels = one_a_text(rows, labels)
    listed = None if names is None else items_of(names)  # a pandas Series would be indexed by its labels
    strays = stray_labels(pool, objective, rows, labels)
    for place, expected in strays.items():
        name = f"text {rows[place]}" if listed is None else listed[rows[place]]
        warn_caller(
            f"adapt: expected about {expected:.4g} for {objective} of {name}, given the other labels, got "
            f"{labels[place]:.4g}. It is {what}."
        )
    return rows[list(strays)]


def without_strays(pool: Pool, objective: str, labels: FloatArray, *, names: Sequence[str] | None = None) -> FloatArray:
    """Return labels for ``adapt`` without strays: those far from what all others predict, see ``stray_labels``.

    Args:
        pool: N texts.
        objective: ``metric_unit@context``.
        labels: (N,) in the objective's unit, NaN where a text has none.
        names: of the N texts, for warnings; if None, warnings give their indices.

    Returns:
        (N,) labels, NaN where a text has none or a stray.

    Warns:
        UserWarning: for each label that is left out.

    Raises:
        ValueError: labels that ``adapt`` would refuse.
    """
    known = labelled_rows(pool, objective, labels, names)
    strays = warn_of_strays(pool, objective, known, labels[known], names, "left out")
    texts = {pool.texts[row] for row in strays}
    return np.where([text in texts for text in pool.texts], np.nan, labels)
