"""A predictor corrected by a study's own real results, with a Gaussian process of each objective.

Of an objective that the predictor knows, the process is of what its own answers leave of the results, and goes by all
that it says of a text. One that it does not know, or of other spaces alone, is learned from the results themselves, by
what texts say of their networks as well, see ``studies.text_process``; or, where all networks are known beforehand, by
features of their graphs, see ``studies.graph_process``.

N texts, M objectives, Q quantiles, S samples, F features.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel

from nasrlm.arrays import FloatArray, standardised
from nasrlm.group_process import ROWS_TO_FIT_SCALES
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from studies.all_architectures import every_architecture
from studies.config import SearchConfig
from studies.features import Features, features_of
from studies.graph_process import GraphProcess, Networks, networks_of
from studies.memory import PredictorMemory, SamplingPredictor, TextMemory
from studies.scale import Scale
from studies.text_process import TextGroups, TextProcess
from studies.without_guesses import guessed_objectives, without_guesses

A = TypeVar("A", bound=Hashable)

# Architectures, each with its features of what is computed and of what a compiler leaves.
NetworkFeatures = tuple[Sequence[A], Sequence[Features], Sequence[Features]]

MIN_RESULTS = 3  # of an objective, to learn what the predictor lacks
MIN_RESULTS_OF_GRAPHS = 10  # to learn it from the networks' graphs alone
SPREAD = (0.1, 0.5, 0.9)  # quantiles from which the predictor's own uncertainty is taken
LEAST_SHARE = 0.1  # of the median that its low one counts as where logarithms are learned: it may be 0 or less


def every_network(
    config: SearchConfig, space: SearchSpace[A], known: Iterable[A] | None, *, progress: bool = False
) -> NetworkFeatures[A]:
    """All architectures that a search may look at, with their features.

    Args:
        config: of the search.
        space: to search.
        known: the only architectures that can be evaluated; None where all can.
        progress: show bars on stderr.

    Cost: a minute for 10,000 on two cores.
    """
    architectures = list(every_architecture(config.searched(space), known).values())
    computed = features_of(space, architectures, progress=progress)
    return architectures, computed, features_of(space, architectures, compiled=True, progress=progress)


class ProcessAdapter(Generic[A]):
    """Real results so far, to a predictor that has learned from them.

    Args:
        space: parses the notation, and draws the texts whose features give the scale.
        predictor: to start from; may know none of the objectives, though it has to know some other.
        objectives: to learn.
        to_text: architecture to the text that the predictor reads.
        pool_size: texts that give the features' scale.
        networks: gives all architectures that will ever be asked about, called once an objective is learned that the
            predictor does not know; None where these are too many.
        progress: show a bar on stderr while their texts are written.

    Cost: below a second an objective and hundred results, some seconds for thousands, beside all of the predictor's
    answers about every text that is looked at, each once, and, for objectives that it does not know, 2 to 8 ms to
    count what is in a text.
    """

    def __init__(
        self,
        space: SearchSpace[A],
        predictor: SamplingPredictor,
        objectives: Sequence[str],
        *,
        to_text: Callable[[A], str],
        pool_size: int = 100,
        networks: Callable[[], NetworkFeatures[A]] | None = None,
        progress: bool = False,
    ) -> None:
        self.space = space
        self.objectives = tuple(objectives)
        self.to_text = TextMemory.of(to_text)
        self.pool_size = pool_size
        self._given = predictor  # whose guesses are features too
        self._predictor = without_guesses(predictor, guessed_objectives(predictor, space, objectives))
        self._memory = PredictorMemory(predictor)
        self._all_networks, self._progress = networks, progress

    @cached_property
    def _networks(self) -> tuple[Networks, FloatArray]:
        """All of them, and (N, F) what the predictor says of each, standardised: costs add up, so no logarithms."""
        assert self._all_networks is not None, "only where they are known beforehand"
        architectures, computed, compiled = self._all_networks()
        self.to_text.write(architectures, progress=self._progress)
        texts = [self.to_text(architecture) for architecture in architectures]
        networks = networks_of(self.space, architectures, texts, computed, compiled)
        said = self._memory.predict(texts, self._given.objectives, (0.5,)).median
        return networks, standardised(said)

    @cached_property
    def _pool(self) -> list[str]:
        rng = np.random.default_rng(0)
        return [self.to_text(self.space.sample(rng)) for _ in range(self.pool_size)]

    @cached_property
    def _features(self) -> _Features:
        return _Features(self._memory, self._given.objectives, self._pool)

    @cached_property
    def _groups(self) -> TextGroups:
        return TextGroups(self._features.of, self._pool)

    def __call__(self, table: pd.DataFrame) -> CorrectedPredictor:
        """A predictor from a table with the column ``architecture`` and one an objective; NaN where there is none."""
        texts = [self.to_text(self.space.parse(notation)) for notation in table["architecture"]]
        processes: dict[str, _Learned] = {}
        for name in self.objectives:
            labels = table[name].to_numpy(dtype=np.float64)
            rows = np.flatnonzero(np.isfinite(labels))
            known = [texts[row] for row in rows]
            if name not in self._predictor.objectives and self._all_networks is not None:
                if len(rows) >= MIN_RESULTS_OF_GRAPHS:
                    processes[name] = GraphProcess(*self._networks, name, known, labels[rows])
            elif len(rows) < MIN_RESULTS:
                continue
            elif name in self._predictor.objectives:
                processes[name] = _fit(self._features, name, known, labels[rows])
            else:
                processes[name] = TextProcess(self._groups, name, known, labels[rows])
        return CorrectedPredictor(self._predictor, processes)


class _Features:
    """Medians of texts, standardised over a pool of them."""

    def __init__(self, memory: PredictorMemory, known: Sequence[str], pool: Sequence[str]) -> None:
        self.known = tuple(known)
        self._memory = memory
        values = self._medians(pool)
        self._scales = [Scale.of(name, values[:, column]) for column, name in enumerate(self.known)]
        scaled = self._scaled(values)
        self._mean, self._deviation = scaled.mean(axis=0), np.maximum(scaled.std(axis=0), 1e-9)

    def of(self, texts: Sequence[str]) -> FloatArray:
        """(N, F), F being the objectives that the predictor knows."""
        scaled = self._scaled(self._medians(texts))
        return np.asarray((scaled - self._mean) / self._deviation, dtype=np.float64)

    def own(self, name: str, scale: Scale, texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """(N,) medians and standard deviations of an objective, on a scale."""
        low, median, high = self._memory.predict(texts, (name,), SPREAD).values[:, 0].T
        if scale.kind == "log":
            low = np.maximum(low, LEAST_SHARE * median)
        low, median, high = map(scale.forward, (low, median, high))
        return median, np.maximum((high - low) / (norm.ppf(SPREAD[-1]) - norm.ppf(SPREAD[0])), 1e-9)

    def _medians(self, texts: Sequence[str]) -> FloatArray:
        return self._memory.predict(texts, self.known, (0.5,)).median

    def _scaled(self, medians: FloatArray) -> FloatArray:
        return np.stack([scale.forward(column) for scale, column in zip(self._scales, medians.T, strict=True)], axis=1)


@dataclass(frozen=True)
class _Process:
    """What was learned of one objective.

    Attributes:
        features: of texts.
        name: of the objective.
        scale: on which it was learned.
        regressor: of what the predictor's medians leave of the results, in units of ``spread``.
        spread: of the predictor's own distributions, on the scale.
    """

    features: _Features
    name: str
    scale: Scale
    regressor: GaussianProcessRegressor
    spread: float

    def quantiles(self, texts: Sequence[str], normal_quantiles: FloatArray) -> FloatArray:
        """(N, Q) labels at Q quantiles of a standard normal distribution."""
        mean, deviation = self._normal(texts)
        return self.scale.backward(mean[:, None] + deviation[:, None] * normal_quantiles)

    def sample(self, texts: Sequence[str], samples: int, rng: np.random.Generator) -> FloatArray:
        """(N, S) labels, each text's drawn on its own."""
        return self.quantiles(texts, rng.normal(size=(len(texts), samples)))

    def _normal(self, texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """(N,) means and standard deviations on the scale."""
        own, deviation = self.features.own(self.name, self.scale, texts)
        mean, uncertainty = self.regressor.predict(self.features.of(texts), return_std=True)
        return own + self.spread * mean, np.hypot(deviation, self.spread * uncertainty)


_Learned = _Process | GraphProcess | TextProcess


def _fit(features: _Features, name: str, texts: Sequence[str], labels: FloatArray) -> _Process:
    scale = Scale.of(name, labels)
    own, deviation = features.own(name, scale, texts)
    # The prior is the predictor: zero mean, and its own deviations as noise.
    spread = max(float(deviation.mean()), 1e-9)
    noise = (deviation / spread) ** 2 + 1e-6
    regressor = _regressor(features.of(texts), (scale.forward(labels) - own) / spread, noise)
    return _Process(features, name, scale, regressor, spread)


def _regressor(inputs: FloatArray, targets: FloatArray, noise: FloatArray) -> GaussianProcessRegressor:
    """Of all (N,) targets, with scales by the likelihood of up to ``ROWS_TO_FIT_SCALES`` of them."""
    some = np.linspace(0, len(targets) - 1, min(len(targets), ROWS_TO_FIT_SCALES)).round().astype(np.intp)
    scaled = GaussianProcessRegressor(_kernel(inputs.shape[1]), alpha=noise[some])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # at the end of a range is where it may be
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


class CorrectedPredictor:
    """Normal distributions on the scale of each objective that was learned; the predictor's own of the others.

    Attributes:
        objectives: that it can answer.
    """

    def __init__(self, predictor: SamplingPredictor, processes: Mapping[str, _Learned]) -> None:
        self._predictor = predictor
        self._processes = processes
        self.objectives = tuple(dict.fromkeys([*predictor.objectives, *processes]))

    def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Prediction:
        """(N, M, Q) quantiles in own units."""
        names = self.objectives if objectives is None else tuple(objectives)
        values = np.empty((len(texts), len(names), len(quantiles)))
        others = [column for column, name in enumerate(names) if name not in self._processes]
        if others and texts:
            values[:, others] = self._predictor.predict(texts, [names[column] for column in others], quantiles).values
        levels = np.asarray(norm.ppf(quantiles), dtype=np.float64)
        for column, process in self._learned(names, texts):
            values[:, column] = process.quantiles(texts, levels)
        return Prediction(names, tuple(quantiles), values)

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        """(N, M, S) values in own units.

        NOTE: the predictor has a seed of its own, or its draws and those of the processes would be made of the same
        random bits.
        """
        values = np.empty((len(texts), len(objectives), samples))
        others = [column for column, name in enumerate(objectives) if name not in self._processes]
        if others and texts:
            names = [objectives[column] for column in others]
            values[:, others] = self._predictor.sample(texts, names, samples, seed + 1)
        rng = np.random.default_rng(seed)
        for column, process in self._learned(objectives, texts):
            values[:, column] = process.sample(texts, samples, rng)
        return values

    def _learned(self, names: Sequence[str], texts: Sequence[str]) -> list[tuple[int, _Learned]]:
        if not texts:
            return []
        return [(column, self._processes[name]) for column, name in enumerate(names) if name in self._processes]
