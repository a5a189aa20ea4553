"""Constraints on counts around a pymoo problem: the problem itself does not return them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pymoo.core.problem import Problem

from converters.tables.counts import named_counts
from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from nasrlm.pymoo import GatedProblem
from spaces import get_space

SPACE = get_space("nasbench201")
GOALS = ["max:accuracy@toy", "min:latency_ms@toy"]
SMALL, LARGE = (1, 1, 1, 1, 1, 1), (3, 3, 3, 3, 3, 3)
BOUND = 500_000


class Unsure:
    """A predictor to which any network may be the best."""

    objectives = ("accuracy@toy", "latency_ms@toy")

    def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Prediction:
        names = tuple(objectives or self.objectives)
        return Prediction(names, tuple(quantiles), np.ones((len(texts), len(names), 1)) * 100 * np.array(quantiles))

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        return np.ones((len(texts), len(objectives), samples))


class Counted(Problem):  # type: ignore[misc]
    """Answers the same for all rows of genes but those that fail, and remembers them."""

    def __init__(self, failing: Sequence[tuple[int, ...]] = ()) -> None:
        super().__init__(n_var=6, n_obj=2, xl=0, xu=4, vtype=int)
        self.rows: list[tuple[int, ...]] = []
        self.failing = failing

    def _evaluate(self, X: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        rows = [tuple(row) for row in X.tolist()]
        self.rows += rows
        out["F"] = np.array([[np.nan, np.nan] if row in self.failing else [-50.0, 3.0] for row in rows])


def test_bounds_on_counts_prune_and_are_passed_to_the_algorithm() -> None:
    problem = Counted()
    gated = GatedProblem(problem, SPACE, GOALS, Unsure(), constraints=[f"params@onnx<={BOUND}"])
    first = gated.evaluate(np.array([SMALL, LARGE]), return_as_dictionary=True)
    counts = named_counts(SPACE, [SPACE.decode(SMALL), SPACE.decode(LARGE)], ["params@onnx"])
    np.testing.assert_allclose(first["G"], counts / BOUND - 1)
    assert gated.gate.names == ("evaluation 0",)
    another = (1, 1, 1, 1, 1, 0)
    gated.evaluate(np.array([another, (3, 3, 3, 3, 3, 2)]))
    assert problem.rows == [SMALL, LARGE, another]
    assert "outside params@onnx<=500000" in gated.decisions[1].reason
    assert gated.propose(4).tolist()


def test_rows_without_a_result_are_not_learned_from_although_they_are_counted() -> None:
    gated = GatedProblem(Counted(failing=[SMALL]), SPACE, GOALS, Unsure(), constraints=["soft:params@onnx<=1e9"])
    tables: list[pd.DataFrame] = []

    def adapt(table: pd.DataFrame) -> Unsure:
        tables.append(table)
        return Unsure()

    learn = gated.adapt_callback(1, adapt=adapt)
    gated.evaluate(np.array([SMALL, LARGE]))
    learn(None)
    (table,) = tables
    assert table["architecture"].tolist() == [SPACE.format(SPACE.decode(LARGE))]
