"""A guided search whose trials are in an Optuna storage, so that several workers evaluate them.

A chosen architecture is one trial: waiting, running while a worker evaluates it, then complete, or pruned if there was
no result. If a worker dies, its trial fails and a copy of it is enqueued; but if its result was already stored, the
trial is finished. A storage that does not respond is tried again for a minute. An architecture that the gate pruned is
stored as a pruned trial with the reason, only for people to read.
"""

import math
import os
import platform
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from nasrlm.arrays import FloatArray
from spaces import SearchSpace
from studies.config import SearchConfig, without_password
from studies.constraints import violations
from studies.folder import StudyError
from studies.history import CHOSEN, EVALUATED, PRUNED
from studies.ledger import Entry, Ledger
from studies.optuna_trials import (
    ARCHITECTURE,
    PREDICTED,
    PRUNED_REASON,
    PRUNED_STAGE,
    gene_distributions,
    read_predictions,
    recorded_predictions,
)
from studies.storage.locks import open_locks
from studies.storage.optuna_storage import UNANSWERED, answering, join_study, lacks_file, name_in, open_storage, quiet

A = TypeVar("A", bound=Hashable)
T = TypeVar("T")

TRY_SECONDS = (0, 1, 2, 4, 8, 15, 30)  # waits before further tries if a storage does not respond

RETRIES = 10  # of a trial whose workers died, perhaps because of it; then it counts as evaluated without a result

BATCH, REAL = "batch", "real"
WORKER, RETRY_OF, REASON = "worker", "retry_of", "reason"


@dataclass(frozen=True)
class TakenTrial:
    """A trial that this worker has taken in order to evaluate its architecture."""

    number: int
    trial_id: int
    architecture: str


class SharedStudy(Generic[A]):
    """The trials of one guided search in a storage.

    Args:
        config: config of the search, which names the study, see ``name_in``.
        space: the search space.
        storage: URL or journal file.
        ledger: this worker's saved ledger. Its pruned entries are kept; its results have to be in the storage.

    Raises:
        StudyError: the storage cannot be opened or has no locks; its study was begun with another checkpoint or table;
            it lacks results of the ledger, or has more results than ``config.trials``.
    """

    def __init__(self, config: SearchConfig, space: SearchSpace[A], storage: str, ledger: Ledger) -> None:
        self.config = config
        self.space = space
        self._pruned = [entry for entry in ledger.entries if entry.status == PRUNED]
        self._name = without_password(storage)
        self._taken: int | None = None  # number of the trial taken in this turn
        self._unheld_since: dict[int, float] = {}  # times by the numbers of running trials that nobody holds
        self._stored_keys: dict[int, str] = {}  # architecture keys of trials pruned by the gate, by trial number
        self._finished: dict[int, Entry] = {}  # entries of finished trials, by trial number
        if ledger.evaluated and lacks_file(storage):  # opening it would create it
            raise StudyError(
                f"storage {self._name}: expected the {len(ledger.evaluated)} results of the study's history, got no "
                "such file. Restore it, resume from the folder that its path is relative to, or start a new study."
            )
        self._storage = open_storage(storage)
        self.locks = self.patiently(lambda: open_locks(self._storage, storage, name_in(self._storage, config)))
        try:
            self.patiently(lambda: self._join(storage, ledger))
        except BaseException:
            self.locks.close()
            raise

    def _join(self, storage: str, ledger: Ledger) -> None:
        with self.locks.turn(), quiet():
            self.study = join_study(self.config, self._storage, storage)
            self._check_complete(ledger)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.locks.close()

    def _check_complete(self, known: Ledger) -> None:
        stored = {entry.key for entry in self.ledger().entries if entry.status == EVALUATED}
        results = {entry.key for entry in known.entries if entry.status == EVALUATED}
        if len(stored) > self.config.trials:
            raise StudyError(
                f"storage {self._name}: expected at least the {len(stored)} trials of the study, got "
                f"{self.config.trials}. Give {len(stored)} trials, or choose another storage or seed."
            )
        if lacking := results - stored:
            raise StudyError(
                f"storage {self._name}: expected the {len(results)} results of the study's history, got all but "
                f"{len(lacking)} of them. Restore the storage, or choose another folder to start a new study."
            )

    def patiently(self, act: Callable[[], T]) -> T:
        """Call ``act`` and return its result; call it again if the storage does not respond.

        A failed call may have changed the storage, so ``act`` has to tolerate that.

        Raises:
            StudyError: the storage has not responded for a minute, or its disk is full.
        """
        with answering(self._name):
            for seconds in TRY_SECONDS:
                with suppress(*UNANSWERED):
                    return act()
                time.sleep(seconds)
            return act()

    @contextmanager
    def turn(self) -> Iterator[Ledger]:
        """Take a turn and give the current ledger; the trials of dead workers are enqueued again before."""
        self._taken = None
        try:
            with self.locks.turn():
                self._retry_dead_trials()
                yield self.ledger()
        except BaseException:
            self._let_go()
            raise

    def _let_go(self) -> None:
        """Release the trial taken in a turn that failed, because nobody will evaluate it."""
        if self._taken is not None:
            self.locks.release(self._taken)

    def ledger(self) -> Ledger:
        """Return the evaluated and chosen entries of all workers and the pruned ones of this worker, by batch."""
        trials = self.study.get_trials(deepcopy=False)
        retried = {trial.user_attrs.get(RETRY_OF) for trial in trials}
        current = [t for t in trials if t.number not in retried and PRUNED_STAGE not in t.user_attrs]
        current.sort(key=lambda t: _tries(t, trials)[0])
        entries = [self._entry(trial) for trial in current]
        decided = {entry.key: entry for entry in reversed(entries)}  # the first if two workers chose the same
        pruned = [entry for entry in self._pruned if entry.key not in decided]
        return Ledger(self.config, sorted([*pruned, *reversed(decided.values())], key=lambda entry: entry.batch))

    def add(self, entries: Sequence[Entry]) -> None:
        """Store chosen entries as waiting trials and pruned ones as pruned trials; only within a turn.

        Entries that an exhaustive search pruned are not stored, because ten thousand trials would take minutes.
        """
        self.locks.check_turn()
        pruned = [entry for entry in entries if entry.status == PRUNED]
        self._pruned += pruned
        if self.config.guide is None or not self.config.guide.exhaustive:
            self._store(pruned)
        for entry in entries:
            if entry.status == CHOSEN:
                predicted = recorded_predictions(self.config.objectives, entry.predicted)
                attributes = {ARCHITECTURE: entry.architecture, BATCH: entry.batch, PREDICTED: predicted}
                self._enqueue(entry.genotype, attributes)

    def _store(self, pruned: Sequence[Entry]) -> None:
        """Store pruned entries as trials, except those whose key any worker has stored before."""
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.PRUNED,)):
            if PRUNED_STAGE in trial.user_attrs and trial.number not in self._stored_keys:
                architecture = self.space.parse(trial.user_attrs[ARCHITECTURE])
                self._stored_keys[trial.number] = self.space.architecture_key(architecture)
        stored = set(self._stored_keys.values())
        self.study.add_trials(
            self._trial(
                TrialState.PRUNED,
                entry.genotype,
                {ARCHITECTURE: entry.architecture, PRUNED_STAGE: entry.stage, PRUNED_REASON: entry.reason},
            )
            for entry in pruned
            if entry.key not in stored
        )

    def take(self) -> TakenTrial | None:
        """Take the waiting trial that was chosen first, counting retries from their first try; only within a turn."""
        self.locks.check_turn()
        trials = self.study.get_trials(deepcopy=False)
        waiting = [trial for trial in trials if trial.state == TrialState.WAITING]
        for trial in sorted(waiting, key=lambda waits: _tries(waits, trials)[0]):
            self.locks.hold(trial.number)
            try:
                if self._storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING):
                    worker = f"{platform.node()}, process {os.getpid()}"
                    self._storage.set_trial_user_attr(trial._trial_id, WORKER, worker)
                    self._taken = trial.number
                    return TakenTrial(trial.number, trial._trial_id, trial.user_attrs[ARCHITECTURE])
            except BaseException:
                self.locks.release(trial.number)  # if it is already running, it will be retried as a dead worker's
                raise
            self.locks.release(trial.number)
        return None

    def awaited(self) -> str:
        """Describe the running evaluations: architecture, worker and start."""
        running = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        words = [
            f"{trial.user_attrs[ARCHITECTURE]} of {trial.user_attrs.get(WORKER, 'a worker')}, since "
            f"{trial.datetime_start:%Y-%m-%d %H:%M}"
            for trial in running
        ]
        return "; ".join(words) or "nothing"

    def tell(self, taken: TakenTrial, real: FloatArray) -> None:
        """Record the (M,) real results of a trial that this worker holds.

        NOTE: if the connection to the storage broke meanwhile, another worker may have replaced the trial by a copy.
        Then the results are recorded for the copy, unless it has some already.
        """
        self._unheld_since.clear()  # outdated after an evaluation
        if not self._records(self._storage.get_trial(taken.trial_id), real):
            with self.locks.turn():
                trials = self.study.get_trials(deepcopy=False)
                for trial in trials:
                    if taken.number in _tries(trial, trials)[:-1] and self._records(trial, real):
                        break
        self.locks.release(taken.number)

    def _records(self, trial: FrozenTrial, real: FloatArray) -> bool:
        """Record results unless the trial is finished; return whether it has results now, these or others.

        A waiting trial may only be passed within a turn.
        """
        if trial.state == TrialState.FAIL:
            return False
        try:
            if trial.state == TrialState.WAITING:
                self._storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING)
            self._storage.set_trial_user_attr(trial._trial_id, REAL, _listed(real))
            self._finish(trial, real)
        except UpdateFinishedTrialError:  # another worker was faster
            return self._storage.get_trial(trial._trial_id).state != TrialState.FAIL
        return True

    def _finish(self, trial: FrozenTrial, real: FloatArray) -> None:
        running = Trial(self.study, trial._trial_id)
        if np.isnan(real).any():
            self.study.tell(running, state=TrialState.PRUNED, skip_if_finished=True)
            return
        bounds = self.config.hard_constraints
        for bound, beyond in zip(bounds, violations(self.config.objectives, bounds, real[None])[0], strict=True):
            running.set_constraint(str(bound), beyond.item())
        self.study.tell(running, real[: len(self.config.goals)].tolist(), skip_if_finished=True)

    def _retry_dead_trials(self) -> None:
        trials = self.study.get_trials(deepcopy=False)
        retried = {trial.user_attrs.get(RETRY_OF) for trial in trials}
        for trial in trials:
            if trial.state != TrialState.RUNNING or not self._is_unheld(trial.number):
                continue
            # Its worker may have recorded the result and released the trial since the trials were listed.
            latest = self._storage.get_trial(trial._trial_id)
            if latest.state != TrialState.RUNNING:
                continue
            if REAL in latest.user_attrs:
                with suppress(UpdateFinishedTrialError):  # its worker was faster
                    self._finish(trial, np.array(latest.user_attrs[REAL], dtype=np.float64))
                continue
            # Enqueue the copy first: if this process is killed in between, nothing is lost, and no second copy is made.
            if trial.number not in retried and len(_tries(trial, trials)) <= RETRIES:
                kept = {name: trial.user_attrs[name] for name in (ARCHITECTURE, BATCH, PREDICTED)}
                self._enqueue(self._genotype(trial), {**kept, RETRY_OF: trial.number})
            with suppress(UpdateFinishedTrialError):
                self._storage.set_trial_user_attr(trial._trial_id, REASON, "its worker ended")
                self.study.tell(trial.number, state=TrialState.FAIL)

    def _is_unheld(self, number: int) -> bool:
        """Return whether nobody has held a trial for ``grace_seconds``, the time to replace a broken connection."""
        if self.locks.is_held(number):
            self._unheld_since.pop(number, None)
            return False
        now = time.monotonic()
        return now - self._unheld_since.setdefault(number, now) >= self.locks.grace_seconds

    def _enqueue(self, genotype: Sequence[int], attributes: dict[str, Any]) -> None:
        self.study.add_trial(self._trial(TrialState.WAITING, genotype, attributes))

    def _trial(self, state: TrialState, genotype: Sequence[int], attributes: dict[str, Any]) -> FrozenTrial:
        distributions = gene_distributions(self.space.gene_sizes)  # a table may have genotypes that are never drawn
        params = dict(zip(distributions, genotype, strict=True))
        return create_trial(state=state, params=params, distributions=distributions, user_attrs=attributes)

    def _genotype(self, trial: FrozenTrial) -> tuple[int, ...]:
        return self.space.encode(self.space.parse(trial.user_attrs[ARCHITECTURE]))

    def _entry(self, trial: FrozenTrial) -> Entry:
        if (entry := self._finished.get(trial.number)) is not None:
            return entry
        is_finished, attributes = trial.state.is_finished(), trial.user_attrs
        entry = Entry.of(
            self.space,
            self.space.parse(attributes[ARCHITECTURE]),
            len(self.config.objectives),
            batch=attributes[BATCH],
            status=EVALUATED if is_finished else CHOSEN,
            predicted=read_predictions(self.config.objectives, attributes[PREDICTED]),
            real=np.array(attributes[REAL], dtype=np.float64) if REAL in attributes else None,
        )
        if is_finished:
            self._finished[trial.number] = entry
        return entry


def _tries(trial: FrozenTrial, trials: Sequence[FrozenTrial]) -> list[int]:
    """Return the numbers of all tries of a trial, from the first to this one."""
    numbers = [trial.number]
    while RETRY_OF in trial.user_attrs:
        trial = trials[trial.user_attrs[RETRY_OF]]
        numbers.insert(0, trial.number)
    return numbers


def _listed(real: FloatArray) -> list[float | None]:
    """Return results as a list that any storage accepts, with None for NaN."""
    return [None if math.isnan(value) else float(value) for value in real]
