"""A cost as the sum of what the rows of a network's text cost, learned from labels by ridge regression.

A row is an operator with its attributes and its place in the network (``nasrlm.text.row_counts``). On a device that
runs one operator after another, the time of each is independent of the others. A few hundred labels determine these
times; the sum is then exact, while a Gaussian process, which compares texts with labelled ones, is only approximate.

n labelled texts, N texts, R rows, K sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasrlm.arrays import FloatArray
from nasrlm.text.row_counts import WHOLE, RowCounts

MOST_ROWS = 2048  # spaces have up to 600; with more, a fit to thousands of labels would take a minute
STRENGTHS = np.logspace(-7, 1, 9)  # of the ridge penalty, in units of the rows' variance


@dataclass(frozen=True)
class RowSum:
    """The costs of rows.

    Attributes:
        rows: (R,) numbers of the rows that labelled texts have, ascending; ``WHOLE`` is among them.
        costs: (R, 2) cost of a row, and the part that each pixel of the input adds; in the labels' unit, or its
            reciprocal if ``is_rate``.
        is_rate: whether labels are reciprocals of sums, as throughputs are.
    """

    rows: NDArray[np.int64]
    costs: FloatArray
    is_rate: bool = False

    @classmethod
    def fit(
        cls, counts: Sequence[RowCounts], labels: FloatArray, is_rate: bool = False
    ) -> tuple[RowSum, FloatArray] | None:
        """Fit the costs of rows by ridge regression, with the strength that has the least leave-one-out error.

        Args:
            counts: row counts of n texts.
            labels: (n,) of these texts, above 0.
            is_rate: whether the reciprocals of labels are sums.

        Returns:
            The sum, and (n,) leave-one-out predictions of the labels, NaN where these are not above 0. None if all
            texts have the same rows, if the labels do not determine the costs because about as many rows vary
            independently as there are labels, or if there are more than ``MOST_ROWS`` rows.
        """
        added = 1 / labels if is_rate else labels
        rows = np.array(sorted({row for text in counts for row in text.by_row}), dtype=np.int64)
        pixels = np.array([text.num_pixels for text in counts])
        by_pixels = bool(np.ptp(pixels))  # otherwise labels do not determine costs per pixel
        if len(rows) * (1 + by_pixels) > MOST_ROWS:
            return None
        table = np.array([[text.by_row.get(row, 0.0) for row in rows.tolist()] for text in counts])
        if by_pixels:
            table = np.concatenate([table, table * pixels[:, None]], axis=1)
        fitted = _ridge(table, added)
        if fitted is None:
            return None
        costs, constant, left_out = fitted
        of_rows = np.zeros((len(rows), 2))
        of_rows[:, : 1 + by_pixels] = costs.reshape(-1, len(rows)).T
        of_rows[rows == WHOLE, 0] = constant
        found = cls(rows, of_rows, is_rate)
        return found, found._labels_of(left_out)

    def of(self, counts: Sequence[RowCounts]) -> FloatArray:
        """Return (N,) predicted labels; NaN for texts with an unknown row, or where predictions are not above 0."""
        return labels_of([self], counts)[:, 0]

    def _labels_of(self, sums: FloatArray) -> FloatArray:
        costs = np.where(sums > 0, sums, np.nan)
        return 1 / costs if self.is_rate else costs


def _ridge(table: FloatArray, targets: FloatArray) -> tuple[FloatArray, float, FloatArray] | None:
    """Fit a linear function of (n, F) features by ridge regression, with the strength of least leave-one-out error.

    Returns coefficients, the constant, and leave-one-out predictions; None if no feature varies, if about as many vary
    independently as there are targets, or if the squares of targets overflow.
    """
    means, deviations = table.mean(axis=0), table.std(axis=0)
    varies = deviations > 0
    if not varies.any():
        return None
    scale = np.divide(1.0, deviations, out=np.zeros_like(means), where=varies)
    left, sizes, right = np.linalg.svd((table - means) * scale, full_matrices=False)
    if np.count_nonzero(sizes > 1e-9 * sizes[0]) >= len(targets) - 1:
        return None
    centre = targets.mean()
    along, least = left.T @ (targets - centre), np.inf
    for strength in STRENGTHS * np.count_nonzero(varies):
        kept = sizes**2 / (sizes**2 + strength)
        alone = 1 - 1 / len(targets) - left**2 @ kept
        errors = (targets - centre - left @ (kept * along)) / np.maximum(alone, 1e-9)
        with np.errstate(over="ignore"):
            squares = float(errors @ errors)
        if squares < least:
            coefficients = scale * (right.T @ (sizes / (sizes**2 + strength) * along))
            least, left_out = squares, targets - errors
    if not np.isfinite(least):
        return None
    return coefficients, float(centre - means @ coefficients), left_out


def labels_of(sums: Sequence[RowSum], counts: Sequence[RowCounts]) -> FloatArray:
    """Return (N, K) predictions of K sums, as ``RowSum.of``; sums with the same rows are computed together."""
    labels = np.empty((len(counts), len(sums)))
    alike = defaultdict[tuple[int, ...], list[int]](list)
    for column, each in enumerate(sums):
        alike[tuple(each.rows.tolist())].append(column)
    for rows, columns in alike.items():
        added = _added(rows, np.stack([sums[column].costs for column in columns], axis=1), counts)
        for column, costs in zip(columns, added.T, strict=True):
            labels[:, column] = sums[column]._labels_of(costs)
    return labels


def _added(rows: Sequence[int], costs: FloatArray, counts: Sequence[RowCounts]) -> FloatArray:
    """Return (N, K) sums of (R, K, 2) costs; NaN for texts with a row that is not among ``rows``."""
    place_of = {row: place for place, row in enumerate(rows)}
    sums = np.full((len(counts), costs.shape[1]), np.nan)
    for index, text in enumerate(counts):
        if text.by_row.keys() <= place_of.keys():
            times = np.fromiter(text.by_row.values(), dtype=np.float64)
            of_rows = costs[[place_of[row] for row in text.by_row]]
            sums[index] = np.tensordot(times, of_rows, axes=1) @ [1.0, text.num_pixels]
    return sums
