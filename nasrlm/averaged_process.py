"""A Gaussian process for a handful of labels, averaged over what they cannot decide: how noisy they are, and which one
known objective, if any, the new one follows.

So every guess is a process of its own, and counts as much as it makes the labels probable.

N texts, n labelled ones, F features, M known objectives, K of them that a group of processes follows, one each.

Source:
    Hoeting, Madigan, Raftery, Volinsky 1999, "Bayesian Model Averaging: A Tutorial".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import norm

from nasrlm.group_process import inverse_diagonal
from nasrlm.objective import FloatArray

NOISES = (0.01, 0.03, 0.1, 0.3)  # variances of a label that nothing explains, in units of all labels' variance
CURVATURE = 0.3  # variance of what is not linear in the features
FOLLOWED = 0.9  # of the variance is the one objective's, where it is followed
NONE_FOLLOWED = 0.1  # how probable that is before labels are known
NEGLIGIBLE = 1e-3  # how probable a group is that is left out


def likeness(features: FloatArray, others: FloatArray) -> FloatArray:
    """(N, n) covariances of the labels of (N, F) standardised features with those of (n, F)."""
    count = features.shape[1]
    squares = cdist(features, others, "sqeuclidean")
    return np.asarray(features @ others.T / count + CURVATURE * np.exp(-0.5 * squares / count))


@dataclass(frozen=True)
class Averaged:
    """What is expected of labels, noise included.

    Attributes:
        mean: (N,).
        deviation: (N,).
        left_out_errors: (n,) known labels less what those who know all others expect of each.
        left_out_deviations: (n,) that they expect of these.
    """

    mean: FloatArray
    deviation: FloatArray
    left_out_errors: FloatArray
    left_out_deviations: FloatArray

    @classmethod
    def of(cls, features: FloatArray, known: FloatArray, rows: NDArray[np.intp], targets: FloatArray) -> Averaged:
        """By all processes.

        Args:
            features: (N, F) of the texts, standardised.
            known: (N, M) what is known of other objectives, likewise.
            rows: (n,) texts that have labels.
            targets: (n,) these, of mean 0 and variance 1.

        Cost: some milliseconds for ten labels; grows with their cube.
        """
        across = likeness(features, features[rows])
        variance = (features**2).mean(axis=1) + CURVATURE
        groups = []
        for noise in NOISES:
            groups.append(_Group(across, rows, targets, np.zeros((len(features), 1)), 0.0, noise, NONE_FOLLOWED))
            groups.append(_Group(across, rows, targets, known, FOLLOWED, noise, 1 - NONE_FOLLOWED))
        evidence = logsumexp(np.concatenate([group.logs for group in groups]))
        groups = [group for group in groups if logsumexp(group.logs) > evidence + np.log(NEGLIGIBLE)]
        logs = np.concatenate([group.logs for group in groups])
        mean, variance = _mixed(logs, *_beside([group.answers(across, variance) for group in groups]))
        errors, variances = _beside([group.left_out() for group in groups])
        without = logs - norm.logpdf(errors, scale=np.sqrt(variances))  # evidence of all labels but the own
        error, error_variance = _mixed(without, errors, variances)
        return cls(mean, np.sqrt(variance), error, np.sqrt(error_variance))


class _Group:
    """Processes of one noise, of which each follows one of K objectives with a slope that the labels tell.

    Args:
        across: (N, n) likeness of all texts to the labelled ones.
        rows: (n,) these.
        targets: (n,) their labels.
        known: (N, K) of all texts.
        followed: of the variance is the objective's.
        noise: variance of a label.
        prior: probability of the group.

    Attributes:
        logs: (K,) logarithms of how probable each makes the labels, up to a constant, and of its prior.
    """

    def __init__(
        self,
        across: FloatArray,
        rows: NDArray[np.intp],
        targets: FloatArray,
        known: FloatArray,
        followed: float,
        noise: float,
        prior: float,
    ) -> None:
        self._known, self._rest, self._noise = known, 1 - followed, noise
        covariance = self._rest * across[rows]
        covariance[np.diag_indices(len(rows))] += noise
        self._factor = cholesky(covariance, lower=True, overwrite_a=True)
        own = known[rows]
        self._weights = cho_solve((self._factor, True), targets)
        self._solved = cho_solve((self._factor, True), own)  # (n, K)
        lengthening = 1 + followed * (own * self._solved).sum(axis=0)
        self._slope_variances = followed / lengthening
        self._slopes = self._slope_variances * (own.T @ self._weights)
        surprise = targets @ self._weights - self._slopes * (own.T @ self._weights) + np.log(lengthening)
        prior_of_each = np.log(prior / max(known.shape[1], 1))
        self.logs = prior_of_each - 0.5 * surprise - np.log(self._factor.diagonal()).sum()

    def answers(self, across: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(N, K) means and variances of all texts, given (N,) variances of what is not followed."""
        left = self._known - self._rest * across @ self._solved
        mean = (self._rest * across @ self._weights)[:, None] + left * self._slopes
        explained = solve_triangular(self._factor, self._rest * across.T, lower=True)
        own = self._rest * variance + self._noise - (explained**2).sum(axis=0)
        return mean, own[:, None] + left**2 * self._slope_variances

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """(n, K) labels less what is expected of each by all others, and the variances that are expected of that."""
        weights = self._weights[:, None] - self._solved * self._slopes
        precision = inverse_diagonal(self._factor)[:, None] - self._solved**2 * self._slope_variances
        return weights / precision, 1 / precision


def _beside(pairs: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    first, second = (np.concatenate(parts, axis=1) for parts in zip(*pairs, strict=True))
    return first, second


def _mixed(logs: FloatArray, means: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(N,) mean and variance of mixtures of (N, K) distributions, each as probable as its logarithm says."""
    shares = np.exp(logs - logsumexp(logs, axis=-1, keepdims=True))
    mean = (shares * means).sum(axis=1)
    return mean, (shares * (variances + (means - mean[:, None]) ** 2)).sum(axis=1)
