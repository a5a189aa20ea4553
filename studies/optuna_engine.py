"""The engine Optuna: ask for a population, evaluate it in one call, and tell the results."""

from collections.abc import Hashable, Sequence
from copy import copy
from typing import TypeVar

import optuna
from optuna.trial import FrozenTrial, Trial, TrialState

from nasrlm.objective import from_losses
from studies.config import SearchConfig
from studies.optuna_samplers import DistinctSampler, ExhaustedError
from studies.optuna_trials import directions
from studies.problem import Outcome, Problem
from studies.storage.optuna_storage import quiet, stored_study

A = TypeVar("A", bound=Hashable)


def run(problem: Problem[A]) -> None:
    """Propose and evaluate populations until the problem is done.

    NOTE: for every new trial Optuna goes through all trials of its study, billions of steps for 100,000 trials. So a
    sampler that keeps what it needs gets a new study for each population.

    NOTE: sampling uses a study in memory, and finished populations are copied to the storage. This takes one
    transaction per trial instead of one per gene, and a resumed search repeats itself exactly.
    """
    with quiet(), stored_study(problem.config, is_new=not problem.num_recorded) as stored:
        sampler = DistinctSampler(problem)
        study = optuna.create_study(sampler=sampler, directions=directions(problem.config.goals))
        while not problem.done:
            trials = _ask(study, sampler, problem.batch_size)
            if not trials:
                problem.stop_exhausted()
                return
            architectures = [sampler.to_architecture(trial.params) for trial in trials]
            outcome = problem.evaluate(architectures)
            finished = _tell(study, trials, outcome, problem.config)
            sampler.end_generation(finished)
            if stored is not None:
                evaluated = problem.history.architectures[-len(trials) :]  # the representatives that were evaluated
                stored.extend(_with_own_objectives(finished, outcome), evaluated)
            if not sampler.reads_trials:
                study = optuna.create_study(sampler=sampler, directions=directions(problem.config.goals))


def _ask(study: optuna.Study, sampler: DistinctSampler[A], count: int) -> list[Trial]:
    trials: list[Trial] = []
    while len(trials) < count:
        try:
            trials.append(study.ask(sampler.distributions))
        except ExhaustedError:
            break
    return trials


def _tell(study: optuna.Study, trials: Sequence[Trial], outcome: Outcome, config: SearchConfig) -> list[FrozenTrial]:
    """Tell preferred losses in the goals' units; a trial without a complete result is told as pruned."""
    finished = []
    told = from_losses(config.goals, outcome.losses)
    for trial, objectives, violations, complete in zip(trials, told, outcome.violations, outcome.complete, strict=True):
        if complete:
            for constraint, violation in zip(config.hard_constraints, violations.tolist(), strict=True):
                trial.set_constraint(str(constraint), violation)
            finished.append(study.tell(trial, objectives.tolist()))
        else:
            finished.append(study.tell(trial, state=TrialState.PRUNED))
    return finished


def _with_own_objectives(trials: Sequence[FrozenTrial], outcome: Outcome) -> list[FrozenTrial]:
    """Return copies of the trials with the objectives themselves, not worsened by soft constraints."""
    copies = [copy(trial) for trial in trials]
    for trial, objectives, complete in zip(copies, outcome.objectives.tolist(), outcome.complete, strict=True):
        if complete:
            trial.values = objectives
    return copies
