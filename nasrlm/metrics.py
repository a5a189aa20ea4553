"""Metrics of predictions: rank correlation with labels, error, and coverage of intervals. N rows, M objectives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from nasrlm.arrays import FloatArray, to_floats
from nasrlm.prediction import Prediction

MIN_ROWS = 2

# Headers in tables, of space, objective and the metrics of ``Quality``.
COLUMNS = ("space", "objective", "rows", "Kendall τ", "Spearman ρ", "mean absolute error", "80 % interval covers")


class Quality(TypedDict):
    """Metrics of one objective on the rows that have a label of it."""

    n: int
    kendall_tau: float
    spearman_rho: float
    mae: float
    coverage_80: float


def kendall_tau(predicted: ArrayLike, measured: ArrayLike) -> FloatArray | Any:
    """Compute Kendall's rank correlation of each objective, with ties counted (tau-b).

    Args:
        predicted: (N, M) objectives in their own units; (N,) for one objective, which may be a list or a pandas column.
        measured: (N, M) or (N,), matching ``predicted`` by position; rows with NaN are left out for each objective.

    Returns:
        (M,) in [-1, 1], or a float for (N,) inputs; NaN where an objective is constant or has fewer than two rows.

    Raises:
        ValueError: shapes differ, or there is anything but numbers.

    Source:
        Kendall 1945, "The treatment of ties in ranking problems".
    """
    from scipy import stats  # here: takes half a second, and predicting does not need it

    return _columns(predicted, measured, lambda a, b: float(stats.kendalltau(a, b).statistic))


def judged_tau(predicted: FloatArray, measured: FloatArray) -> FloatArray:
    """Compute ``kendall_tau``, but 0 instead of NaN if all predictions are equal while labels differ (collapse)."""
    taus = kendall_tau(predicted, measured)
    for column, labels in enumerate(measured.T):
        known = np.isfinite(labels)
        if known.any() and np.ptp(labels[known]) > 0 and np.ptp(predicted[known, column]) == 0:
            taus[column] = 0.0
    return taus


def tau_of(predicted: FloatArray, measured: FloatArray) -> float:
    """Compute Kendall's τ of one objective from (N,) values, as ``kendall_tau``."""
    return float(kendall_tau(predicted, measured))


def spearman_rho(predicted: ArrayLike, measured: ArrayLike) -> FloatArray | Any:
    """Compute Spearman's rank correlation of each objective; shapes and missing rows as for ``kendall_tau``."""
    from scipy import stats

    return _columns(predicted, measured, lambda a, b: float(stats.spearmanr(a, b).statistic))


def rho_of(predicted: FloatArray, measured: FloatArray) -> float:
    """Compute Spearman's ρ of one objective from (N,) values, as ``spearman_rho``."""
    return float(spearman_rho(predicted, measured))


def quality(prediction: Prediction, measured: FloatArray) -> dict[str, Quality]:
    """Compute the metrics of every objective that has at least two labels.

    Args:
        prediction: quantiles of N rows and M objectives, the outer ones being an 80 % interval.
        measured: (N, M) labels, NaN where there is none.
    """
    result: dict[str, Quality] = {}
    tau = kendall_tau(prediction.median, measured)
    rho = spearman_rho(prediction.median, measured)
    covered = coverage(prediction.low, prediction.high, measured)
    for index, objective in enumerate(prediction.objectives):
        known = np.isfinite(measured[:, index])
        if known.sum() < MIN_ROWS:
            continue
        labels = measured[known, index]
        result[objective] = Quality(
            n=int(known.sum()),
            kendall_tau=float(tau[index]),
            spearman_rho=float(rho[index]),
            mae=float(np.abs(prediction.median[known, index] - labels).mean()),
            coverage_80=float(covered[index]),
        )
    return result


def coverage(low: FloatArray, high: FloatArray, measured: FloatArray) -> FloatArray:
    """Compute (M,) shares of labels that lie within their intervals; NaN for an objective without labels or intervals.

    Args:
        low: (N, M); NaN where there is no interval.
        high: (N, M) likewise.
        measured: (N, M) labels, NaN where there is none.
    """
    known = ~(np.isnan(low) | np.isnan(high)) & np.isfinite(measured)
    inside = known & (low <= measured) & (measured <= high)
    counts = known.sum(axis=0)
    return np.where(counts > 0, inside.sum(axis=0) / np.maximum(counts, 1), np.nan)


def _columns(
    predicted: ArrayLike, measured: ArrayLike, correlation: Callable[[FloatArray, FloatArray], float]
) -> FloatArray | Any:
    predicted, measured = _numbers(predicted), _numbers(measured)
    if predicted.shape != measured.shape or predicted.ndim not in (1, 2):
        raise ValueError(
            f"rank correlation: expected two (N, M) arrays, got {predicted.shape} and {measured.shape}. For a single "
            "objective, give two arrays of shape (N,)."
        )
    if predicted.ndim == 1:
        return _columns(predicted[:, None], measured[:, None], correlation).item()
    result = np.full(predicted.shape[1], np.nan)
    for column in range(predicted.shape[1]):
        known = np.isfinite(measured[:, column]) & np.isfinite(predicted[:, column])
        a, b = predicted[known, column], measured[known, column]
        if len(a) >= MIN_ROWS and np.ptp(a) > 0 and np.ptp(b) > 0:
            result[column] = correlation(a, b)
    return result


def _numbers(given: ArrayLike) -> FloatArray:
    try:
        return to_floats(given)
    except (TypeError, ValueError) as e:
        raise ValueError(f"rank correlation: expected numbers, got {repr(given)[:60]}.") from e
