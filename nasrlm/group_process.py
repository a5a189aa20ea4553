"""A Gaussian process for few labels: several groups of features, each with a scale that the labels decide.

The kernel is a sum of one Matérn kernel a group. Labels are learned as the normal scores of their ranks, so that a
few networks that fail do not stretch the scale of all others.

N rows, F features of a group, n labelled rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.stats import norm, rankdata

from nasrlm.objective import FloatArray

ROWS_TO_FIT_SCALES = 400  # more do not change them enough to pay for the time, which grows with the cube
PRIOR = 0.05  # pull of the logarithms of all scales to where they start, for a handful of labels
JITTER = 1e-6
_START_VARIANCE, _START_LENGTH, _START_NOISE = 0.5, 1.0, 0.1
_BOUNDS = (-6.0, 4.0)


class LabelScale(Protocol):
    """Labels to what a process learns, of mean 0 and variance 1 or about, and back."""

    def forward(self, labels: FloatArray) -> FloatArray: ...

    def backward(self, scores: FloatArray) -> FloatArray: ...


@dataclass(frozen=True)
class NormalScores:
    """Labels to normal scores of their ranks and back, piecewise linear, beyond the ends as steep as overall.

    Attributes:
        labels: (K,) different labels, ascending.
        scores: (K,) of them.
    """

    labels: FloatArray
    scores: FloatArray

    @classmethod
    def of(cls, labels: FloatArray) -> NormalScores:
        """Ranks of these labels, ties sharing theirs."""
        different, first = np.unique(labels, return_index=True)
        scores: FloatArray = norm.ppf((rankdata(labels)[first] - 0.5) / len(labels))
        return cls(different, scores)

    def forward(self, labels: FloatArray) -> FloatArray:
        """Scores of labels that are known."""
        return np.interp(labels, self.labels, self.scores)

    def backward(self, scores: FloatArray) -> FloatArray:
        """Labels of any scores."""
        inside = np.clip(scores, self.scores[0], self.scores[-1])
        reach = self.scores[-1] - self.scores[0]
        slope = (self.labels[-1] - self.labels[0]) / reach if reach else 0.0
        return np.asarray(np.interp(inside, self.scores, self.labels) + slope * (scores - inside))


class GroupProcess:
    """Fitted to the labels of some rows, it answers for all rows.

    Args:
        groups: (N, F) features of every group, of variance about 1 on average.
    """

    def __init__(self, groups: Sequence[FloatArray]) -> None:
        self._groups = [group for group in groups if group.shape[1]]
        if not self._groups or len({len(group) for group in self._groups}) != 1:
            shapes = ", ".join(str(group.shape) for group in groups)
            raise ValueError(f"GroupProcess: expected (N, F) features of the same N rows, got {shapes or 'none'}.")

    def fit(self, rows: NDArray[np.intp], labels: FloatArray, scale: LabelScale | None = None) -> GroupProcess:
        """Learn from (n,) labels of (n,) rows; scales by their likelihood.

        Args:
            rows: of the features.
            labels: of these rows.
            scale: on which they are learned; normal scores of their ranks if None.

        Raises:
            ValueError: fewer than two rows.
        """
        if len(rows) < 2 or len(rows) != len(labels):
            raise ValueError(
                f"GroupProcess: expected two or more labelled rows, got {len(rows)} and {len(labels)} labels."
            )
        self.scores: LabelScale = NormalScores.of(labels) if scale is None else scale
        targets = self.scores.forward(labels)
        some = np.random.default_rng(0).permutation(len(rows))[:ROWS_TO_FIT_SCALES]
        self._scales = _fit_scales(self._squared_distances(rows[some], rows[some]), targets[some])
        self._rows = rows
        covariance = _covariance(self._scales, self._squared_distances(rows, rows))
        self._factor = cholesky(covariance + _noise(self._scales) * np.eye(len(rows)), lower=True)
        self._weights = cho_solve((self._factor, True), targets)
        return self

    def predict(self, rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the scores of (N,) rows, without the noise of a label."""
        across = _covariance(self._scales, self._squared_distances(rows, self._rows))
        explained = solve_triangular(self._factor, across.T, lower=True)
        variance = np.exp(self._scales[:-1:2]).sum() - (explained**2).sum(axis=0)
        return across @ self._weights, np.sqrt(np.maximum(variance, 0.0))

    @property
    def noise(self) -> float:
        """Variance of what the features do not explain of a score."""
        return _noise(self._scales)

    def sample(self, rows: NDArray[np.intp], samples: int, rng: np.random.Generator, noise: float = 0.0) -> FloatArray:
        """(N, S) scores of (N,) rows drawn jointly, each with noise of that variance.

        Cost: cubic in N; a tenth of a second for 300.
        """
        mean, _ = self.predict(rows)
        across = _covariance(self._scales, self._squared_distances(self._rows, rows))
        explained = solve_triangular(self._factor, across, lower=True)
        covariance = _covariance(self._scales, self._squared_distances(rows, rows)) - explained.T @ explained
        values, vectors = eigh(covariance)
        drawn = vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * rng.normal(size=(len(rows), samples)))
        return np.asarray(mean[:, None] + drawn + np.sqrt(noise) * rng.normal(size=drawn.shape), dtype=np.float64)

    def _squared_distances(self, rows: NDArray[np.intp], others: NDArray[np.intp]) -> list[FloatArray]:
        return [cdist(x[rows], x[others], "sqeuclidean") / x.shape[1] for x in self._groups]


def _fit_scales(squared_distances: Sequence[FloatArray], targets: FloatArray) -> FloatArray:
    """Logarithms of each group's variance and length, then of the noise: those under which the targets are likely."""
    start = np.log([_START_VARIANCE, _START_LENGTH] * len(squared_distances) + [_START_NOISE])
    identity = np.eye(len(targets))

    def surprise(scales: FloatArray) -> float:
        factor = cholesky(_covariance(scales, squared_distances) + _noise(scales) * identity, lower=True)
        whitened = solve_triangular(factor, targets, lower=True)
        prior = PRIOR * ((scales - start) ** 2).sum()
        return float(0.5 * whitened @ whitened + np.log(factor.diagonal()).sum() + prior)

    found: FloatArray = minimize(
        surprise, start, method="L-BFGS-B", bounds=[_BOUNDS] * len(start), options={"maxiter": 40}
    ).x
    return found


def _covariance(scales: FloatArray, squared_distances: Sequence[FloatArray]) -> FloatArray:
    """Sum of Matérn kernels of smoothness 5/2."""
    total = np.zeros_like(squared_distances[0])
    for index, squares in enumerate(squared_distances):
        distance = np.sqrt(5 * squares) / np.exp(scales[2 * index + 1])
        total += np.exp(scales[2 * index] - distance) * (1 + distance + distance**2 / 3)
    return total


def _noise(scales: FloatArray) -> float:
    return float(np.exp(scales[-1])) + JITTER
