"""Read and write the attributes of Optuna trials: architecture, predictions, results, and why a trial was pruned.

M objectives.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from converters.tables.counts import COUNTS, counts_by_name
from nasrlm.arrays import FloatArray
from nasrlm.objective import Goal
from spaces import ArchitectureError, SearchSpace
from spaces.shown import shown
from studies.history import ascending, median_first
from studies.tables.rows import spelled_notation

# Names of a trial's attributes.
ARCHITECTURE, PREDICTED = "architecture", "predicted"
PRUNED_STAGE, PRUNED_REASON, DOMINATED_BY = "pruned_stage", "pruned_reason", "pruned_by"
AFTER_ALL = "evaluated"  # set to true by the user if a pruned trial was evaluated nevertheless
KEYS = ("low", "median", "high")  # keys of each objective in the attribute PREDICTED


def directions(goals: Sequence[Goal]) -> list[StudyDirection]:
    """Return Optuna's direction of each goal."""
    return [StudyDirection.MAXIMIZE if goal.maximise else StudyDirection.MINIMIZE for goal in goals]


def recorded_predictions(objectives: Sequence[str], predicted: FloatArray) -> dict[str, dict[str, float | None]]:
    """Convert (M, 3) median, low and high to the attribute PREDICTED, by names, with None for NaN."""
    rows = [[None if np.isnan(value) else float(value) for value in row] for row in ascending(predicted)]
    return {name: dict(zip(KEYS, row, strict=True)) for name, row in zip(objectives, rows, strict=True)}


def read_predictions(objectives: Sequence[str], told: Any) -> FloatArray:
    """Convert the attribute PREDICTED back to (M, 3) median, low and high; older studies have lists in this order."""
    if isinstance(told, list):
        return np.array(told, dtype=np.float64)
    return median_first(np.array([[told[name][word] for word in KEYS] for name in objectives], dtype=np.float64))


def gene_distributions(sizes: Sequence[int]) -> dict[str, BaseDistribution]:
    """Return the distributions of a genotype's parameters, one for each gene."""
    return {f"gene_{index}": CategoricalDistribution(tuple(range(size))) for index, size in enumerate(sizes)}


def is_pruned(trial: FrozenTrial) -> bool:
    """Return whether the gate pruned a trial and the user has not marked it as evaluated nevertheless."""
    return PRUNED_REASON in trial.user_attrs and not trial.user_attrs.get(AFTER_ALL)


def has_results(trial: FrozenTrial) -> bool:
    """Return whether a trial is completed and its values are real results, not substitutes for a pruned trial."""
    return trial.state == TrialState.COMPLETE and not is_pruned(trial)


def results_of(trial: FrozenTrial, space: SearchSpace[Any], num_goals: int, others: Sequence[str]) -> list[float]:
    """Return the real values of the goals, then those of other objectives from a trial's attributes; NaN if missing.

    Counts such as ``params@onnx`` that a completed trial lacks are computed.

    Raises:
        ValueError: the attribute of an objective is not a number, or that of the architecture is malformed.
    """
    is_complete = has_results(trial)
    values = trial.values if is_complete else [None] * num_goals
    told = {name: recorded_number(trial, name) for name in others}
    if lacking := [name for name in others if is_complete and is_counted(trial, space, name)]:
        told |= counts_by_name(space, architecture_of(trial, space), lacking)
    return [np.nan if value is None else value for value in (*values, *told.values())]


def architecture_of(trial: FrozenTrial, space: SearchSpace[Any]) -> Any | None:
    """Return the architecture of a trial; None if it is not known.

    It is in the attribute or, for a completed trial that was not checked, in the genes from ``ParetoGate.suggest``.

    Raises:
        ValueError: the attribute is not an architecture of the space.
    """
    if ARCHITECTURE not in trial.user_attrs:
        return _by_genes(trial, space) if trial.state == TrialState.COMPLETE else None
    try:
        return space.parse(spelled_notation(trial.user_attrs[ARCHITECTURE]))
    except ArchitectureError as e:
        raise ValueError(
            f"trial {trial.number}, attribute {ARCHITECTURE}: {e} If it was not set by ParetoGate, add the trials "
            "to a new study with their notation in this attribute, see ParetoGate."
        ) from e


def is_counted(trial: FrozenTrial, space: SearchSpace[Any], name: str) -> bool:
    """Return whether a trial lacks an objective that is a count, so that it follows from the architecture."""
    return name in COUNTS and name not in trial.user_attrs and architecture_of(trial, space) is not None


def is_feasible(trial: FrozenTrial) -> bool:
    """Return whether a trial meets the constraints that the user set on it."""
    return all(violation <= 0 for violation in trial.constraints.values())


def recorded_number(trial: FrozenTrial, name: str) -> float | None:
    """Return the attribute of an objective that is not a goal; None if there is none.

    Raises:
        ValueError: it is not a number.
    """
    told = trial.user_attrs.get(name)
    try:
        return None if told is None else float(told)
    except (TypeError, ValueError):
        raise ValueError(f"trial {trial.number}, attribute {name}: expected a number, got {shown(told)}.") from None


def _by_genes(trial: FrozenTrial, space: SearchSpace[Any]) -> Any | None:
    genes = gene_distributions(space.sampled_sizes)
    if any(trial.distributions.get(name) != distribution for name, distribution in genes.items()):
        return None
    try:
        return space.decode([trial.params[name] for name in genes])
    except ArchitectureError:
        return None


def check_names(study: optuna.Study, goals: Sequence[str]) -> None:
    """Check that the study's metric names are in the order of the goals, since directions alone may not tell.

    Raises:
        ValueError: the study has a goal's name in another place.
    """
    names = study.metric_names or goals
    if any(name in goals and name != goal for name, goal in zip(names, goals, strict=True)):
        raise ValueError(
            f"ParetoGate: expected a study with the metric names {', '.join(goals)}, got {', '.join(names)}. Give the "
            "goals in the order of its metric_names."
        )


def plain_params(params: Any) -> dict[str, Any]:
    """Return parameters that every storage can write as JSON, with NumPy numbers converted.

    Raises:
        TypeError: ``params`` is not a mapping, or a value cannot be written as JSON.
    """
    if not isinstance(params, Mapping):
        raise TypeError(f"to_params: expected a mapping from parameter names to values, got {shown(params)}.")
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}
    for name, value in plain.items():
        try:
            json.dumps(value)
        except TypeError as e:
            raise TypeError(f"to_params: expected a value that JSON can store for {name}, got {shown(value)}.") from e
    return plain


def prune(trial: optuna.Trial, stage: int, reason: str, dominated_by: str | None) -> NoReturn:
    """Record why a trial is pruned, and raise ``optuna.TrialPruned``."""
    trial.set_user_attr(PRUNED_STAGE, stage)
    trial.set_user_attr(PRUNED_REASON, reason)
    trial.set_user_attr(DOMINATED_BY, dominated_by)
    raise optuna.TrialPruned(reason)
