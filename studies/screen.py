"""The evaluator of a search on predictions: real results where known, and else what passes the gate."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from spaces import SearchSpace
from studies.failures import Failures
from studies.gate import Decision, Gate
from studies.surrogates.memory import TextPredictor

A = TypeVar("A", bound=Hashable)


class Screen(Generic[A]):
    """Predictions for an engine to search on; an architecture that the gate prunes, or that is likely to have no real
    results, has no answer.

    Args:
        space: the search space.
        to_text: architecture to the text that the predictor reads.
        predictor: answers the gate's levels.
        gate: knows the front; decides.
        failures: knows what had no results.
        prunes: whether its decisions count; otherwise all objectives are predicted at once.
        results: (M,) real results by architecture key, certain.

    Attributes:
        decisions: by key, about every architecture without real results, in the order in which they were looked at.
        architectures: by key, the same.
    """

    def __init__(
        self,
        space: SearchSpace[A],
        to_text: Callable[[A], str],
        predictor: TextPredictor,
        gate: Gate,
        failures: Failures[A],
        *,
        prunes: bool,
        results: Mapping[str, FloatArray],
    ) -> None:
        self.space = space
        self.to_text = to_text
        self.predictor = predictor
        self.gate = gate
        self.failures = failures
        self.prunes = prunes
        self.results = results
        self.decisions: dict[str, Decision] = {}
        self.architectures: dict[str, A] = {}

    def look(self, architectures: Mapping[str, A]) -> None:
        """Decide about architectures by key, where there is neither a decision nor real results."""
        new = {key: x for key, x in architectures.items() if key not in self.results and key not in self.decisions}
        texts = [self.to_text(architecture) for architecture in new.values()]
        self.architectures |= new
        self.decisions |= zip(new, self._decide(texts), strict=True)

    def evaluate(self, architectures: Sequence[A]) -> Prediction:
        """(N, M, 3) values at the gate's levels; NaN where pruned, or where a failure is likelier than a result.

        NOTE: the levels that the prediction names are the first objective's, others may have a risk of their own.
        """
        keys = [self.space.architecture_key(architecture) for architecture in architectures]
        self.look(dict(zip(keys, architectures, strict=True)))
        shape = (len(keys), len(self.gate.objectives), 3)
        values = np.array([self._values(key) for key in keys], dtype=np.float64).reshape(shape)
        unknown = np.array([key not in self.results for key in keys])
        values[unknown & (self.failures.answer_probability(architectures) < 0.5)] = np.nan
        return Prediction(self.gate.objectives, self.gate.levels[0], values)

    def _decide(self, texts: Sequence[str]) -> list[Decision]:
        if self.prunes:
            return self.gate.check(texts, self.predictor)
        predicted = self.gate.predict(texts, self.predictor, range(len(self.gate.objectives)))
        return [Decision(row) for row in predicted]

    def _values(self, key: str) -> FloatArray:
        if key in self.results:
            return np.repeat(self.results[key][:, None], 3, axis=1)
        decision = self.decisions[key]
        return decision.values if decision.kept else np.full((len(self.gate.objectives), 3), np.nan)
