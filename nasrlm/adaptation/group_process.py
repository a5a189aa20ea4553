"""A Gaussian process for few labels on several groups of features; the scales of each group are fitted to the labels.

The kernel is the sum of one Matérn kernel per group and, on request, of linear kernels, which extrapolate, and of a
kernel that is constant between rows of the same kind and 0 otherwise. Labels are learned as the normal scores of their
ranks unless another scale is given, so that a few failed networks do not stretch the scale of all others.

N rows (items with features), F features of a group, n labelled rows. A score is a label on the scale that is learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular
from scipy.linalg.lapack import dpotri, dtrtri
from scipy.optimize import minimize

from nasrlm.adaptation.label_scales import LabelScale, NormalScores
from nasrlm.arrays import FloatArray
from nasrlm.threads import one_thread

ROWS_TO_FIT_SCALES = 800  # the time of a fit grows with the cube of this; a fit to 4,236 rows takes 14 s in all
ROWS_AT_ONCE = 1024  # compared with all others at a time: a dozen numbers per pair are in memory
PRIOR = 0.05  # strength of the pull of all log scales to their starting values; it matters for a handful of labels
JITTER = 1e-6
_START_VARIANCE, _START_LENGTH, _START_LINEAR, _START_KIND, _START_NOISE = 0.5, 1.0, 0.3, 0.1, 0.1
_BOUNDS = (-6.0, 4.0)

_Decay = tuple[FloatArray, FloatArray]  # distances in length scales, and the variance times exp(-distance)


class GroupProcess:
    """A process that is fitted to the labels of some rows and predicts all rows.

    Args:
        groups: (N, F) features of every group, of variance about 1 on average.
        linear: indices of groups that also get a linear kernel.
        kinds: (N,) numbers; rows of the same kind share an effect that their features do not explain.

    Attributes:
        surprise: after ``fit``, the negative log marginal likelihood of the labels' scores, up to a constant.

    Raises:
        ValueError: no group has features, or groups differ in their numbers of rows.
    """

    def __init__(
        self, groups: Sequence[FloatArray], *, linear: Sequence[int] = (), kinds: NDArray[np.intp] | None = None
    ) -> None:
        kept = [index for index, group in enumerate(groups) if group.shape[1]]
        if not kept or len({len(groups[index]) for index in kept}) != 1:
            shapes = ", ".join(str(group.shape) for group in groups)
            raise ValueError(f"GroupProcess: expected (N, F) features of the same N rows, got {shapes or 'none'}.")
        self._kept = kept
        self._features = _Features([groups[x] for x in kept], [kept.index(x) for x in linear if x in kept], kinds)

    def fit(
        self,
        rows: NDArray[np.intp],
        labels: FloatArray,
        scale: LabelScale | None = None,
        *,
        trusted: float = np.inf,
        prior: float = PRIOR,
    ) -> GroupProcess:
        """Learn from labels; scales maximise the marginal likelihood.

        Args:
            rows: (n,) indices of the labelled rows.
            labels: (n,) of these rows.
            scale: on which labels are learned; normal scores of their ranks if None.
            trusted: number of standard deviations by which a score may differ from what all others lead to expect. If
                it differs more, the rest of its squared difference is the variance of further noise, so that outliers
                are hardly followed. Scales are fitted without this noise.
            prior: strength of the pull of all log scales to their starting values.

        Raises:
            ValueError: fewer than two rows, or not as many labels as rows.
        """
        if len(rows) < 2 or len(rows) != len(labels):
            raise ValueError(
                f"GroupProcess: expected two or more labelled rows, got {len(rows)} and {len(labels)} labels."
            )
        self.scale: LabelScale = NormalScores.of(labels) if scale is None else scale
        targets = self.scale.forward(labels)
        some = np.random.default_rng(0).permutation(len(rows))[:ROWS_TO_FIT_SCALES]
        self._scales = _fit_scales(self._features.likeness(rows[some], rows[some]), targets[some], prior)
        self._rows = rows
        with one_thread(len(rows) <= ROWS_TO_FIT_SCALES):
            self._learn(targets, trusted)
        self.surprise = float(0.5 * targets @ self._weights + np.log(self._factor.diagonal()).sum())
        return self

    def predict(self, rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return (N,) means and standard deviations of the scores of rows, without the noise of a label."""
        across, explained = self._explained(rows)
        left = self._features.variance(self._scales, rows) - (explained**2).sum(axis=0)
        return across @ self._weights, np.sqrt(np.maximum(left, 0.0))

    def expected_scores(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return (N,) mean scores of rows without deviations, at a fraction of the cost."""
        return np.asarray(self.covariance(rows, self._rows) @ self._weights)

    def expect(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return the (N,) labels that belong to the mean scores of rows."""
        return self.scale.backward(self.expected_scores(rows))

    @property
    def noise(self) -> float:
        """Variance of the part of a score that the features do not explain."""
        return self._scales.noise

    @property
    def kernels(self) -> FloatArray:
        """(groups with features, 2) variance and length scale of each Matérn kernel."""
        return np.stack([self._scales.curved, self._scales.lengths], axis=1)

    def weights_for(self, targets: FloatArray) -> FloatArray:
        """Solve for the (n,) kernel weights of the labelled rows, given (n,) targets; scales are kept."""
        return np.asarray(cho_solve((self._factor, True), targets))

    def left_out(self) -> FloatArray:
        """Return (n,) leave-one-out errors: each learned score minus its mean given all others. Cost: cubic in n."""
        return np.asarray(self._weights / inverse_diagonal(self._factor))

    def covariance(self, rows: NDArray[np.intp], others: NDArray[np.intp]) -> FloatArray:
        """Return (N, n) prior covariances of the scores of rows with those of others, without noise."""
        return self._features.covariance(self._scales, rows, others)

    @one_thread()
    def sample(self, rows: NDArray[np.intp], samples: int, rng: np.random.Generator) -> FloatArray:
        """Draw (N, S) scores of (N,) rows jointly, without the noise of a label.

        Cost: cubic in N; a tenth of a second for 300.
        """
        across, explained = self._explained(rows)
        values, vectors = eigh(self.covariance(rows, rows) - explained.T @ explained)
        drawn = vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * rng.normal(size=(len(rows), samples)))
        return np.asarray((across @ self._weights)[:, None] + drawn)

    def for_others(self, groups: Sequence[FloatArray]) -> GroupProcess:
        """Return this process for N rows that it was not made with, numbered from 0.

        Takes the (N, F) features of every group; the process must have no kinds, since those of new rows are unknown.
        """
        found = copy(self)
        found._features = self._features.after([groups[x] for x in self._kept], self._rows)
        found._rows = len(groups[0]) + np.arange(len(self._rows))
        return found

    def _learn(self, targets: FloatArray, trusted: float) -> None:
        """Learn the (n,) targets of the labelled rows; ``trusted`` is as for ``fit``."""
        covariance, diagonal = self.covariance(self._rows, self._rows), np.diag_indices(len(targets))
        covariance[diagonal] += self.noise
        self._solve(covariance, targets)
        if np.isfinite(trusted):
            tolerated = trusted**2 / inverse_diagonal(self._factor)
            covariance[diagonal] += np.maximum(self.left_out() ** 2 - tolerated, 0.0)
            self._solve(covariance, targets)

    def _solve(self, covariance: FloatArray, targets: FloatArray) -> None:
        """Solve for the weights of (n,) targets, given their (n, n) covariances with noise."""
        self._factor = cholesky(covariance, lower=True)
        self._weights = self.weights_for(targets)

    def _explained(self, rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return the (N, n) prior covariances of rows with labelled ones, and (n, N) solved by the factor.

        The squares of the latter are the part of the prior variances that the labels explain.
        """
        across = self.covariance(rows, self._rows)
        return across, solve_triangular(self._factor, across.T, lower=True)


class _Features:
    """Groups of features of N rows, and the kernels between rows.

    Args:
        groups: (N, F) features of each group; no group is empty.
        linear: indices of groups that also get a linear kernel.
        kinds: (N,) numbers, if any.
    """

    def __init__(
        self, groups: Sequence[FloatArray], linear: Sequence[int], kinds: NDArray[np.intp] | None = None
    ) -> None:
        self._groups, self._linear, self._kinds = groups, linear, kinds
        self._squares = [(group**2).mean(axis=1) for group in groups]

    def after(self, others: Sequence[FloatArray], rows: NDArray[np.intp]) -> _Features:
        """Return the features of new rows in the same groups, followed by those of some rows."""
        assert self._kinds is None, "of other rows nobody knows them"
        pairs = zip(others, self._groups, strict=True)
        return _Features([np.concatenate([given, own[rows]]) for given, own in pairs], self._linear)

    def covariance(self, scales: _Scales, rows: NDArray[np.intp], others: NDArray[np.intp]) -> FloatArray:
        """Return (N, n) prior covariances of the scores of rows with those of others."""
        blocks = np.split(rows, range(ROWS_AT_ONCE, len(rows), ROWS_AT_ONCE))
        return np.concatenate([_total(scales, self.likeness(block, others)) for block in blocks])

    def variance(self, scales: _Scales, rows: NDArray[np.intp]) -> FloatArray:
        """Return (N,) prior variances of the scores of rows."""
        linear = sum(v * self._squares[group][rows] for v, group in zip(scales.constant, self._linear, strict=False))
        kind = scales.constant[len(self._linear) :].sum()
        return np.asarray(scales.curved.sum() + linear + kind + np.zeros(len(rows)))

    def likeness(self, rows: NDArray[np.intp], others: NDArray[np.intp]) -> _Likeness:
        """Return what the kernels between rows and others depend on."""
        products = [x[rows] @ x[others].T / x.shape[1] for x in self._groups]
        distances = [
            np.sqrt(np.maximum(squares[rows][:, None] + squares[others] - 2 * product, 0.0))
            for squares, product in zip(self._squares, products, strict=True)
        ]
        return _Likeness(distances, [products[group] for group in self._linear], self._same(rows, others))

    def _same(self, rows: NDArray[np.intp], others: NDArray[np.intp]) -> FloatArray | None:
        if self._kinds is None:
            return None
        return np.asarray(self._kinds[rows][:, None] == self._kinds[others], dtype=np.float64)


@dataclass(frozen=True)
class _Scales:
    """The kernels' parameters, which are fitted to the labels as logarithms.

    Attributes:
        logs: variance and length scale of each Matérn (curved) kernel in turn, then the variances of kernels without a
            length scale, then the variance of the noise.
        num_curved: number of Matérn kernels.
    """

    logs: FloatArray
    num_curved: int

    @property
    def curved(self) -> FloatArray:
        """Variances of the Matérn kernels."""
        return np.asarray(np.exp(self.logs[: 2 * self.num_curved : 2]))

    @property
    def lengths(self) -> FloatArray:
        """Length scales of the Matérn kernels."""
        return np.asarray(np.exp(self.logs[1 : 2 * self.num_curved : 2]))

    @property
    def constant(self) -> FloatArray:
        """Variances of the kernels without a length scale."""
        return np.asarray(np.exp(self.logs[2 * self.num_curved : -1]))

    @property
    def noise(self) -> float:
        """Variance of the noise of a label."""
        return float(np.exp(self.logs[-1])) + JITTER


@dataclass(frozen=True)
class _Likeness:
    """Distances of rows to others by group, products by linear group, and 1 for pairs of the same kind, else 0."""

    distances: Sequence[FloatArray]
    products: Sequence[FloatArray]
    same: FloatArray | None

    @property
    def constant(self) -> list[FloatArray]:
        """Kernels without a length scale, before they are multiplied by their variances."""
        return [*self.products, *([] if self.same is None else [self.same])]


@one_thread()
def _fit_scales(likeness: _Likeness, targets: FloatArray, prior: float) -> _Scales:
    """Fit the scales by the marginal likelihood of the targets, with a prior around the starting values."""
    starts = [_START_VARIANCE, _START_LENGTH] * len(likeness.distances) + [_START_LINEAR] * len(likeness.products)
    start = np.log([*starts, *([] if likeness.same is None else [_START_KIND]), _START_NOISE])
    diagonal, num_curved = np.diag_indices(len(targets)), len(likeness.distances)

    def surprise(logs: FloatArray) -> tuple[float, FloatArray]:
        scales = _Scales(logs, num_curved)
        decays = list(_decays(scales, likeness))
        kernels = _kernels(scales, likeness, decays)
        covariance = np.asarray(sum(kernels))
        covariance[diagonal] += scales.noise
        factor = cholesky(covariance, lower=True)
        weights = cho_solve((factor, True), targets)
        left = _inverse(factor) - np.outer(weights, weights)
        along = [float(np.vdot(left, slope)) for slope in _slopes(kernels, decays)]
        along.append(np.exp(logs[-1]) * left.trace())
        value = 0.5 * targets @ weights + np.log(factor.diagonal()).sum() + prior * ((logs - start) ** 2).sum()
        return float(value), 0.5 * np.array(along) + 2 * prior * (logs - start)

    bounds = [_BOUNDS] * len(start)
    found: FloatArray = minimize(surprise, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40}).x
    return _Scales(found, num_curved)


def inverse_diagonal(factor: FloatArray) -> FloatArray:
    """Return the (n,) diagonal of the inverse of a matrix, given its lower Cholesky factor (n, n)."""
    inverse, _ = dtrtri(factor, lower=1)
    return np.asarray((inverse**2).sum(axis=0))


def _inverse(factor: FloatArray) -> FloatArray:
    """Invert a matrix given its lower Cholesky factor, in a third of the time that solving for the identity takes."""
    lower, _ = dpotri(factor, lower=1)
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


def _total(scales: _Scales, likeness: _Likeness) -> FloatArray:
    return np.asarray(sum(_kernels(scales, likeness, _decays(scales, likeness))))


def _kernels(scales: _Scales, likeness: _Likeness, decays: Iterable[_Decay]) -> list[FloatArray]:
    """Return each kernel: Matérn kernels of smoothness 5/2, then those without a length scale."""
    curved = [decay * (1 + distance + distance**2 / 3) for distance, decay in decays]
    return curved + [variance * matrix for variance, matrix in zip(scales.constant, likeness.constant, strict=True)]


def _slopes(kernels: Sequence[FloatArray], decays: Sequence[_Decay]) -> Iterator[FloatArray]:
    """Yield the derivatives of each kernel by its log scales; the one by its log variance is the kernel itself."""
    for kernel, (distance, decay) in zip(kernels, decays, strict=False):
        yield from (kernel, decay * distance**2 * (1 + distance) / 3)
    yield from kernels[len(decays) :]


def _decays(scales: _Scales, likeness: _Likeness) -> Iterator[_Decay]:
    """Yield for each Matérn kernel distances in units of length / sqrt(5), and its variance times exp(-distance)."""
    log_variances = scales.logs[: 2 * scales.num_curved : 2]
    for log_variance, length, distances in zip(log_variances, scales.lengths, likeness.distances, strict=True):
        distance = np.sqrt(5) * distances / length
        yield distance, np.exp(log_variance - distance)
