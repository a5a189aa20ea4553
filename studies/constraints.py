"""Hard and soft bounds on objectives: feasibility and preferred losses.

N architectures, M objectives, G goals, C constraints.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np

from nasrlm.arguments import check_flag
from nasrlm.arrays import BoolArray, FloatArray, complete_mask
from nasrlm.callers import warn_caller
from nasrlm.objective import Goal, Objective, to_losses


@dataclass(frozen=True)
class Constraint:
    """A bound that every member of the front must meet, for example ``latency_ms@pixel3<=10``.

    A soft constraint, ``soft:latency_ms@pixel3<=10``, is only a preference: an architecture that breaks it is feasible
    and may be on the front, but a search counts it as worse, see ``preferred_losses``.

    Attributes:
        objective: name of the objective.
        at_most: whether the bound is an upper one; otherwise it is a lower one.
        bound: in the objective's own unit.
        soft: whether it is a preference.

    Raises:
        ValueError: the name is not that of an objective, the bound is not a finite number, or a flag is neither true
            nor false.
    """

    objective: str
    at_most: bool
    bound: float
    soft: bool = False

    def __post_init__(self) -> None:
        Objective.parse(self.objective)
        bound: Any = self.bound
        if not isinstance(bound, Real) or not math.isfinite(bound):
            raise ValueError(f"constraint: expected a finite number as bound, got {bound!r}.")
        check_flag("constraint: at_most", self.at_most)
        check_flag("constraint: soft", self.soft)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``objective<=number`` or ``objective>=number``, preceded by ``soft:`` if soft.

        Warns of an accuracy bound between 0 and 1, because accuracies are in percent.

        Raises:
            ValueError: there is neither sign, the name is invalid, or the bound is not a finite number.
        """
        match = re.fullmatch(r"\s*(soft:)?([^<>=:\s]+)\s*(<=|>=)\s*(\S+)\s*", text) if isinstance(text, str) else None
        try:
            if match is None or not np.isfinite(float(match[4])):
                raise ValueError
            bound = float(match[4])
        except ValueError:
            raise ValueError(
                f"constraint: expected objective<=number or objective>=number, got {text!r}. "
                "Example: latency_ms@pixel3<=10, or soft:latency_ms@pixel3<=10."
            ) from None
        objective = Objective.parse(match[2])
        if objective.seems_fraction(bound):
            warn_caller(
                f"constraint: expected an accuracy in percent, 0 to 100, got {text.strip()!r}. "
                f"If it is a fraction, write {100 * bound:g}."
            )
        return cls(objective.name, match[3] == "<=", bound, soft=match[1] is not None)

    def violation(self, values: FloatArray) -> FloatArray:
        """Return how far values are beyond the bound, relative to it so that several constraints can be added up.

        Args:
            values: (N,) in the objective's own unit.

        Returns:
            (N,), 0 or less if the bound is met; NaN stays NaN. For a bound of 0 it is in the objective's unit.
        """
        excess = values - self.bound if self.at_most else self.bound - values
        return np.asarray(excess / (abs(self.bound) or 1.0), dtype=np.float64)

    def __str__(self) -> str:
        bound = repr(float(self.bound)).removesuffix(".0")  # repr has the fewest digits that give the same number
        return f"{'soft:' if self.soft else ''}{self.objective}{'<=' if self.at_most else '>='}{bound}"


def objectives_of(goals: Sequence[Goal], constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """Return the goals' objectives, then those of constraints only."""
    constrained = (constraint.objective for constraint in constraints)
    return tuple(dict.fromkeys([*(goal.objective for goal in goals), *constrained]))


def check_met_together(constraints: Sequence[Constraint]) -> None:
    """Check that values can meet all hard constraints.

    Raises:
        ValueError: bounds of an objective contradict each other or its range.
    """
    for name in dict.fromkeys(bound.objective for bound in hard(constraints)):
        own = [bound for bound in hard(constraints) if bound.objective == name]
        low, high = Objective.parse(name).bounds
        least = max([low, *(bound.bound for bound in own if not bound.at_most)])
        most = min([high, *(bound.bound for bound in own if bound.at_most)])
        if least > most:
            raise ValueError(
                f"constraint: expected bounds of {name} that can be met together, got {', '.join(map(str, own))}. "
                "Leave one out."
            )


def hard(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """Return the constraints that every front member must meet, those that are not soft."""
    return tuple(constraint for constraint in constraints if not constraint.soft)


def violations(objectives: Sequence[str], constraints: Sequence[Constraint], values: FloatArray) -> FloatArray:
    """Return (N, C) relative violations of each bound by the rows of ``values`` (N, M), a column per objective."""
    columns = [bound.violation(values[:, objectives.index(bound.objective)]) for bound in constraints]
    return np.array(columns, dtype=np.float64).reshape(len(columns), len(values)).T


def feasible_mask(objectives: Sequence[str], constraints: Sequence[Constraint], values: FloatArray) -> BoolArray:
    """Return (N,) flags of the rows of ``values`` (N, M) that have no NaN and meet every hard constraint."""
    return complete_mask(values) & (violations(objectives, hard(constraints), values) <= 0).all(axis=1)


def soft_violations(objectives: Sequence[str], constraints: Sequence[Constraint], values: FloatArray) -> FloatArray:
    """Return the (N,) sums of relative violations of the soft constraints; 0 if all are met."""
    soft = [constraint for constraint in constraints if constraint.soft]
    return np.asarray(np.maximum(violations(objectives, soft, values), 0.0).sum(axis=1), dtype=np.float64)


def preferred_losses(goals: Sequence[Goal], constraints: Sequence[Constraint], values: FloatArray) -> FloatArray:
    """Return the losses by which a search compares: every goal is worsened by the relative soft violation.

    With a latency of 12 ms and ``soft:latency_ms@pixel3<=10``, an accuracy of 90 counts as 72 and the latency as
    14.4. A loss of 0 stays 0.

    Args:
        goals: G goals.
        constraints: only the soft ones are used.
        values: (N, M) in own units, columns in the order of ``objectives_of``.

    Returns:
        (N, G); the plain losses if no constraint is soft.
    """
    losses = to_losses(goals, values[:, : len(goals)])
    if not any(constraint.soft for constraint in constraints):
        return losses
    beyond = soft_violations(objectives_of(goals, constraints), constraints, values)
    return np.asarray(losses + beyond[:, None] * np.abs(losses), dtype=np.float64)
