"""The evaluator for a search on predictions, with known real results, and without architectures that the gate prunes.

N architectures, M objectives.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from studies.failures import Failures
from studies.gate import Decision, Gate
from studies.surrogates.learning import Model

A = TypeVar("A", bound=Hashable)


class Screen(Generic[A]):
    """Gives an engine known results or predictions; NaN if the gate prunes an architecture or it is likely to fail.

    Args:
        space: the search space.
        model: gives the quantiles at the gate's levels.
        gate: prunes by its front.
        failures: gives the probability that an evaluation has results.
        prunes: whether the gate prunes; otherwise all objectives are predicted at once.
        results: (M,) real results by architecture key.

    Attributes:
        decisions: decisions about architectures without real results, by key, in the order of prediction.
        architectures: these architectures, by key.
    """

    def __init__(
        self,
        space: SearchSpace[A],
        model: Model[A],
        gate: Gate,
        failures: Failures[A],
        *,
        prunes: bool,
        results: Mapping[str, FloatArray],
    ) -> None:
        self.space = space
        self.model = model
        self.gate = gate
        self.failures = failures
        self.prunes = prunes
        self.results = results
        self.decisions: dict[str, Decision] = {}
        self.architectures: dict[str, A] = {}

    def look(self, architectures: Mapping[str, A]) -> None:
        """Predict architectures, given by key, and decide about them, unless there is a decision or a real result."""
        new = {key: x for key, x in architectures.items() if key not in self.results and key not in self.decisions}
        self.architectures |= new
        self.decisions |= zip(new, self._decide(list(new.values())), strict=True)

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """Return (N, M, 3) values at the gate's levels; NaN if pruned, or if a failure is more probable than a result.

        NOTE: the prediction's levels are those of the first objective; others may have another risk.
        """
        keys = [self.space.architecture_key(architecture) for architecture in architectures]
        self.look(dict(zip(keys, architectures, strict=True)))
        shape = (len(keys), len(self.gate.objectives), 3)
        values = np.array([self._values(key) for key in keys], dtype=np.float64).reshape(shape)
        unknown = np.array([key not in self.results for key in keys])
        values[unknown & (self.failures.answer_probability(architectures) < 0.5)] = np.nan
        return Prediction(self.gate.objectives, self.gate.levels[0], values)

    def _decide(self, architectures: Sequence[A]) -> list[Decision]:
        if self.prunes:
            return self.model.check(self.gate, architectures)
        texts = [self.model.to_text(architecture) for architecture in architectures]
        predicted = self.gate.predict(texts, self.model.memory, range(len(self.gate.objectives)))
        return [Decision(row) for row in predicted]

    def _values(self, key: str) -> FloatArray:
        if key in self.results:
            return np.repeat(self.results[key][:, None], 3, axis=1)
        decision = self.decisions[key]
        return decision.values if decision.kept else np.full((len(self.gate.objectives), 3), np.nan)
