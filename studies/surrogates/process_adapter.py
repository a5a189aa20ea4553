"""A predictor corrected by a study's own real results, with a Gaussian process of each objective.

Of an objective that the predictor knows, the process is of what its own answers leave of the results, and goes by all
that it says of a text. One that it does not know, or of other spaces alone, is learned from the results themselves, by
what texts say of their networks as well (``text_process``); or, where all networks are known beforehand, by features of
their graphs (``graph_process``).

N texts, M objectives, Q quantiles, S samples, F features.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import pandas as pd

from nasrlm.arrays import FloatArray, standardised
from spaces import SearchSpace
from studies.all_architectures import every_architecture
from studies.config import SearchConfig
from studies.surrogates.corrected_predictor import CorrectedPredictor, LearnedObjective
from studies.surrogates.features import Features, features_of
from studies.surrogates.graph_process import GraphProcess, Networks, networks_of
from studies.surrogates.memory import PredictorMemory, SamplingPredictor, TextMemory
from studies.surrogates.residual_process import PredictorFeatures, ResidualProcess
from studies.surrogates.text_process import TextGroups, TextProcess
from studies.surrogates.without_guesses import guessed_objectives, without_guesses

A = TypeVar("A", bound=Hashable)

# Architectures, each with its features of what is computed and of what a compiler leaves.
NetworkFeatures = tuple[Sequence[A], Sequence[Features], Sequence[Features]]

MIN_RESULTS = 3  # of an objective, to learn what the predictor lacks
MIN_RESULTS_OF_GRAPHS = 10  # to learn it from the networks' graphs alone


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
        """All known networks, and (N, F) standardised predictions for them; not logarithms, as costs add up."""
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
    def _features(self) -> PredictorFeatures:
        return PredictorFeatures(self._memory, self._given.objectives, self._pool)

    @cached_property
    def _groups(self) -> TextGroups:
        return TextGroups(self._features.of, self._pool)

    def __call__(self, table: pd.DataFrame) -> CorrectedPredictor:
        """A predictor from a table with the column ``architecture`` and one an objective; NaN where there is none."""
        texts = [self.to_text(self.space.parse(notation)) for notation in table["architecture"]]
        processes: dict[str, LearnedObjective] = {}
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
                processes[name] = ResidualProcess.fit(self._features, name, known, labels[rows])
            else:
                processes[name] = TextProcess(self._groups, name, known, labels[rows])
        return CorrectedPredictor(self._predictor, processes)
