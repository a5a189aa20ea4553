"""A predictor corrected by a study's own real results, with a Gaussian process of each objective.

What the predictor says of a text, all its objectives, are the features. Of an objective that it knows, the process is
of what is left of the results; of one that it does not know, of the results themselves.

N texts, M objectives, Q quantiles, S samples, F features.
"""

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel, WhiteKernel

from nasrlm.objective import FloatArray, Objective
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from studies.memory import PredictorMemory, SamplingPredictor

A = TypeVar("A", bound=Hashable)

FEWEST = 3  # results of an objective from which anything is learned
SPREAD = (0.1, 0.5, 0.9)  # quantiles from which the predictor's own uncertainty is taken
BEST_ACCURACY = 100.5  # percent; half above 100, so that the logarithm of what is missing stays finite


class ProcessAdapter(Generic[A]):
    """Real results so far, to a predictor that has learned from them.

    Args:
        space: parses the notation, and draws the texts whose features give the scale.
        predictor: to start from; may know none of the objectives, though it has to know some other.
        objectives: to learn.
        to_text: architecture to the text that the predictor reads.
        pool_size: texts that give the features' scale.
        seed: of these texts.

    Cost: below a second an objective and hundred results, beside all of the predictor's answers about every text that
    is looked at, each once.
    """

    def __init__(
        self,
        space: SearchSpace[A],
        predictor: SamplingPredictor,
        objectives: Sequence[str],
        *,
        to_text: Callable[[A], str],
        pool_size: int = 100,
        seed: int = 0,
    ) -> None:
        self.space = space
        self.objectives = tuple(objectives)
        self.to_text = to_text
        self.pool_size = pool_size
        self.seed = seed
        self._predictor = predictor

    @cached_property
    def _features(self) -> "_Features":
        rng = np.random.default_rng(self.seed)
        return _Features(self._predictor, [self.to_text(self.space.sample(rng)) for _ in range(self.pool_size)])

    def __call__(self, table: pd.DataFrame) -> "CorrectedPredictor":
        """A predictor from a table with the column ``architecture`` and one an objective; NaN where there is none."""
        texts = [self.to_text(self.space.parse(notation)) for notation in table["architecture"]]
        processes = {}
        for name in self.objectives:
            labels = table[name].to_numpy(dtype=np.float64)
            rows = np.flatnonzero(np.isfinite(labels))
            if len(rows) >= FEWEST:
                processes[name] = _fit(self._features, name, [texts[row] for row in rows], labels[rows])
        return CorrectedPredictor(self._predictor, self._features, processes)


class _Features:
    """What a predictor says of texts, standardised over a pool of them; each text is asked about once."""

    def __init__(self, predictor: SamplingPredictor, pool: Sequence[str]) -> None:
        self.known = predictor.objectives
        self._memory = PredictorMemory(predictor)
        medians = self._medians(pool)
        self._scales = [Scale.of(name, medians[:, column]) for column, name in enumerate(self.known)]
        values = self._scaled(medians)
        self._mean, self._deviation = values.mean(axis=0), np.maximum(values.std(axis=0), 1e-9)

    def of(self, texts: Sequence[str]) -> FloatArray:
        """(N, F), F being the objectives that the predictor knows."""
        return np.asarray((self._scaled(self._medians(texts)) - self._mean) / self._deviation, dtype=np.float64)

    def own(self, name: str, scale: "Scale", texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """(N,) medians and standard deviations of an objective, on a scale; all 0 of one that is not known."""
        if name not in self.known:
            return np.zeros(len(texts)), np.zeros(len(texts))
        low, median, high = scale.to(self._memory.predict(texts, (name,), SPREAD).values[:, 0]).T
        return median, np.maximum((high - low) / (norm.ppf(SPREAD[-1]) - norm.ppf(SPREAD[0])), 1e-9)

    def _medians(self, texts: Sequence[str]) -> FloatArray:
        return self._memory.predict(texts, self.known, (0.5,)).median

    def _scaled(self, medians: FloatArray) -> FloatArray:
        return np.stack([scale.to(column) for scale, column in zip(self._scales, medians.T, strict=True)], axis=1)


@dataclass(frozen=True)
class Scale:
    """On which an objective is learned: costs multiply, and so do errors in percent; increasing.

    Attributes:
        kind: "error", "log" or "linear".
    """

    kind: str

    @classmethod
    def of(cls, name: str, values: FloatArray) -> "Scale":
        """That of an objective with such values."""
        if "accuracy" in Objective.parse(name).metric and ((values > 0) & (values <= 100)).all():
            return cls("error")
        return cls("log" if (values > 0).all() else "linear")

    def to(self, values: FloatArray) -> FloatArray:
        """Onto the scale; what lies beyond its ends counts as the end."""
        if self.kind == "error":
            return np.asarray(-np.log(BEST_ACCURACY - np.minimum(values, 100)), dtype=np.float64)
        return np.asarray(np.log(np.maximum(values, 1e-12)) if self.kind == "log" else values, dtype=np.float64)

    def back(self, values: FloatArray) -> FloatArray:
        """Values in the objective's unit."""
        if self.kind == "error":
            return np.asarray(BEST_ACCURACY - np.exp(-values), dtype=np.float64)
        return np.asarray(np.exp(values) if self.kind == "log" else values, dtype=np.float64)


@dataclass(frozen=True)
class _Process:
    """What was learned of one objective.

    Attributes:
        regressor: of what is left of the results, in units of ``spread``.
        mean: of the results, on the scale, beyond what the predictor says.
        spread: of the results, likewise.
    """

    name: str
    scale: Scale
    regressor: GaussianProcessRegressor
    mean: float
    spread: float

    def normal(self, features: _Features, texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """(N,) means and standard deviations on the scale."""
        own, deviation = features.own(self.name, self.scale, texts)
        mean, uncertainty = self.regressor.predict(features.of(texts), return_std=True)
        return own + self.mean + self.spread * mean, np.hypot(deviation, self.spread * uncertainty)


def _fit(features: _Features, name: str, texts: Sequence[str], labels: FloatArray) -> _Process:
    scale, known = Scale.of(name, labels), name in features.known
    own, deviation = features.own(name, scale, texts)
    left = scale.to(labels) - own
    # Of a known objective the prior is the predictor: zero mean, and its own deviations as noise.
    mean = 0.0 if known else float(left.mean())
    spread = max(float(deviation.mean() if known else left.std()), 1e-9)
    inputs = features.of(texts)
    regressor = GaussianProcessRegressor(_kernel(inputs.shape[1], known), alpha=(deviation / spread) ** 2 + 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # at the end of a range is where it may be
        regressor.fit(inputs, (left - mean) / spread)
    return _Process(name, scale, regressor, mean, spread)


def _kernel(num_features: int, known: bool) -> Kernel:
    amplitude = (1e-3, 1e1)
    linear = ConstantKernel(1 / num_features, (amplitude[0] / num_features, amplitude[1] / num_features)) * DotProduct(
        1.0, "fixed"
    )
    curved = ConstantKernel(0.3, amplitude) * RBF(
        np.sqrt(num_features), (0.2 * num_features**0.5, 3 * num_features**0.5)
    )
    return linear + curved if known else linear + curved + WhiteKernel(0.1, (1e-2, 1.0))


class CorrectedPredictor:
    """Normal distributions on the scale of each objective that was learned; the predictor's own of the others.

    Attributes:
        objectives: that it can answer.
    """

    def __init__(self, predictor: SamplingPredictor, features: _Features, processes: dict[str, _Process]) -> None:
        self._predictor = predictor
        self._features = features
        self._processes = processes
        self.objectives = tuple(dict.fromkeys([*predictor.objectives, *processes]))

    def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Prediction:
        """(N, M, Q) quantiles in own units."""
        names = self.objectives if objectives is None else tuple(objectives)
        values = np.empty((len(texts), len(names), len(quantiles)))
        others = [column for column, name in enumerate(names) if name not in self._processes]
        if others and texts:
            values[:, others] = self._predictor.predict(texts, [names[column] for column in others], quantiles).values
        levels = norm.ppf(quantiles)
        for column, process in self._learned(names, texts):
            mean, deviation = process.normal(self._features, texts)
            values[:, column] = process.scale.back(mean[:, None] + deviation[:, None] * levels)
        return Prediction(names, tuple(quantiles), values)

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        """(N, M, S) values in own units."""
        values = np.empty((len(texts), len(objectives), samples))
        others = [column for column, name in enumerate(objectives) if name not in self._processes]
        if others and texts:
            names = [objectives[column] for column in others]
            values[:, others] = self._predictor.sample(texts, names, samples, seed)
        drawn = np.random.default_rng(seed).normal(size=values.shape)
        for column, process in self._learned(objectives, texts):
            mean, deviation = process.normal(self._features, texts)
            values[:, column] = process.scale.back(mean[:, None] + deviation[:, None] * drawn[:, column])
        return values

    def _learned(self, names: Sequence[str], texts: Sequence[str]) -> list[tuple[int, _Process]]:
        if not texts:
            return []
        return [(column, self._processes[name]) for column, name in enumerate(names) if name in self._processes]
