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
    records_architecture,
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
        self._entries: dict[int, Entry] = {}  # of finished trials, by trial number
        self._unknown: set[int] = set()  # numbers of finished trials without a known architecture

    def knows(self, trial: FrozenTrial) -> bool:
        """Return whether a trial's architecture is known."""
        if trial.number in self._entries or trial.number in self._unknown:
            return trial.number in self._entries
        is_known = records_architecture(trial, self._advisor.space)
        if not is_known and trial.state.is_finished():
            self._unknown.add(trial.number)
        return is_known

    def entry(self, trial: FrozenTrial) -> Entry:
        """Return the entry of a trial whose architecture is known, so that it is not proposed again."""
        if trial.number not in self._entries:
            architecture = architecture_of(trial, self._advisor.space)
            results = np.array(self.results(trial))
            evaluated = has_results(trial) or trial.state == TrialState.FAIL
            entry = self._advisor.entry(architecture, results, evaluated=evaluated, feasible=is_feasible(trial))
            if not trial.state.is_finished():
                return entry
            self._entries[trial.number] = entry
        return self._entries[trial.number]

    def results(self, trial: FrozenTrial) -> list[float]:
        """Return the M real values of a trial; NaN for missing and impossible ones."""
        gate = self._advisor.gate
        goals = len(gate.goals)
        told = results_of(trial, self._advisor.space, goals, gate.objectives[goals:])
        return self._advisor.possible(told, f"trial {trial.number}")

    def name(self, trial: FrozenTrial) -> str:
        """Return the name of a trial in reasons: its architecture, or its number if unknown."""
        return self.entry(trial).architecture if self.knows(trial) else f"trial {trial.number}"

    def tried(self, trials: Sequence[FrozenTrial]) -> list[Entry]:
        """Return one entry per network: of several trials, one with results, or else one that failed."""
        known = [trial for trial in trials if self.knows(trial)]
        known.sort(key=lambda trial: (has_results(trial), trial.state == TrialState.FAIL))
        return list({entry.key: entry for entry in map(self.entry, known)}.values())

    def twin(self, trial: optuna.Trial, key: str) -> FrozenTrial | None:
        """Return another trial with the same network that is completed or running, or None."""
        for other in trial.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.RUNNING)):
            is_candidate = self.knows(other) and not is_pruned(other)
            if other.number != trial.number and is_candidate and self.entry(other).key == key:
                return other
        return None
