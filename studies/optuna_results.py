"""What an Optuna trial tells of its network: real results, and whether the user's constraints are met."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from converters.counts import COUNTS, counts_by_name
from spaces import ArchitectureError, SearchSpace
from spaces.shown import shown
from studies.optuna_storage import ARCHITECTURE, gene_distributions
from studies.tables import spelled_notation


def results_of(trial: FrozenTrial, space: SearchSpace[Any], num_goals: int, others: Sequence[str]) -> list[float]:
    """Real values: those of a completed trial, then of objectives that are no goals; NaN where it tells none.

    Counts such as ``params@onnx`` that a completed trial leaves out are counted.

    Raises:
        ValueError: the attribute of an objective is no number, or that of the architecture spells none.
    """
    is_complete = trial.state == TrialState.COMPLETE
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
