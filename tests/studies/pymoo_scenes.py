"""A pymoo problem of the toy space, and a gate around it."""

from typing import Any

import numpy as np
from pymoo.core.problem import Problem

from nasrlm.pymoo import GatedProblem
from tests.studies.scenes import SPACE, Row, ToyPredictor, true_values

SPACE_ROWS = [row.genes for row in {SPACE.architecture_key(row): row for row in SPACE.enumerate()}.values()]
GOALS = ["max:accuracy@toy", "min:latency_ms@toy"]


def to_architecture(genes: Any) -> Row:
    return Row(tuple(int(gene) for gene in genes))


def make_gated(problem: Problem, predictor: ToyPredictor, goals: list[str] = GOALS, **options: Any) -> Any:
    options = {"to_architecture": to_architecture, "to_text": SPACE.format, **options}
    return GatedProblem(problem, SPACE, goals, predictor, **options)


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
