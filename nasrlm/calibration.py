"""Calibrate quantiles: adjust levels so that a share q of the labels of valid rows is below the q-quantile.

For every valid row the model's cumulative probability of the label is known exactly. These scores are uniform if the
model is calibrated; if not, their conformal distribution gives the level to use instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np

from nasrlm.arrays import FloatArray

LEVELS = np.arange(1, 100) / 100  # levels for which the calibrated level is stored
MIN_TEXTS = 9  # with fewer, an 80 % interval has no finite bounds

# By objective: the model's level for every level of LEVELS; empty if it has too few valid rows.
Calibration = Mapping[str, Sequence[float]]


def fit_calibration(
    scores: Mapping[str, FloatArray], texts: Mapping[str, Sequence[str]] | None = None
) -> dict[str, list[float]]:
    """Compute calibrated levels for every objective with valid labels of at least ``MIN_TEXTS`` different texts.

    N rows determine the levels from 1 / (N + 1) to N / (N + 1). Beyond those the model's own level is kept, or the most
    extreme score if that is farther out.

    Args:
        scores: by objective, (N,) cumulative probabilities of labels; NaN where a row has none.
        texts: by objective, the N texts of these labels; None if all are different.

    Source:
        Chernozhukov, Wüthrich, Zhu 2021, "Distributional conformal prediction".
    """
    from crepes import ConformalPredictiveSystem  # here: takes a second, and only training needs it

    middle = len(LEVELS) // 2
    calibration: dict[str, list[float]] = {}
    for name, column in scores.items():
        known = column[np.isfinite(column)]
        if (len(known) if texts is None else num_texts(texts[name], column)) < MIN_TEXTS:
            continue
        system = ConformalPredictiveSystem().fit(known)
        with warnings.catch_warnings(action="ignore"):  # warns of levels beyond the bounds
            levels = system.predict_percentiles(
                [0.0],
                lower_percentiles=list(100 * LEVELS[:middle]),
                higher_percentiles=list(100 * LEVELS[middle:]),
            )[0]
        levels = np.where(levels == -np.inf, np.minimum(LEVELS, known.min()), levels)
        levels = np.where(levels == np.inf, np.maximum(LEVELS, known.max()), levels)
        calibration[name] = [round(float(level), 6) for level in levels]
    return calibration


def num_texts(texts: Sequence[str], values: FloatArray) -> int:
    """Count the different texts among N that have a finite value."""
    return len(set(compress(texts, np.isfinite(values))))


def read_calibration(stored: object) -> Calibration:
    """Check a stored calibration and return it.

    Raises:
        ValueError: an objective has neither no level nor one for every level of LEVELS, in [0, 1] and not descending.
    """
    if not isinstance(stored, dict):
        raise ValueError(f"calibration: expected levels by objective, got {type(stored).__name__}.")
    for name, levels in stored.items():
        known = isinstance(levels, list) and all(isinstance(level, int | float) and 0 <= level <= 1 for level in levels)
        if not known or len(levels) not in (0, len(LEVELS)) or levels != sorted(levels):
            wanted = f"{len(LEVELS)} non-decreasing levels in [0, 1]"
            raise ValueError(f"calibration of {name}: expected {wanted}, got {str(levels)[:40]}.")
    return stored


def calibrated_levels(
    calibration: Calibration, objectives: Sequence[str], quantiles: Sequence[float] | FloatArray
) -> FloatArray:
    """Return the levels at which the model's quantiles are the calibrated ones.

    Args:
        calibration: by objective.
        objectives: M names.
        quantiles: (Q,) levels, or an array of another shape, which the result then has in place of Q.

    Returns:
        (M, Q) levels; for an objective without calibration, ``quantiles`` themselves.
    """
    grid = [0.0, *LEVELS, 1.0]
    rows = [np.interp(quantiles, grid, [0.0, *(calibration.get(name) or LEVELS), 1.0]) for name in objectives]
    return np.array(rows)
