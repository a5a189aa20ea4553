"""Standard deviations of labels, and of normal distributions that cover them."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from nasrlm.arrays import FloatArray

SMALLEST_DEVIATION = 1e-7  # of the largest label: labels that deviate by less, as 32 bits hold them, are equal
COVERED = 0.8  # of labels by the intervals that are told, 0.1 to 0.9


def deviation_covering(distance: float) -> float:
    """Standard deviation of a normal distribution whose 80 % interval reaches ``distance`` from its mean."""
    return distance / NormalDist().inv_cdf((1 + COVERED) / 2)


def deviation_of(values: FloatArray, of_equal: float = 1.0, rounding: float = SMALLEST_DEVIATION) -> float:
    """Standard deviation of labels; ``of_equal`` where they are equal but for ``rounding``, a share of the largest."""
    deviation = float(values.std())
    return deviation if deviation > rounding * np.abs(values).max() else of_equal
