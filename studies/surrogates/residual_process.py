"""A Gaussian process of the residuals of a predictor, with all of the predictor's medians of a text as features.

N texts, F features.
"""

import warnings
from collections.abc import Sequence

import numpy as np
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel

from nasrlm.adaptation.group_process import ROWS_TO_FIT_SCALES
from nasrlm.arrays import FloatArray, units_of
from studies.surrogates.corrected_predictor import LearnedObjective
from studies.surrogates.memory import PredictorMemory
from studies.surrogates.scale import Scale

SPREAD = (0.1, 0.5, 0.9)  # quantiles that give the predictor's own standard deviation
LEAST_SHARE = 0.1  # smallest ratio of low quantile to median on a logarithmic scale, since low may be 0 or less


class PredictorFeatures:
    """The predictor's medians as features of texts, standardised over a pool of texts; 0 if constant there.

    Args:
        memory: the predictor with its cache.
        known: F names of objectives that the predictor knows.
        pool: texts of the space.
    """

    def __init__(self, memory: PredictorMemory, known: Sequence[str], pool: Sequence[str]) -> None:
        self.known = tuple(known)
        self._memory = memory
        values = self._medians(pool)
        self._scales = [Scale.of(name, values[:, column]) for column, name in enumerate(self.known)]
        scaled = self._scaled(values)
        self._mean, self._units = scaled.mean(axis=0), units_of(scaled)

    def of(self, texts: Sequence[str]) -> FloatArray:
        """Return the (N, F) features of N texts."""
        scaled = self._scaled(self._medians(texts))
        return np.asarray((scaled - self._mean) / self._units, dtype=np.float64)

    def own(self, name: str, scale: Scale, texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Return the (N,) predicted medians and standard deviations of an objective on a scale."""
        low, median, high = self._memory.predict(texts, (name,), SPREAD).values[:, 0].T
        if scale.kind == "log":
            low = np.maximum(low, LEAST_SHARE * median)
        low, median, high = map(scale.forward, (low, median, high))
        return median, np.maximum((high - low) / (norm.ppf(SPREAD[-1]) - norm.ppf(SPREAD[0])), 1e-9)

    def _medians(self, texts: Sequence[str]) -> FloatArray:
        return self._memory.predict(texts, self.known, (0.5,)).median

    def _scaled(self, medians: FloatArray) -> FloatArray:
        return np.stack([scale.forward(column) for scale, column in zip(self._scales, medians.T, strict=True)], axis=1)


class ResidualProcess(LearnedObjective):
    """An objective that the predictor knows, corrected by a Gaussian process of its residuals.

    The prior is the predictor: residuals, results minus predicted medians, have mean zero, and the predictor's standard
    deviations as noise.

    Args:
        features: features of texts.
        name: name of the objective.
        texts: n texts with results.
        labels: (n,) results in own unit.
    """

    def __init__(self, features: PredictorFeatures, name: str, texts: Sequence[str], labels: FloatArray) -> None:
        self._features, self._name = features, name
        self.scale: Scale = Scale.of(name, labels)
        own, deviation = features.own(name, self.scale, texts)
        self._unit = max(float(deviation.mean()), 1e-9)  # of residuals
        noise = (deviation / self._unit) ** 2 + 1e-6
        self._regressor = _regressor(features.of(texts), (self.scale.forward(labels) - own) / self._unit, noise)

    def normal(self, texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Return the (N,) means and standard deviations on the scale."""
        own, deviation = self._features.own(self._name, self.scale, texts)
        mean, uncertainty = self._regressor.predict(self._features.of(texts), return_std=True)
        return own + self._unit * mean, np.hypot(deviation, self._unit * uncertainty)


def _regressor(inputs: FloatArray, targets: FloatArray, noise: FloatArray) -> GaussianProcessRegressor:
    """Fit a Gaussian process to all (n,) targets, with hyperparameters from at most ``ROWS_TO_FIT_SCALES`` of them."""
    some = np.linspace(0, len(targets) - 1, min(len(targets), ROWS_TO_FIT_SCALES)).round().astype(np.intp)
    scaled = GaussianProcessRegressor(_kernel(inputs.shape[1]), alpha=noise[some])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a hyperparameter may lie at a bound
        scaled.fit(inputs[some], targets[some])
    return GaussianProcessRegressor(scaled.kernel_, alpha=noise, optimizer=None).fit(inputs, targets)


def _kernel(num_features: int) -> Kernel:
    amplitude = (1e-3, 1e1)
    linear = ConstantKernel(1 / num_features, (amplitude[0] / num_features, amplitude[1] / num_features)) * DotProduct(
        1.0, "fixed"
    )
    curved = ConstantKernel(0.3, amplitude) * RBF(
        np.sqrt(num_features), (0.2 * num_features**0.5, 3 * num_features**0.5)
    )
    return linear + curved
