"""What an Optuna trial tells of its network: what it is, what was predicted and found, why it was pruned."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

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

# Attributes of a trial.
ARCHITECTURE, PREDICTED = "architecture", "predicted"
PRUNED_STAGE, PRUNED_REASON, DOMINATED_BY = "pruned_stage", "pruned_reason", "pruned_by"
AFTER_ALL = "evaluated"  # true of a pruned trial whose values are results nevertheless; set by the user
TOLD = ("low", "median", "high")  # of each objective, by name, in the attribute PREDICTED


def directions(goals: Sequence[Goal]) -> list[StudyDirection]:
    """Optuna's word for the direction of each goal."""
    return [StudyDirection.MAXIMIZE if goal.maximise else StudyDirection.MINIMIZE for goal in goals]


def told_predictions(objectives: Sequence[str], predicted: FloatArray) -> dict[str, dict[str, float | None]]:
    """What a trial tells of (M, 3) median, low and high: each under its name, None for NaN."""
    rows = [[None if np.isnan(value) else float(value) for value in row] for row in ascending(predicted)]
    return {name: dict(zip(TOLD, row, strict=True)) for name, row in zip(objectives, rows, strict=True)}


def read_predictions(objectives: Sequence[str], told: Any) -> FloatArray:
    """(M, 3) median, low and high of what ``told_predictions`` gave, or of the lists in this order of older studies."""
    if isinstance(told, list):
        return np.array(told, dtype=np.float64)
    return median_first(np.array([[told[name][word] for word in TOLD] for name in objectives], dtype=np.float64))


def gene_distributions(sizes: Sequence[int]) -> dict[str, BaseDistribution]:
    """A genotype's parameters, one a gene."""
    return {f"gene_{index}": CategoricalDistribution(tuple(range(size))) for index, size in enumerate(sizes)}


def is_pruned(trial: FrozenTrial) -> bool:
    """Whether the gate pruned a trial that was not evaluated after all."""
    return PRUNED_REASON in trial.user_attrs and not trial.user_attrs.get(AFTER_ALL)


def has_results(trial: FrozenTrial) -> bool:
    """Whether a completed trial's values are results, not what stands for a network that the gate pruned."""
    return trial.state == TrialState.COMPLETE and not is_pruned(trial)


def results_of(trial: FrozenTrial, space: SearchSpace[Any], num_goals: int, others: Sequence[str]) -> list[float]:
    """Real values: those of a completed trial, then of objectives that are no goals; NaN where it tells none.

    Counts such as ``params@onnx`` that a completed trial leaves out are counted.

    Raises:
        ValueError: the attribute of an objective is no number, or that of the architecture spells none.
    """
    is_complete = has_results(trial)
    values = trial.values if is_complete else [None] * num_goals
    told = {name: told_number(trial, name) for name in others}
    if lacking := [name for name in others if is_complete and is_counted(trial, space, name)]:
        told |= counts_by_name(space, architecture_of(trial, space), lacking)
    return [np.nan if value is None else value for value in (*values, *told.values())]


def tells_architecture(trial: FrozenTrial, space: SearchSpace[Any]) -> bool:
    """Whether a trial tells its architecture.

    It does so by its attribute or, if it was completed unchecked, by the genes that ``ParetoGate.suggest`` gave it.
    """
    if ARCHITECTURE in trial.user_attrs:
        return True
    return trial.state == TrialState.COMPLETE and _by_genes(trial, space) is not None


def architecture_of(trial: FrozenTrial, space: SearchSpace[Any]) -> Any:
    """Return the architecture that a trial tells; see ``tells_architecture``.

    Raises:
        ValueError: its attribute spells none of the space.
    """
    if ARCHITECTURE not in trial.user_attrs:
        return _by_genes(trial, space)
    try:
        return space.parse(spelled_notation(trial.user_attrs[ARCHITECTURE]))
    except ArchitectureError as e:
        raise ValueError(f"trial {trial.number}, attribute {ARCHITECTURE}: {e}") from e


def is_counted(trial: FrozenTrial, space: SearchSpace[Any], name: str) -> bool:
    """Whether an objective that a trial leaves out follows from its architecture."""
    return name in COUNTS and name not in trial.user_attrs and tells_architecture(trial, space)


def is_feasible(trial: FrozenTrial) -> bool:
    """Whether a trial meets the constraints that the user set on it."""
    return all(violation <= 0 for violation in trial.constraints.values())


def told_number(trial: FrozenTrial, name: str) -> float | None:
    """The attribute of an objective that is no goal, None where there is none.

    Raises:
        ValueError: it is no number.
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
    """Goals in another order, of one direction, look the same to Optuna: their values would be taken for each other's.

    Raises:
        ValueError: the study names a goal in another's place.
    """
    names = study.metric_names or goals
    if any(name in goals and name != goal for name, goal in zip(names, goals, strict=True)):
        raise ValueError(
            f"ParetoGate: expected a study of {', '.join(goals)}, got {', '.join(names)}. Give the goals in the order "
            "of its metric_names."
        )


def plain_params(params: Any) -> dict[str, Any]:
    """Parameters as every storage can write them: NumPy's numbers are not JSON's."""
    if not isinstance(params, Mapping):
        raise TypeError(f"to_params: expected values by names of parameters, got {shown(params)}.")
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}
    for name, value in plain.items():
        try:
            json.dumps(value)
        except TypeError as e:
            raise TypeError(f"to_params: expected what JSON can say as {name}, got {shown(value)}.") from e
    return plain


def prune(trial: optuna.Trial, stage: int, reason: str, dominated_by: str | None) -> None:
    trial.set_user_attr(PRUNED_STAGE, stage)
    trial.set_user_attr(PRUNED_REASON, reason)
    trial.set_user_attr(DOMINATED_BY, dominated_by)
    raise optuna.TrialPruned(reason)
