"""Find strays: labels far from what all other labels predict, such as failed measurements, which should be checked.

n labels of a pool's N texts, m of them set apart; costs are above 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nasrlm.adaptation.averaged_process import AveragedProcess
from nasrlm.adaptation.label_scales import Standardised
from nasrlm.adaptation.pool import Pool, scaled_labels
from nasrlm.arrays import BoolArray, FloatArray
from nasrlm.objective import Objective

FEWEST, MOST = 6, 300  # labels: with fewer, strays cannot be found; among more, one does little harm
ONE_IN, MOST_STRAYS = 5, 8  # one in five labels may stray, at least one and at most eight
FAR = 8.0  # a stray's error, in units of the usual error
LEAST_RATIO = 2.0  # of a stray cost and its predicted value, or the reverse
LEAST_DIFFERENCE = 10.0  # between a stray accuracy and its predicted value, in percent
LEAST_GAP = 20.0  # ratio between labels in different units
SMALL_SHARE = 0.05  # of all labels; a group up to this size, or up to the number that may stray, is no unit of its own


def stray_labels(pool: Pool, objective: str, rows: NDArray[np.intp], labels: FloatArray) -> Mapping[int, float]:
    """Find labels ``FAR`` from their prediction by all others, if leaving them out improves the others' predictions.

    Strays may hide each other. So first as many labels as may stray are set apart, one at a time, always the one
    farthest from its prediction by the remaining ones. Then those that are not far from their prediction by the kept
    ones are put back, until all that are apart are far.

    NOTE: a stray may still be a correct label (docs/log.md, 2026-11-27).

    Args:
        pool: N texts.
        objective: name of the labels' objective. Costs are compared by ratios, accuracies by differences.
        rows: (n,) indices of labelled texts, each once.
        labels: (n,) their labels; costs are above 0.

    Returns:
        The predicted value for each stray, by its index among the n labels.

    Cost: some 10 ms for fifty labels, half a second for 300.
    """
    if not FEWEST <= len(rows) <= MOST:
        return {}
    pool = pool.to_learn(objective)
    logarithmic = not Objective.parse(objective).is_accuracy
    values, kept = scaled_labels(labels, logarithmic), np.ones(len(rows), dtype=np.bool_)
    least = math.log(LEAST_RATIO) if logarithmic else LEAST_DIFFERENCE
    _, errors = _left_out(pool, objective, rows, values)
    among_kept = errors
    for number in range(_most_strays(len(rows))):
        if number:
            _, among_kept = _left_out(pool, objective, rows[kept], values[kept])
        kept[np.flatnonzero(kept)[np.abs(among_kept).argmax()]] = False
    while not kept.all():
        apart = np.flatnonzero(~kept)
        expected, usual, foreseen = _expected(pool, objective, rows, values, kept)
        off = np.abs(values[apart] - expected)
        is_far = (off >= FAR * usual) & (off >= least)
        if is_far.all():
            better = foreseen < _size(errors[kept])
            labels_expected = np.exp(expected) if logarithmic else expected
            return dict(zip(apart.tolist(), labels_expected.tolist(), strict=True)) if better else {}
        kept[apart[~is_far]] = True
    return {}


def groups_of_labels(labels: FloatArray) -> tuple[tuple[int, float], tuple[int, float]] | None:
    """Find (n,) costs that seem to be in two units, such as seconds and milliseconds: two groups far apart.

    Returns:
        Number and largest of the labels below the gap, number and smallest of those above it; None if there is no such
        gap, or if one group is so small that its labels may be strays. For 29 published costs of NAS-Bench-201, at most
        2 of ten random labels, 3 of twenty, 4 of fifty and 8 of two hundred lie beyond a gap.
    """
    ordered = np.sort(labels[labels > 0])
    ratios = ordered[1:] / ordered[:-1]
    for gap in np.argsort(-ratios, kind="stable").tolist():
        below, above = gap + 1, len(ordered) - gap - 1
        if ratios[gap] < LEAST_GAP:
            break
        if min(below, above) > max(_most_strays(len(ordered)), SMALL_SHARE * len(ordered)):
            return (below, float(ordered[gap])), (above, float(ordered[gap + 1]))
    return None


def _most_strays(count: int) -> int:
    """Return how many of ``count`` labels may stray."""
    return min(max(count // ONE_IN, 1), MOST_STRAYS)


def _expected(
    pool: Pool, objective: str, rows: NDArray[np.intp], values: FloatArray, kept: BoolArray
) -> tuple[FloatArray, FloatArray, float]:
    """Predict the m labels that are apart from the kept ones.

    Returns:
        (m,) predicted values, (m,) usual errors of a label, and the root mean square of the kept labels' leave-one-out
        errors.
    """
    process, left_out = _left_out(pool, objective, rows[kept], values[kept])
    apart, scale, foreseen = rows[~kept], Standardised.of(values[kept]), _size(left_out)
    mean, deviation = process.predict(pool.inputs[apart], pool.followed[apart])
    return scale.backward(mean), np.maximum(foreseen, scale.deviation * deviation), foreseen


def _left_out(
    pool: Pool, objective: str, rows: NDArray[np.intp], values: FloatArray
) -> tuple[AveragedProcess, FloatArray]:
    """Fit a process to labels, and return it with the (n,) leave-one-out errors."""
    scale = Standardised.of(values)
    process = pool.process_of(objective, rows, scale.forward(values))
    return process, scale.deviation * process.left_out()[0]


def _size(errors: FloatArray) -> float:
    return math.sqrt(float((errors**2).mean()))
