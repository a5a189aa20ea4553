"""The gate around a pymoo problem of the user's own."""

from typing import Any

import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.problem import Problem
from pymoo.operators.sampling.rnd import IntegerRandomSampling
from pymoo.optimize import minimize

from studies.pymoo_gate import GatedProblem
from tests.studies.scenes import Row, ToyPredictor, ToySpace, true_values

SPACE = ToySpace()
GOALS = ["max:accuracy@toy", "min:latency_ms@toy"]


def to_text(genes: Any) -> str:
    return SPACE.format(Row(tuple(int(gene) for gene in genes)))


class Bench(Problem):  # type: ignore[misc]
    """Negated accuracy, and latency, with energy at most 15; remembers its rows."""

    def __init__(self, num_constraints: int = 1) -> None:
        super().__init__(n_var=4, n_obj=2, n_ieq_constr=num_constraints, xl=0, xu=np.array([4, 4, 4, 3]), vtype=int)
        self.rows: list[tuple[int, ...]] = []

    def _evaluate(self, X: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        self.rows += [tuple(int(gene) for gene in row) for row in X]
        values = np.array([true_values(Row(row)) for row in self.rows[-len(X) :]])
        out["F"] = values[:, :2] * [-1, 1]
        out["G"] = values[:, [2] * self.n_ieq_constr] - 15


class Tolerant(ToyPredictor):
    """Rows of three equal genes are no architectures of the toy space, but of this bench."""

    def _centres(self, texts: Any, objectives: Any) -> Any:
        rows = [Row(tuple(map(int, text.split("-")))) for text in texts]
        columns = [0, 1][: len(objectives)] if len(objectives) > 1 else [GOALS.index(_goal(objectives[0]))]
        return np.array([true_values(row) + self.sigma * self._errors(row) for row in rows])[:, columns]


def _goal(objective: str) -> str:
    return next(goal for goal in GOALS if goal.endswith(objective))


@pytest.mark.parametrize("num_constraints", [0, 1])
def test_only_what_may_move_the_front_is_evaluated(num_constraints: int) -> None:
    bench = Bench(num_constraints)
    gated = GatedProblem(bench, Tolerant(sigma=0.1), GOALS, to_text=to_text)
    algorithm = NSGA2(pop_size=20, sampling=IntegerRandomSampling())
    result = minimize(gated, algorithm, ("n_gen", 5), seed=1)
    pruned = [decision for decision in gated.decisions if not decision.kept]
    assert len(pruned) > 5
    kept = len(gated.decisions) - len(pruned)
    assert kept < len(bench.rows) <= 20 + kept  # the first population is not asked about
    assert all("dominated by evaluation " in decision.reason for decision in pruned)
    evaluated = np.array([true_values(Row(row)) for row in bench.rows])
    for accuracy, latency in result.F * [-1, 1]:  # what is found was evaluated, and never a stand-in
        assert (np.isclose(evaluated[:, 0], accuracy) & np.isclose(evaluated[:, 1], latency)).any()


def test_pruned_rows_rank_last() -> None:
    gated = GatedProblem(Bench(), Tolerant(sigma=0.1), GOALS, to_text=to_text)
    first = gated.evaluate(np.array([[4, 3, 1, 3], [1, 0, 0, 0]]), return_as_dictionary=True)
    answer = gated.evaluate(np.array([[4, 4, 3, 3], [2, 1, 0, 0]]), return_as_dictionary=True)
    assert [decision.kept for decision in gated.decisions] == [False, True]
    np.testing.assert_array_equal(answer["F"][0], np.vstack([first["F"], answer["F"][1:]]).max(axis=0))
    assert answer["G"][0, 0] == max(first["G"].max(), answer["G"][1, 0])
    everything = gated.evaluate(np.array([[4, 4, 3, 3]]), return_as_dictionary=True)
    np.testing.assert_array_equal(everything["F"], answer["F"][:1])


def test_goals_and_constraints_have_to_fit() -> None:
    for options in ({"goals": GOALS[:1]}, {"goals": GOALS, "constraints": ["energy_mj@toy<=3"]}):
        with pytest.raises(ValueError, match="GatedProblem: expected 2 goals and constraints on them"):
            GatedProblem(Bench(), Tolerant(), options.pop("goals"), to_text=to_text, **options)  # type: ignore[arg-type]
