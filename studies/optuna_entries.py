"""The trials of an Optuna study that the user runs, as entries of a ledger.

Twin: another trial of the same network, by ``architecture_key``. M objectives.
"""

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from studies.advisor import Advisor
from studies.ledger import Entry
from studies.optuna_trials import (
    architecture_of,
    has_results,
    is_feasible,
    is_pruned,
    results_of,
)

A = TypeVar("A", bound=Hashable)


class TrialEntries(Generic[A]):
    """The networks and results of trials; those of finished trials, which do not change any more, are cached.

    Args:
        advisor: has the space and the goals, and refuses impossible results.
    """

    def __init__(self, advisor: Advisor[A]) -> None:
        self._advisor = advisor
        self._entries: dict[int, Entry | None] = {}  # of finished trials, by trial number

    def entry(self, trial: FrozenTrial) -> Entry | None:
        """Return the entry of a trial, so that its network is not proposed again; None if its network is not known."""
        if trial.number in self._entries:
            return self._entries[trial.number]
        entry, architecture = None, architecture_of(trial, self._advisor.space)
        if architecture is not None:
            results = np.array(self.results(trial))
            evaluated = has_results(trial) or trial.state == TrialState.FAIL
            entry = self._advisor.entry(architecture, results, evaluated=evaluated, feasible=is_feasible(trial))
        if trial.state.is_finished():
            self._entries[trial.number] = entry
        return entry

    def results(self, trial: FrozenTrial) -> list[float]:
        """Return the M real values of a trial; NaN for missing and impossible ones."""
        gate = self._advisor.gate
        goals = len(gate.goals)
        told = results_of(trial, self._advisor.space, goals, gate.objectives[goals:])
        return self._advisor.possible(told, f"trial {trial.number}")

    def name(self, trial: FrozenTrial) -> str:
        """Return the name of a trial in reasons: its architecture, or its number if unknown."""
        entry = self.entry(trial)
        return f"trial {trial.number}" if entry is None else entry.architecture

    def tried(self, trials: Sequence[FrozenTrial]) -> list[Entry]:
        """Return one entry per network: of several trials, one with results, or else one that failed."""
        weakest_first = sorted(trials, key=lambda trial: (has_results(trial), trial.state == TrialState.FAIL))
        entries = [entry for entry in map(self.entry, weakest_first) if entry is not None]
        return list({entry.key: entry for entry in entries}.values())

    def twin(self, trial: optuna.Trial, key: str) -> FrozenTrial | None:
        """Return another trial with the same network that is completed or running, or None."""
        for other in trial.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.RUNNING)):
            if other.number == trial.number or is_pruned(other):
                continue
            if (entry := self.entry(other)) is not None and entry.key == key:
                return other
        return None
