"""Where an evaluator is likely to have no result: an operator that a device lacks, a training that diverges.

N architectures, F choices of genes.
"""

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np
from sklearn.linear_model import LogisticRegression

from nasrlm.arrays import FloatArray
from spaces import SearchSpace
from studies.ledger import Entry
from studies.pareto import complete_mask
from studies.surrogates.graph_process import one_hot_genes

A = TypeVar("A", bound=Hashable)


STRENGTH = 10.0  # of what results say against all choices being alike; 1 takes twice the failures to see a pattern
NUM_SUPPOSED, THEIR_WEIGHT = 64, 2.0  # random architectures that count as answered, and as how many results together


class Failures(Generic[A]):
    """What choices the architectures without results have in common, and not with all others.

    One that lacks a result which others have counts as without: an operator that one device lacks.

    Args:
        space: the search space.
        evaluated: what was asked about, with what results.
        num_goals: how many of the objectives are goals. Another one, of a constraint, counts for nothing as long as no
            network has a result of it: a study may never tell it.
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
        """(N,) how probable a result is; 1 as long as all that was asked about had one."""
        if self._model is None or not architectures:
            return np.ones(len(architectures))
        return np.asarray(self._model.predict_proba(one_hot_genes(self._space, architectures))[:, 1])
