"""Optuna's loop: ask a population, evaluate it at once, tell it; in memory or in a storage."""

import hashlib
import json
import warnings
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import optuna
from optuna.exceptions import ExperimentalWarning, OptunaError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial
from sqlalchemy.exc import SQLAlchemyError

from nasrlm.objective import FloatArray
from studies.config import SearchConfig
from studies.folder import StudyError
from studies.optuna_samplers import DistinctSampler, ExhaustedError
from studies.problem import Outcome, Problem

A = TypeVar("A", bound=Hashable)


def run(problem: Problem[A]) -> None:
    """Propose and evaluate populations until the problem is done."""
    with _quiet():
        study, sampler = _begin(problem)
        while not problem.done:
            trials = _ask(study, sampler, problem.batch_size)
            if not trials:
                problem.stop("the space is exhausted: no new architecture was found")
                return
            outcome = problem.evaluate([sampler.to_architecture(trial.params) for trial in trials])
            sampler.end_generation(_tell(study, trials, outcome, problem.config))


def _ask(study: optuna.Study, sampler: DistinctSampler[A], count: int) -> list[Trial]:
    trials: list[Trial] = []
    try:
        for _ in range(count):
            trials.append(study.ask(sampler.distributions))
    except ExhaustedError:
        study.tell(study.get_trials(deepcopy=False)[-1].number, state=TrialState.FAIL)
    return trials


def _tell(study: optuna.Study, trials: Sequence[Trial], outcome: Outcome, config: SearchConfig) -> list[FrozenTrial]:
    """Tell answers in own units; an architecture that the evaluator does not know is a pruned trial."""
    finished = []
    for trial, objectives, violations, complete in zip(
        trials, outcome.objectives, outcome.violations, outcome.complete, strict=True
    ):
        if complete:
            for name, violation in _constraints(config, violations).items():
                trial.set_constraint(name, violation)
            finished.append(study.tell(trial, objectives.tolist()))
        else:
            finished.append(study.tell(trial, state=TrialState.PRUNED))
    return finished


def _constraints(config: SearchConfig, violations: FloatArray) -> dict[str, float]:
    return dict(zip(map(str, config.constraints), violations.tolist(), strict=True))


def _begin(problem: Problem[A]) -> tuple[optuna.Study, DistinctSampler[A]]:
    """A study, new or from the storage, and its sampler."""
    config = problem.config
    study = _create_study(config)
    past = study.get_trials(deepcopy=False)
    if past and not problem.num_recorded:
        raise StudyError(
            f"storage {config.storage}: expected no study {study.study_name}, got one with {len(past)} trials. "
            "Pass --resume with its folder, or another storage or seed."
        )
    # Numbers drawn before an interruption are not drawn again: they would give known architectures.
    seed = int(np.random.SeedSequence([config.seed, len(past)]).generate_state(1)[0])
    sampler = DistinctSampler(problem, seed=seed)
    study.sampler = sampler
    if config.storage is not None and problem.num_recorded:
        _reload(study, sampler, problem)
    else:
        sampler.begin()
    return study, sampler


def _create_study(config: SearchConfig) -> optuna.Study:
    digest = hashlib.sha256(json.dumps(config.to_dict(), sort_keys=True).encode()).hexdigest()[:8]
    try:
        study = optuna.create_study(
            storage=_storage(config.storage),
            study_name=f"{config.space}-{config.sampler}-{config.seed}-{digest}",
            directions=["maximize" if goal.maximise else "minimize" for goal in config.goals],
            load_if_exists=True,
        )
        study.set_metric_names([goal.objective for goal in config.goals])
        return study
    except (SQLAlchemyError, OptunaError, OSError, ImportError) as error:
        reason = " ".join(str(error).split())[:200]
        raise StudyError(
            f"storage: expected a database URL or a journal file, got {config.storage!r}: {reason}. "
            "Example: sqlite:///study.db."
        ) from error


def _storage(storage: str | None) -> BaseStorage | None:
    if storage is None:
        return None
    if "://" in storage:
        return RDBStorage(storage)
    return JournalStorage(JournalFileBackend(storage))


def _reload(study: optuna.Study, sampler: DistinctSampler[A], problem: Problem[A]) -> None:
    """Take up a stored study: fail what was cut off, and tell what was recorded but not told."""
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)
    architectures = problem.recorded_architectures()
    outcome = problem.evaluate(architectures)
    finished = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
    told = {problem.key(sampler.to_architecture(trial.params)) for trial in finished}
    for row, architecture in enumerate(architectures):
        if outcome.complete[row] and problem.key(architecture) not in told:
            study.add_trial(
                create_trial(
                    params=sampler.to_params(problem.space.encode(architecture)),
                    distributions=sampler.distributions,
                    values=outcome.objectives[row].tolist(),
                    constraints=_constraints(problem.config, outcome.violations[row]),
                )
            )
    sampler.end_generation(study.get_trials(deepcopy=False))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's line for every study, and its warnings that a sampler is experimental."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)
