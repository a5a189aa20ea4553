"""Bounds on objectives, hard and soft, and what they make of results. N architectures, M objectives, G goals."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from nasrlm.arrays import BoolArray, FloatArray
from nasrlm.objective import Goal, Objective, to_losses
from studies.pareto import complete_mask


@dataclass(frozen=True)
class Constraint:
    """A bound that every member of the front meets, for example ``latency_ms@pixel3<=10``.

    A soft one, ``soft:latency_ms@pixel3<=10``, is a preference: what breaks it stays feasible and may be on the front,
    but searches count it as worse, see ``preferred_losses``.

    Attributes:
        objective: its name.
        at_most: whether values may not lie above the bound; else not below it.
        bound: in the objective's own unit.
        soft: whether it is a preference.
    """

    objective: str
    at_most: bool
    bound: float
    soft: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``objective<=number`` or ``objective>=number``, with ``soft:`` before a soft one.

        A bound of an accuracy between 0 and 1 is warned of: accuracies are in percent.

        Raises:
            ValueError: no such sign, a bad name, or a bound that is not a finite number.
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
            warnings.warn(
                f"constraint: expected an accuracy in percent, 0 to 100, got {text.strip()!r}. "
                f"If it is a fraction, write {100 * bound:g}.",
                stacklevel=2,
            )
        return cls(objective.name, match[3] == "<=", bound, soft=match[1] is not None)

    def violation(self, values: FloatArray) -> FloatArray:
        """How far values are beyond the bound, as a share of it, so that several constraints can be added.

        Args:
            values: (N,) in the objective's own unit.

        Returns:
            (N,), 0 or less where the bound is met; NaN stays NaN.
        """
        excess = values - self.bound if self.at_most else self.bound - values
        return np.asarray(excess / (abs(self.bound) or 1.0), dtype=np.float64)

    def __str__(self) -> str:
        bound = repr(self.bound).removesuffix(".0")  # whose shortest digits give the same number back
        return f"{'soft:' if self.soft else ''}{self.objective}{'<=' if self.at_most else '>='}{bound}"


def objectives_of(goals: Sequence[Goal], constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """The goals' objectives, then those of constraints only."""
    constrained = (constraint.objective for constraint in constraints)
    return tuple(dict.fromkeys([*(goal.objective for goal in goals), *constrained]))


def check_met_together(constraints: Sequence[Constraint]) -> None:
    """Whether values can meet all hard constraints.

    Raises:
        ValueError: the bounds of an objective contradict each other, or what it can be.
    """
    for name in dict.fromkeys(bound.objective for bound in hard(constraints)):
        own = [bound for bound in hard(constraints) if bound.objective == name]
        low, high = Objective.parse(name).bounds
        least = max([low, *(bound.bound for bound in own if not bound.at_most)])
        most = min([high, *(bound.bound for bound in own if bound.at_most)])
        if least > most:
            raise ValueError(
                f"constraint: expected bounds of {name} that a value can meet, got {', '.join(map(str, own))}. "
                "Leave one out."
            )


def hard(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """Those of C constraints that every front member must meet."""
    return tuple(constraint for constraint in constraints if not constraint.soft)


def violations(objectives: Sequence[str], constraints: Sequence[Constraint], values: FloatArray) -> FloatArray:
    """(N, C) how far the rows of ``values`` (N, M), columns objectives, are beyond each of C bounds."""
    columns = [bound.violation(values[:, objectives.index(bound.objective)]) for bound in constraints]
    return np.array(columns, dtype=np.float64).reshape(len(columns), len(values)).T


def feasible_mask(objectives: Sequence[str], constraints: Sequence[Constraint], values: FloatArray) -> BoolArray:
    """(N,) flags of the rows of ``values`` (N, M), columns objectives, without NaN that meet every hard constraint."""
    return complete_mask(values) & (violations(objectives, hard(constraints), values) <= 0).all(axis=1)


def soft_violations(objectives: Sequence[str], constraints: Sequence[Constraint], values: FloatArray) -> FloatArray:
    """(N,) how far rows of ``values`` (N, M) are beyond the soft bounds, as shares of them, added up; 0 within all."""
    soft = [constraint for constraint in constraints if constraint.soft]
    return np.asarray(np.maximum(violations(objectives, soft, values), 0.0).sum(axis=1), dtype=np.float64)


def preferred_losses(goals: Sequence[Goal], constraints: Sequence[Constraint], values: FloatArray) -> FloatArray:
    """Losses as a search compares them: worse, in every goal, by the share by which soft constraints are broken.

    With a latency of 12 ms and ``soft:latency_ms@pixel3<=10``, an accuracy of 90 counts as 72 and the latency as
    14.4. A loss of 0 stays 0.

    Args:
        goals: G goals.
        constraints: hard ones do not count.
        values: (N, M) in own units, columns as ``objectives_of`` has them.

    Returns:
        (N, G), the losses themselves where no constraint is soft.
    """
    losses = to_losses(goals, values[:, : len(goals)])
    if not any(constraint.soft for constraint in constraints):
        return losses
    beyond = soft_violations(objectives_of(goals, constraints), constraints, values)
    return np.asarray(losses + beyond[:, None] * np.abs(losses), dtype=np.float64)
