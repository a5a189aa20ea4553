"""Find labels to check again, such as failed measurements: those far from what all other labels tell.

n labels of a pool's texts; costs are above 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nasrlm.adaptation.averaged_process import AveragedProcess
from nasrlm.adaptation.group_process import Standardised
from nasrlm.adaptation.pool import Pool, scaled_labels
from nasrlm.arrays import BoolArray, FloatArray

FEWEST, MOST = 6, 300  # labels that tell of one that it strays; among more one does little
ONE_IN, MOST_STRAYS = 5, 8  # labels may stray, one of fewer, and so many at most
FAR = 8.0  # times as far as others are from what is expected of them
LEAST_RATIO = 2.0  # to what is expected of a cost
LEAST_DIFFERENCE = 10.0  # from what is expected of an accuracy, in percent
LEAST_GAP = 20.0  # ratio of labels in different units
SMALL_SHARE = 0.05  # of the labels, beside those that may stray


def stray_labels(
    pool: Pool, rows: NDArray[np.intp], labels: FloatArray, *, logarithmic: bool = True
) -> Mapping[int, float]:
    """Find labels that are ``FAR`` from what all others expect, if the others foretell each other better without them.

    Strays may hide each other. So as many as may stray are set apart first, one at a time, always the one that is
    farthest from what those left expect. Then those that are not far from what the kept ones expect go back, until all
    that are apart are far.

    NOTE: they may be right (docs/log.md, 2026-11-27).

    Args:
        pool: N texts.
        rows: (n,) of the N texts, each once.
        labels: (n,) theirs.
        logarithmic: whether these are costs above 0, told by their ratios; accuracies are by their differences.

    Returns:
        What is expected in place of each stray, by its place among the n labels.

    Cost: some 10 ms for fifty labels, half a second for 300.
    """
    if not FEWEST <= len(rows) <= MOST:
        return {}
    values, kept = scaled_labels(labels, logarithmic), np.ones(len(rows), dtype=np.bool_)
    least = math.log(LEAST_RATIO) if logarithmic else LEAST_DIFFERENCE
    _, errors = _left_out(pool, rows, values)
    among_kept = errors
    for number in range(_most_strays(len(rows))):
        if number:
            _, among_kept = _left_out(pool, rows[kept], values[kept])
        kept[np.flatnonzero(kept)[np.abs(among_kept).argmax()]] = False
    while not kept.all():
        apart = np.flatnonzero(~kept)
        expected, usual, foreseen = _expected(pool, rows, values, kept)
        off = np.abs(values[apart] - expected)
        is_far = (off >= FAR * usual) & (off >= least)
        if is_far.all():
            better = foreseen < _size(errors[kept])
            labels_expected = np.exp(expected) if logarithmic else expected
            return dict(zip(apart.tolist(), labels_expected.tolist(), strict=True)) if better else {}
        kept[apart[~is_far]] = True
    return {}


def groups_of_labels(labels: FloatArray) -> tuple[tuple[int, float], tuple[int, float]] | None:
    """Find labels in two units, as of measurements in seconds and in milliseconds: (n,) costs in two groups far apart.

    Returns:
        How many are below the gap and the largest of these, how many are above and the smallest; None without such a
        gap, or where one group is so small that its labels may stray. Of 29 published costs of NAS-Bench-201 at most
        2 of ten random labels, 3 of twenty, 4 of fifty and 8 of two hundred lie beyond one.
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
    """Return how many of so many labels may stray."""
    return min(max(count // ONE_IN, 1), MOST_STRAYS)


def _expected(
    pool: Pool, rows: NDArray[np.intp], values: FloatArray, kept: BoolArray
) -> tuple[FloatArray, FloatArray, float]:
    """Predict the m labels that are apart from the kept ones.

    Returns:
        (m,) expected values, (m,) how far off a label usually is, and how far kept labels are from what the other kept
        ones expect (root mean square).
    """
    process, left_out = _left_out(pool, rows[kept], values[kept])
    apart, scale, foreseen = rows[~kept], Standardised.of(values[kept]), _size(left_out)
    mean, deviation = process.predict(pool.inputs[apart], pool.followed[apart])
    return scale.backward(mean), np.maximum(foreseen, scale.deviation * deviation), foreseen


def _left_out(pool: Pool, rows: NDArray[np.intp], values: FloatArray) -> tuple[AveragedProcess, FloatArray]:
    """Fit a process to labels; also (n,) each label less what the others expect of it."""
    scale = Standardised.of(values)
    process = pool.process_of(rows, scale.forward(values))
    return process, scale.deviation * process.left_out()[0]


def _size(errors: FloatArray) -> float:
    return math.sqrt(float((errors**2).mean()))
