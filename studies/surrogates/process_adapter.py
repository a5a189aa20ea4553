"""Correct a predictor by a study's real results, with a Gaussian process per objective.

For an objective that the predictor knows, the process models its residuals (``residual_process``). An objective that
it does not know, or knows of other spaces only, is learned from the results alone, with predictions and counts of the
text as features (``text_process``), or, if all networks are known beforehand, with features of their graphs
(``graph_process``).

N networks, F features.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import pandas as pd
from tqdm import tqdm

from nasrlm.arrays import FloatArray, standardised
from nasrlm.objective import Objective
from spaces import SearchSpace
from studies.all_architectures import MOST_LOOKED_AT, every_architecture
from studies.surrogates.corrected_predictor import CorrectedPredictor, LearnedObjective
from studies.surrogates.features import Features, features_of
from studies.surrogates.graph_process import GraphProcess, Networks, networks_of
from studies.surrogates.known_only import guessed_objectives, without_guesses
from studies.surrogates.memory import BAR_AFTER, PredictorMemory, SamplingPredictor, TextMemory, of_space
from studies.surrogates.residual_process import PredictorFeatures, ResidualProcess
from studies.surrogates.text_process import TextGroups, TextProcess

A = TypeVar("A", bound=Hashable)

# Architectures, with features of their canonical graphs and of the graphs that a compiler leaves of them.
NetworkFeatures = tuple[Sequence[A], Sequence[Features], Sequence[Features]]

MIN_RESULTS = 3  # fewest results of an objective to learn from
MIN_RESULTS_OF_GRAPHS = 10  # the same for an objective that is learned from graphs


def check_readable(space: SearchSpace[A]) -> None:
    """Check that all architectures of a space are few enough for ``every_network``, where nothing else bounds them.

    Raises:
        ValueError: the space is too large.
    """
    if space.size > MOST_LOOKED_AT:
        raise ValueError(
            f"graphs: expected a space of at most {MOST_LOOKED_AT:,} architectures, got {space.name} with "
            f"{space.size:.2g}. Learn from texts instead."
        )


def every_network(
    space: SearchSpace[A], searched: SearchSpace[A], known: Iterable[A] | None, *, progress: bool = False
) -> NetworkFeatures[A]:
    """Return all architectures that a search may evaluate, with their features.

    Args:
        space: the search space.
        searched: the same space with the keys of the search, see ``SearchConfig.searched``.
        known: the only architectures that can be evaluated; None for all of the space.
        progress: show bars on stderr.

    Cost: a minute for 10,000 on two cores.
    """
    architectures = list(every_architecture(searched, known).values())
    computed = features_of(space, architectures, progress=progress)
    return architectures, computed, features_of(space, architectures, compiled=True, progress=progress)


class ProcessAdapter(Generic[A]):
    """Converts a table of real results to a predictor that has learned from them.

    Args:
        space: the search space, which parses notations and draws the pool of texts.
        predictor: predictor to start from; of a ``nasrlm.Predictor``, its ``of_space``. It must know some objective,
            not necessarily one of those to learn.
        objectives: names to learn.
        to_text: converts an architecture to the text that the predictor reads.
        pool_size: number of texts by which features are standardised.
        networks: returns all architectures that will ever be predicted; called when an objective that the predictor
            does not know is first learned. None if they are too many.
        progress: show bars on stderr while texts are written.

    Cost: below a second per objective for a hundred results, some seconds for thousands. Besides, the predictor
    predicts each text once, and for objectives that it does not know, each text is counted in 3 to 11 ms.
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
        self._given = predictor = of_space(predictor, space)  # its guesses are used as features
        self._predictor = without_guesses(predictor, guessed_objectives(predictor, space, objectives))
        self._memory = PredictorMemory(predictor)
        self._all_networks, self._progress = networks, progress

    @cached_property
    def _networks(self) -> Networks:
        assert self._all_networks is not None, "only where they are known beforehand"
        architectures, computed, compiled = self._all_networks()
        self.to_text.write(architectures, progress=self._progress)
        texts = [self.to_text(architecture) for architecture in architectures]
        said = self._memory.predict(texts, self._given.objectives, (0.5,)).median
        return networks_of(
            self.space,
            architectures,
            texts,
            computed,
            compiled,
            for_accuracies=self._predicted_accuracies(texts),
            for_costs=standardised(said),
            progress=self._progress,
        )

    def _predicted_accuracies(self, texts: Sequence[str]) -> FloatArray:
        """Return the (N, F) predictions of accuracies that were learned from networks of this space; F may be 0."""
        names = self._given.objectives
        guessed = guessed_objectives(self._given, self.space, names)
        known = [name for name in names if Objective.parse(name).is_accuracy and name not in guessed]
        return PredictorFeatures(self._memory, known, texts).of(texts) if known else np.empty((len(texts), 0))

    @cached_property
    def _pool(self) -> list[str]:
        rng = np.random.default_rng(0)
        drawn = [self.space.sample(rng) for _ in range(self.pool_size)]
        bar = tqdm(drawn, "learn", unit="text", delay=BAR_AFTER, leave=False, disable=not self._progress)
        return [self.to_text(architecture) for architecture in bar]

    @cached_property
    def _features(self) -> PredictorFeatures:
        return PredictorFeatures(self._memory, self._given.objectives, self._pool)

    @cached_property
    def _groups(self) -> TextGroups:
        return TextGroups(self._features.of, self._pool)

    def __call__(self, table: pd.DataFrame) -> CorrectedPredictor:
        """Return a predictor that has learned from a table: ``architecture`` and a column per objective, may be NaN."""
        texts = [self.to_text(self.space.parse(notation)) for notation in table["architecture"]]
        processes: dict[str, LearnedObjective] = {}
        for name in self.objectives:
            labels = table[name].to_numpy(dtype=np.float64)
            rows = np.flatnonzero(np.isfinite(labels))
            is_known = name in self._predictor.objectives
            by_graphs = not is_known and self._all_networks is not None
            if len(rows) < (MIN_RESULTS_OF_GRAPHS if by_graphs else MIN_RESULTS):
                continue
            results = [texts[row] for row in rows], labels[rows]
            if is_known:
                processes[name] = ResidualProcess(self._features, name, *results)
            elif by_graphs:
                processes[name] = GraphProcess(self._networks, name, *results)
            else:
                processes[name] = TextProcess(self._groups, name, *results)
        return CorrectedPredictor(self._predictor, processes)
