"""The Pareto gate: prunes candidates that are not expected to improve the front, before they are evaluated.

N candidates, F front members, C columns, M objectives: those of the goals, then those of constraints only.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import compress
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nasrlm.arrays import FloatArray
from nasrlm.objective import Goal, Objective, from_losses, to_losses
from studies.constraints import (
    Constraint,
    check_met_together,
    feasible_mask,
    hard,
    objectives_of,
    preferred_losses,
)
from studies.guide import RISK, Risk, levels_of
from studies.pareto import Front, no_worse
from studies.surrogates.memory import TextPredictor


@dataclass(frozen=True)
class Decision:
    """The gate's decision about one candidate.

    Attributes:
        values: (M, 3) predicted quantiles at the levels of each objective, see ``Gate.levels``, in own units; NaN for
            objectives that were not decoded.
        stage: 0 if kept; 1 if pruned after the first stage, 2 after the second.
        reason: why the candidate was pruned, in words; "" if kept.
        dominated_by: name of the front member that dominates it; None if it is kept or violates a constraint.
    """

    values: FloatArray
    stage: int = 0
    reason: str = ""
    dominated_by: str | None = None

    @property
    def kept(self) -> bool:
        """Whether the candidate may still improve the front."""
        return self.stage == 0


class Gate:
    """Prunes candidates whose optimistic corner is dominated by the front of real results.

    The optimistic corner of a candidate holds, for each objective, the optimistic end of its calibrated interval: the
    quantile ``1 - share`` of a maximised and ``share`` of a minimised objective, where ``share`` is the objective's
    part of the risk. Stage 1 decodes the accuracies only and fills the other goals with their best conceivable values,
    unlimited if not given; stage 2 decodes the rest. After each stage a candidate is pruned if a front member dominates
    its corner, or if both ends of an interval violate a hard constraint.

    NOTE: stage 1 can only prune if a front member has the best conceivable value of every other goal, or if there is a
    constraint on an accuracy. The best value found so far is not a bound: with it, three of six searches that began
    with a random generation lost up to 7 of 41 true front members.

    NOTE: with calibrated quantiles a network is better than its corner with probability ``risk`` at most, over all
    networks. Members of the true front are the lucky ones among these, so they are better more often. If each member
    of NAS-Bench-201's true front is checked against the others, the released checkpoint prunes, at risks of 0.01, 0.05,
    0.1 and 0.2, 0, 0, 0 and 10 of 41 (accuracy and latency on raspi4) and 0, 0, 1 and 4 of 97 (also energy on edgegpu).

    Args:
        goals: the goals of the front.
        constraints: hard ones must be met by every front member. A front member that breaks a soft one prunes fewer
            candidates, because it is compared by its ``preferred_losses``.
        risk: probability, in (0, 0.5), that a candidate is better than its optimistic corner, divided equally among
            its objectives; or, by name, that an objective is better than its optimistic value, see
            ``studies.guide.levels_of``.
        best: best conceivable value of some objectives in own units, such as a latency that no network can beat; the
            others are unlimited.

    Attributes:
        guessed: objectives that the predictor can only guess, none at first. They are unlimited too, whatever is
            predicted.

    Raises:
        ValueError: a risk outside (0, 0.5), a risk or best value of an unknown objective, or hard constraints that
            contradict each other.
    """

    def __init__(
        self,
        goals: Sequence[Goal],
        constraints: Sequence[Constraint] = (),
        *,
        risk: Risk = RISK,
        best: Mapping[str, float] | None = None,
    ) -> None:
        self.guessed: frozenset[str] = frozenset()
        self.goals = tuple(goals)
        self.constraints = tuple(constraints)
        check_met_together(self.constraints)
        self.objectives = objectives_of(self.goals, self.constraints)
        self.levels = levels_of(risk, self.objectives)
        self._best = self._best_losses({} if best is None else best)
        self._front = self._no_front()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the F front members."""
        return tuple(name for name, _ in self._front.members)

    @property
    def front(self) -> FloatArray:
        """The (F, goals) ``preferred_losses`` of the front members."""
        return self._front.losses

    def with_front(self, names: Sequence[str], results: FloatArray) -> Self:
        """Return a copy of the gate whose front is that of these results alone; arguments as for ``add``."""
        other = copy(self)
        other._front = self._no_front()
        other.add(names, results)
        return other

    def add(self, names: Sequence[str], results: FloatArray) -> None:
        """Update the front with real results.

        Args:
            names: N names of the architectures; decisions and their reasons use them.
            results: (N, M) in own units; infeasible rows and rows with NaN are left out.
        """
        losses = to_losses(self.goals, results[:, : len(self.goals)])
        feasible = feasible_mask(self.objectives, self.constraints, results)
        preferred = preferred_losses(self.goals, self.constraints, results)
        members = compress(zip(names, losses, strict=True), feasible)
        self._front = self._front.joined(members, preferred[feasible])

    def check(self, texts: Sequence[str], predictor: TextPredictor) -> list[Decision]:
        """Decide which of N candidates are pruned.

        If stage 1 could not prune a candidate of any accuracy, everything is decoded at once, as stage 2.

        Args:
            texts: N texts.
            predictor: gives the quantiles at ``levels``; NaN counts as the best conceivable value.

        Returns:
            N decisions.
        """
        values = np.full((len(texts), len(self.objectives), 3), np.nan)
        pruned: dict[int, Decision] = {}
        rows = list(range(len(texts)))
        for stage, columns in self._stages():
            if rows:
                answers = self.predict([texts[row] for row in rows], predictor, columns)
                values[np.array(rows)[:, None], columns] = answers
                pruned |= self._prune(stage, rows, values[rows])
                rows = [row for row in rows if row not in pruned]
        return [pruned.get(row) or Decision(values[row]) for row in range(len(texts))]

    def predict(self, texts: Sequence[str], predictor: TextPredictor, columns: Sequence[int]) -> FloatArray:
        """Return (N, C, 3) quantiles at ``levels`` of C objectives, with one call for all that have the same levels."""
        values = np.empty((len(texts), len(columns), 3))
        for levels in dict.fromkeys(self.levels[column] for column in columns):
            places = [place for place, column in enumerate(columns) if self.levels[column] == levels]
            names = [self.objectives[columns[place]] for place in places]
            values[:, places] = predictor.predict(texts, names, levels).values
        return values

    def _prune(self, stage: int, rows: Sequence[int], values: FloatArray) -> dict[int, Decision]:
        """Return the decisions for those rows that are pruned, given their (N, M, 3) values."""
        sure = values.copy()
        sure[:, [column for column, name in enumerate(self.objectives) if name in self.guessed]] = np.nan
        corners = self._corners(sure)
        violated, members = self._violated(sure), self._dominating(corners).tolist()
        decisions = {}
        for index, row in enumerate(rows):
            constraint, member = violated[index], members[index]
            if constraint is not None:
                reason = self._violation_in_words(constraint, sure[index])
                decisions[row] = Decision(values[index], stage, reason)
            elif member >= 0:
                name, real = self._front.members[member]
                reason = self._domination_in_words(corners[index], sure[index], name, real)
                decisions[row] = Decision(values[index], stage, reason, name)
        return decisions

    def _no_front(self) -> Front[tuple[str, FloatArray]]:
        """Return an empty front. Its members are names with their (goals,) losses, without soft constraints."""
        return Front.empty(len(self.goals))

    def _best_losses(self, best: Mapping[str, float]) -> FloatArray:
        """Return the (goals,) best conceivable losses; -inf if not given."""
        names = [goal.objective for goal in self.goals]
        if not isinstance(best, Mapping):
            raise ValueError(f"gate: expected best values of {', '.join(names)}, by name, got {best!r:.80}.")
        unknown = [name for name in best if name not in names]
        if unknown:
            raise ValueError(f"gate: expected best values of {', '.join(names)}, got {', '.join(unknown)}.")
        given = to_losses(self.goals, np.array([[best.get(name, np.nan) for name in names]]))[0]
        return np.where(np.isnan(given), -np.inf, given)

    def _stages(self) -> list[tuple[int, list[int]]]:
        """Return stage numbers with the columns each decodes: first the accuracies, or the first goal without any."""
        every = list(range(len(self.objectives)))
        first = [column for column in every if Objective.parse(self.objectives[column]).is_accuracy] or [0]
        rest = [column for column in every if column not in first]
        if not rest or not self._first_may_prune(first):
            return [(2, every)]
        return [(1, first), (2, rest)]

    def _first_may_prune(self, first: Sequence[int]) -> bool:
        decided = {self.objectives[column] for column in first}
        if any(constraint.objective in decided for constraint in hard(self.constraints)):
            return True
        rest = [column for column in range(len(self.goals)) if column not in first]
        return bool((self.front[:, rest] <= self._best[rest]).all(axis=1).any())

    def optimistic_losses(self, values: FloatArray) -> FloatArray:
        """Return the (N, goals) losses at the optimistic ends of (N, M, 3) quantiles; NaN if not decoded."""
        ends = [-1 if goal.maximise else 0 for goal in self.goals]
        return to_losses(self.goals, values[:, range(len(self.goals)), ends])

    def _corners(self, values: FloatArray) -> FloatArray:
        optimistic = self.optimistic_losses(values)
        return np.asarray(np.where(np.isnan(optimistic), self._best, optimistic), dtype=np.float64)

    def _dominating(self, corners: FloatArray) -> NDArray[np.intp]:
        """Return the (N,) index of the first front member that dominates each corner, or -1."""
        if len(self.front) == 0:
            return np.full(len(corners), -1, dtype=np.intp)
        dominates = no_worse(self.front, corners) & ~no_worse(-self.front, -corners)  # equal ones do not dominate
        return np.where(dominates.any(axis=1), dominates.argmax(axis=1), -1)

    def _violated(self, values: FloatArray) -> list[Constraint | None]:
        """Return the first hard constraint that each candidate violates at both ends of its interval, or None."""
        found: list[Constraint | None] = [None] * len(values)
        for constraint in reversed(hard(self.constraints)):
            ends = values[:, self.objectives.index(constraint.objective)]
            beyond = np.minimum(constraint.violation(ends[:, 0]), constraint.violation(ends[:, -1])) > 0
            found = [constraint if flag else earlier for flag, earlier in zip(beyond, found, strict=True)]
        return found

    def _violation_in_words(self, constraint: Constraint, values: FloatArray) -> str:
        end = values[self.objectives.index(constraint.objective), 0 if constraint.at_most else -1]
        return f"{constraint.objective} is {end:.5g} at best, outside {constraint}"

    def _domination_in_words(self, corner: FloatArray, values: FloatArray, name: str, real: FloatArray) -> str:
        best = from_losses(self.goals, corner[None])[0].tolist()
        is_open = np.isnan(values[: len(self.goals), 0]).tolist()
        mine = ", ".join(
            f"{goal.objective} {value:.5g}{' conceivably' if flag else ''}"
            for goal, value, flag in zip(self.goals, best, is_open, strict=True)
        )
        other = ", ".join(f"{value:.5g}" for value in from_losses(self.goals, real[None])[0].tolist())
        return f"{mine} at best, dominated by {name} with {other}"
