"""A Gaussian process for a handful of labels, averaged over hypotheses that so few labels cannot decide.

A hypothesis is a variance of the labels' noise, a spread of the labels of all texts beside that of the given ones, and
the known objective or count that the new objective follows (is nearly a linear function of), or none. Each hypothesis
is a Gaussian process of its own, weighted by its posterior probability given the labels (Bayesian model averaging).

N texts, n labelled ones, F features, M known objectives, K hypotheses of a group, which have the same noise.

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

# Deviations of the labels of all texts, in units of that of the given ones, and their prior probabilities: ten networks
# may be more alike than all others are.
SPREADS = {1.0: 0.4, 3.0**0.5: 0.3, 3.0: 0.3}
# Noise variances of a label, in units of the variance of all labels, and their prior probabilities.
NOISES = {0.01: 0.4, 0.03: 0.35, 0.1: 0.15, 0.3: 0.05, 1.0: 0.05}
CURVATURE = 0.3  # variance of the part that is not linear in the features
CONSTANT = 1.0  # variance of the difference between the mean of all labels and that of the given ones
FOLLOWED = 0.7  # share of the variance due to the followed objective; 0.9 trusts ten labels that agree with a wrong one
AGREEMENT = 0.8  # expected slope along a followed objective of known direction, in units of the largest, √FOLLOWED
NONE_FOLLOWED = 0.1  # prior probability that no objective is followed
NEGLIGIBLE = 1e-3  # posterior probability below which a group is left out


def prior_covariance(features: FloatArray, others: FloatArray) -> FloatArray:
    """Return (N, n) prior covariances between the labels of texts, given their standardised (N, F), (n, F) features."""
    count = features.shape[1]
    squares = cdist(features, others, "sqeuclidean")
    return np.asarray(features @ others.T / count + CURVATURE * np.exp(-0.5 * squares / count))


class AveragedProcess:
    """The average of all hypotheses, fitted to a few labels; its predictions include the noise of a label.

    Args:
        features: (n, F) of the labelled texts, standardised over all texts.
        known: (n, M) other objectives and counts that may be followed, standardised likewise.
        targets: (n,) labels, of mean 0 and variance 1.
        shares: (M,) prior probability of each of ``known`` to be the followed one, given that one is.
        directions: (M,) 1 or -1 for those of ``known`` with which labels are expected to grow or to shrink if they
            follow it, 0 for others.

    Cost: some milliseconds for ten labels, two seconds for 1,000 and ten for 2,000 on one core, with predictions.
    """

    def __init__(
        self,
        features: FloatArray,
        known: FloatArray,
        targets: FloatArray,
        shares: FloatArray,
        directions: FloatArray,
    ) -> None:
        self._features = features
        alike = prior_covariance(features, features)
        one_followed, none_followed = (1 - NONE_FOLLOWED) * shares, np.array([NONE_FOLLOWED])
        groups = [
            group
            for noise, share in NOISES.items()
            for group in (
                _Group(alike, _none(known), targets, share * none_followed, np.zeros(1), followed=0.0, noise=noise),
                _Group(alike, known, targets, share * one_followed, directions, followed=FOLLOWED, noise=noise),
            )
        ]
        evidence = logsumexp(np.concatenate([group.logs for group in groups]))
        self._groups = [group for group in groups if logsumexp(group.logs) > evidence + np.log(NEGLIGIBLE)]
        self._logs = np.concatenate([group.logs for group in self._groups])

    def predict(self, features: FloatArray, known: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (N,) means and standard deviations, for texts with (N, F) features and (N, M) known objectives."""
        across = prior_covariance(features, self._features)
        variance = (features**2).mean(axis=1) + CURVATURE
        answers = [group.answers(across, variance, known if group.followed else _none(known)) for group in self._groups]
        return _mixed(self._logs, *_beside(answers))

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Predict each label from all others; return (n,) errors, label minus mean, and (n,) standard deviations."""
        errors, variances = _beside([group.left_out() for group in self._groups])
        without = self._logs - norm.logpdf(errors, scale=np.sqrt(variances))  # evidence of all other labels
        return _mixed(without, errors, variances)


class _Group:
    """K hypotheses with the same noise: each followed objective, with a slope fitted to the labels, and each spread.

    Args:
        alike: (n, n) prior covariances of the labelled texts.
        known: (n, M) followed objectives of these texts.
        targets: (n,) labels.
        priors: (M,) prior probabilities that each is followed.
        directions: (M,) expected signs of the slopes, or 0.
        followed: share of the variance due to the followed objective.
        noise: variance of a label's noise.

    Attributes:
        logs: (K,) logarithms of prior times marginal likelihood of the labels, up to a constant.
    """

    def __init__(
        self,
        alike: FloatArray,
        known: FloatArray,
        targets: FloatArray,
        priors: FloatArray,
        directions: FloatArray,
        *,
        followed: float,
        noise: float,
    ) -> None:
        self.followed, self._noise = followed, noise
        spreads, shares = np.array([*SPREADS]), np.array([*SPREADS.values()])
        self._spreads = np.repeat(spreads, known.shape[1])
        expected = np.tile(AGREEMENT * np.sqrt(followed) * directions, len(spreads))  # slopes
        covariance = (1 - followed) * alike + CONSTANT
        covariance[np.diag_indices(len(alike))] += noise
        self._factor = cholesky(covariance, lower=True, overwrite_a=True)
        known = self._by_spread(known)
        targets = targets[:, None] / self._spreads - known * expected  # (n, K)
        weights = cho_solve((self._factor, True), targets)
        self._solved = cho_solve((self._factor, True), known)
        variances = followed - expected**2
        lengthening = 1 + variances * (known * self._solved).sum(axis=0)
        self._slope_variances = variances / lengthening
        along = (known * weights).sum(axis=0)
        beside = self._slope_variances * along  # slopes minus the expected ones
        self._slopes, self._weights = expected + beside, weights - self._solved * beside
        surprise = (targets * weights).sum(axis=0) - beside * along + np.log(lengthening)
        log_priors = np.log(np.outer(shares, priors).ravel()) - len(targets) * np.log(self._spreads)
        self.logs = log_priors - 0.5 * surprise - np.log(self._factor.diagonal()).sum()

    def answers(self, across: FloatArray, variance: FloatArray, known: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (N, K) means and variances of texts.

        Args:
            across: (N, n) prior covariances with the labelled texts.
            variance: (N,) prior variances.
            known: (N, M) followed objectives.
        """
        across, known = (1 - self.followed) * across + CONSTANT, self._by_spread(known)
        left = known - across @ self._solved
        mean = known * self._slopes + across @ self._weights
        explained = solve_triangular(self._factor, across.T, lower=True)
        own = (1 - self.followed) * variance + CONSTANT + self._noise - (explained**2).sum(axis=0)
        return mean * self._spreads, (own[:, None] + left**2 * self._slope_variances) * self._spreads**2

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Return (n, K) errors, each label minus its mean given all others, and their expected variances."""
        precision = inverse_diagonal(self._factor)[:, None] - self._solved**2 * self._slope_variances
        return self._weights / precision * self._spreads, self._spreads**2 / precision

    def _by_spread(self, known: FloatArray) -> FloatArray:
        """Repeat (N, M) columns for each spread: (N, K)."""
        return np.tile(known, len(SPREADS))


def _none(known: FloatArray) -> FloatArray:
    """Return (N, 1) zeros: nothing to follow."""
    return np.zeros((len(known), 1))


def _beside(pairs: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    first, second = (np.concatenate(parts, axis=1) for parts in zip(*pairs, strict=True))
    return first, second


def _mixed(logs: FloatArray, means: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (N,) means and standard deviations of mixtures of (N, K) distributions with log weights ``logs``."""
    shares = np.exp(logs - logsumexp(logs, axis=-1, keepdims=True))
    mean = (shares * means).sum(axis=1)
    return mean, np.sqrt((shares * (variances + (means - mean[:, None]) ** 2)).sum(axis=1))
