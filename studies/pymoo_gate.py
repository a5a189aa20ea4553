"""The Pareto gate around a pymoo problem of the user's own."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pymoo.core.problem import Problem

from nasrlm.objective import FloatArray, Goal, from_losses
from studies.config import Constraint
from studies.gate import Decision, Gate
from studies.guide import Guide
from studies.memory import PredictorMemory, TextPredictor


class GatedProblem(Problem):  # type: ignore[misc]
    """A problem of which only those rows are evaluated that may still move the front.

    pymoo has no word for a pruned row, so it is told the worst values seen so far: any algorithm ranks it last. Until
    there is a first result, everything is evaluated.

    Args:
        problem: minimises the goals' losses, maximised objectives being negated.
        predictor: a ``nasrlm.Predictor`` that knows the objectives.
        goals: one for each of the problem's objectives, in its order: ``max:accuracy@cifar10``.
        to_text: a row of X to the text that the predictor reads.
        constraints: on the goals' objectives, such as ``latency_ms@pixel3<=10``.
        risk: probability, in (0, 0.5), that one objective is better than the gate allows for.

    Attributes:
        decisions: about every row that the gate was asked for, in order.

    Raises:
        ValueError: the goals are not as many as the problem's objectives, or a constraint is on another objective.
    """

    def __init__(
        self,
        problem: Problem,
        predictor: TextPredictor,
        goals: Sequence[str],
        *,
        to_text: Callable[[Any], str],
        constraints: Sequence[str] = (),
        risk: float = Guide.risk,
    ) -> None:
        super().__init__(
            n_var=problem.n_var,
            n_obj=problem.n_obj,
            n_ieq_constr=problem.n_ieq_constr,
            n_eq_constr=problem.n_eq_constr,
            xl=problem.xl,
            xu=problem.xu,
            vtype=problem.vtype,
        )
        parsed = [Goal.parse(goal) for goal in goals]
        self.gate = Gate(parsed, [Constraint.parse(constraint) for constraint in constraints], risk=risk)
        if len(self.gate.objectives) != len(parsed) or len(parsed) != problem.n_obj:
            raise ValueError(
                f"GatedProblem: expected {problem.n_obj} goals and constraints on them, got "
                f"{', '.join(map(str, (*parsed, *self.gate.constraints)))}."
            )
        self.problem = problem
        self.to_text = to_text
        self.decisions: list[Decision] = []
        self._memory = PredictorMemory(predictor)
        self._worst: dict[str, FloatArray] = {}
        self._evaluated = 0

    def _evaluate(self, X: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        texts = [self.to_text(row) for row in X]
        kept = np.ones(len(texts), dtype=np.bool_)
        if self._worst:
            decisions = self.gate.check(texts, self._memory)
            self.decisions += decisions
            kept = np.array([decision.kept for decision in decisions])
        answers = self.problem.evaluate(X[kept], *args, return_as_dictionary=True, **kwargs) if kept.any() else {}
        for name in ("F", "G", "H"):
            if name in answers:
                worst = np.max([answers[name].max(axis=0), self._worst.get(name, answers[name][0])], axis=0)
                self._worst[name] = worst
        for name, worst in self._worst.items():
            out[name] = np.tile(worst, (len(texts), 1))
            if kept.any():
                out[name][kept] = answers[name]
        if kept.any():
            names = [f"evaluation {self._evaluated + index}" for index in range(int(kept.sum()))]
            self._evaluated += len(names)
            self.gate.add(names, from_losses(self.gate.goals, answers["F"]))
