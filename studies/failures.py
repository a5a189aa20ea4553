"""A model of failures: the probability that an evaluation gives a result.

Evaluations fail, for example, if a device lacks an operator or a training diverges. N architectures.
"""

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np
from sklearn.linear_model import LogisticRegression

from nasrlm.arrays import FloatArray, complete_mask
from spaces import SearchSpace
from studies.ledger import Entry
from studies.surrogates.graph_process import one_hot_genes

A = TypeVar("A", bound=Hashable)


STRENGTH = 10.0  # inverse of the regularisation; with 1, twice as many failures are needed to see a pattern
NUM_SUPPOSED, THEIR_WEIGHT = 64, 2.0  # random architectures that count as successes, and their weight in total


class Failures(Generic[A]):
    """A logistic regression, on one-hot genes, of whether an evaluation gives all results.

    An architecture counts as failed if it lacks any result, such as the latency on one of several devices.

    Args:
        space: the search space.
        evaluated: evaluated architectures with their results.
        num_goals: number of objectives that are goals. The objective of a constraint is ignored if no architecture has
            a result of it, because a study need not report it.
    """

    def __init__(self, space: SearchSpace[A], evaluated: Sequence[Entry], *, num_goals: int) -> None:
        self._space = space
        self._model: LogisticRegression | None = None
        if not evaluated:
            return
        results = np.array([entry.real for entry in evaluated])
        counts = ~np.isnan(results).all(axis=0) | (np.arange(results.shape[1]) < num_goals)
        answered = complete_mask(results[:, counts]).tolist()
        if not all(answered):
            rng = np.random.default_rng(0)
            supposed = [space.sample(rng) for _ in range(NUM_SUPPOSED)]
            genes = one_hot_genes(space, [*(space.parse(entry.architecture) for entry in evaluated), *supposed])
            weights = [1.0] * len(evaluated) + [THEIR_WEIGHT / NUM_SUPPOSED] * NUM_SUPPOSED
            answers = [*answered, *[True] * NUM_SUPPOSED]
            self._model = LogisticRegression(C=STRENGTH).fit(genes, answers, sample_weight=weights)

    def answer_probability(self, architectures: Sequence[A]) -> FloatArray:
        """Return the (N,) probabilities of a result; 1 as long as no evaluation has failed."""
        if self._model is None or not architectures:
            return np.ones(len(architectures))
        return np.asarray(self._model.predict_proba(one_hot_genes(self._space, architectures))[:, 1])
