"""Standard deviations of labels, and of normal distributions with a given coverage."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from nasrlm.arrays import FloatArray

SMALLEST_DEVIATION = 1e-7  # share of the largest label; labels that deviate by less are equal in 32 bits
COVERED = 0.8  # coverage of the usual interval, from the 0.1 to the 0.9 quantile


def deviation_covering(distance: float) -> float:
    """Return the standard deviation of a normal distribution whose 80 % interval reaches ``distance`` from its mean."""
    return distance / NormalDist().inv_cdf((1 + COVERED) / 2)


def deviation_of(
    values: FloatArray, of_equal: float = 1.0, rounding: float = SMALLEST_DEVIATION, *, logarithmic: bool = False
) -> float:
    """Return the standard deviation of labels.

    Args:
        values: labels, or their logarithms.
        of_equal: the result if they are equal.
        rounding: share of the largest label; labels whose deviation is at most that count as equal.
        logarithmic: whether values are logarithms, whose deviation is a share of the labels in any unit.
    """
    deviation, largest = float(values.std()), 1.0 if logarithmic else float(np.abs(values).max())
    return deviation if deviation > rounding * largest else of_equal
