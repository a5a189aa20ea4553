"""A Gaussian process for a handful of labels, averaged over what they cannot decide.

That is how noisy they are, and which known objective or count, if any, the new objective follows, which means that it
is nearly a linear function of it. Each combination is a process of its own, weighted by how probable it makes the
labels.

N texts, n labelled ones, F features, M known objectives, K of them that a group of processes follows, one each.

Source:
    Hoeting, Madigan, Raftery, Volinsky 1999, "Bayesian Model Averaging: A Tutorial".
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import norm

from nasrlm.adaptation.group_process import inverse_diagonal
from nasrlm.arrays import FloatArray

# Variances of a label that nothing explains, in units of all labels' variance, and how probable beforehand.
NOISES = {0.01: 0.4, 0.03: 0.4, 0.1: 0.15, 0.3: 0.05}
CURVATURE = 0.3  # variance of what is not linear in the features
FOLLOWED = 0.7  # of the variance is the one objective's; 0.9 trusts ten labels that agree with a wrong one
NONE_FOLLOWED = 0.3  # how probable it is that none is
NEGLIGIBLE = 1e-3  # how probable a group is that is left out


def prior_covariance(features: FloatArray, others: FloatArray) -> FloatArray:
    """(N, n) covariances of the labels of (N, F) standardised features with those of (n, F)."""
    count = features.shape[1]
    squares = cdist(features, others, "sqeuclidean")
    return np.asarray(features @ others.T / count + CURVATURE * np.exp(-0.5 * squares / count))


class AveragedProcess:
    """Fitted to a few labels, it predicts those of all texts, noise included.

    Args:
        features: (n, F) of the labelled texts, standardised over all texts.
        known: (n, M) what may be followed, other objectives and counts, likewise.
        targets: (n,) labels, of mean 0 and variance 1.
        shares: (M,) prior probability of each of ``known`` that it is the one that is followed, if any is; equal ones
            if None.

    Cost: some milliseconds for ten labels, two seconds for 1,000 and ten for 2,000 on one core, answers included.
    """

    def __init__(
        self, features: FloatArray, known: FloatArray, targets: FloatArray, shares: FloatArray | None = None
    ) -> None:
        self._features = features
        alike = prior_covariance(features, features)
        count = known.shape[1]
        one_followed = (1 - NONE_FOLLOWED) * (np.full(count, 1 / max(count, 1)) if shares is None else shares)
        none_followed = np.array([NONE_FOLLOWED])
        groups = [
            group
            for noise, share in NOISES.items()
            for group in (
                _Group(alike, _none(known), targets, followed=0.0, noise=noise, priors=share * none_followed),
                _Group(alike, known, targets, followed=FOLLOWED, noise=noise, priors=share * one_followed),
            )
        ]
        evidence = logsumexp(np.concatenate([group.logs for group in groups]))
        self._groups = [group for group in groups if logsumexp(group.logs) > evidence + np.log(NEGLIGIBLE)]
        self._logs = np.concatenate([group.logs for group in self._groups])

    def predict(self, features: FloatArray, known: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(N,) means and standard deviations of texts with (N, F) features and (N, M) known objectives."""
        across = prior_covariance(features, self._features)
        variance = (features**2).mean(axis=1) + CURVATURE
        answers = [group.answers(across, variance, known if group.followed else _none(known)) for group in self._groups]
        return _mixed(self._logs, *_beside(answers))

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Predict each label from all others: (n,) errors, label less expectation, and (n,) expected deviations."""
        errors, variances = _beside([group.left_out() for group in self._groups])
        without = self._logs - norm.logpdf(errors, scale=np.sqrt(variances))  # evidence of all labels but the own
        return _mixed(without, errors, variances)


class _Group:
    """Processes of one noise, of which each follows one of K objectives with a slope that the labels tell.

    Args:
        alike: (n, n) likeness of the labelled texts.
        known: (n, K) of them.
        targets: (n,) their labels.
        followed: of the variance is the objective's.
        noise: variance of a label.
        priors: (K,) probabilities.

    Attributes:
        logs: (K,) logarithms of how probable each makes the labels, up to a constant, and of its prior.
    """

    def __init__(
        self,
        alike: FloatArray,
        known: FloatArray,
        targets: FloatArray,
        *,
        followed: float,
        noise: float,
        priors: FloatArray,
    ) -> None:
        self.followed, self._noise = followed, noise
        covariance = (1 - followed) * alike
        covariance[np.diag_indices(len(alike))] += noise
        self._factor = cholesky(covariance, lower=True, overwrite_a=True)
        self._weights = cho_solve((self._factor, True), targets)
        self._solved = cho_solve((self._factor, True), known)  # (n, K)
        lengthening = 1 + followed * (known * self._solved).sum(axis=0)
        self._slope_variances = followed / lengthening
        self._slopes = self._slope_variances * (known.T @ self._weights)
        surprise = targets @ self._weights - self._slopes * (known.T @ self._weights) + np.log(lengthening)
        self.logs = np.log(priors) - 0.5 * surprise - np.log(self._factor.diagonal()).sum()

    def answers(self, across: FloatArray, variance: FloatArray, known: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(N, K) means and variances of texts of (N, n) likeness to the labelled ones and (N,) to themselves."""
        across = (1 - self.followed) * across
        left = known - across @ self._solved
        mean = (across @ self._weights)[:, None] + left * self._slopes
        explained = solve_triangular(self._factor, across.T, lower=True)
        own = (1 - self.followed) * variance + self._noise - (explained**2).sum(axis=0)
        return mean, own[:, None] + left**2 * self._slope_variances

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """(n, K) labels less what is expected of each by all others, and the variances that are expected of that."""
        weights = self._weights[:, None] - self._solved * self._slopes
        precision = inverse_diagonal(self._factor)[:, None] - self._solved**2 * self._slope_variances
        return weights / precision, 1 / precision


def _none(known: FloatArray) -> FloatArray:
    """(N, 1) zeros: nothing to follow."""
    return np.zeros((len(known), 1))


def _beside(pairs: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    first, second = (np.concatenate(parts, axis=1) for parts in zip(*pairs, strict=True))
    return first, second


def _mixed(logs: FloatArray, means: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(N,) mean and deviation of mixtures of (N, K) distributions, each as probable as its logarithm says."""
    shares = np.exp(logs - logsumexp(logs, axis=-1, keepdims=True))
    mean = (shares * means).sum(axis=1)
    return mean, np.sqrt((shares * (variances + (means - mean[:, None]) ** 2)).sum(axis=1))
