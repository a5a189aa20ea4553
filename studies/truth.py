"""Judge a front by true labels. N architectures, M objectives."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nasrlm.arrays import FloatArray, complete_mask
from nasrlm.objective import from_losses, to_losses
from studies.config import SearchConfig
from studies.constraints import feasible_mask
from studies.evaluators import TableEvaluator
from studies.loaded_study import LoadedStudy
from studies.pareto import hypervolume_ratio, pareto_mask

A = TypeVar("A", bound=Hashable)


@dataclass(frozen=True)
class Truth:
    """The comparison of a found front with the true front of a table.

    Attributes:
        hypervolume_ratio: hypervolume of the found front's true labels, relative to the true front; in [0, 1].
        reference_point: (goals,) worst label of each goal in the table, in own units.
        unknown: number of front members that are not in the table. The found front is then that of the evaluated
            architectures in the table.
        left_out: number of the table's rows without all labels.
    """

    hypervolume_ratio: float
    reference_point: tuple[float, ...]
    unknown: int
    left_out: int


def true_labels(config: SearchConfig, truth: TableEvaluator[A]) -> FloatArray:
    """Return the (N, M) labels of the table's rows that have all of ``config.objectives``.

    Raises:
        ValueError: the table lacks an objective, or no row has every label.
    """
    missing = [name for name in config.objectives if name not in truth.objectives]
    if missing:
        raise ValueError(
            f"truth {truth.name}: expected {', '.join(config.objectives)}, got no {', '.join(missing)}. It was loaded "
            f"for {', '.join(truth.objectives)}."
        )
    labels = truth.row_labels[:, [truth.objectives.index(name) for name in config.objectives]]
    known = complete_mask(labels)
    if not known.any():
        raise ValueError(
            f"truth {truth.name}: expected rows with {', '.join(config.objectives)}, got none in {len(known)} rows. "
            "Use a table with these labels."
        )
    return labels[known]


def own_labels(config: SearchConfig, truth: TableEvaluator[A], notations: Iterable[str]) -> FloatArray:
    """Return the (N, M) true labels of N architectures; NaN if the table has none."""
    columns = [truth.objectives.index(name) for name in config.objectives]
    return truth.evaluate([truth.space.parse(notation) for notation in notations]).median[:, columns]


def judge(study: LoadedStudy, truth: TableEvaluator[A]) -> Truth:
    """Compare the found front with true labels.

    The found front is that of the study's medians among feasible evaluated architectures that are in the table. Its
    members count with their true labels, if these are feasible.
    """
    config, history = study.config, study.history
    labels = true_labels(config, truth)
    own = own_labels(config, truth, history.architectures)
    known = complete_mask(own)
    rows = np.flatnonzero(known & history.feasible)
    found = own[rows[pareto_mask(study.losses[rows])]]
    losses = to_losses(config.goals, labels[:, : len(config.goals)])
    worst = losses.max(axis=0)
    feasible, found_feasible = (feasible_mask(config.objectives, config.constraints, x) for x in (labels, found))
    return Truth(
        hypervolume_ratio=hypervolume_ratio(
            to_losses(config.goals, found[found_feasible, : len(config.goals)]), losses[feasible], worst
        ),
        reference_point=tuple(from_losses(config.goals, worst[None])[0].tolist()),
        unknown=int((~known[study.front_rows]).sum()),
        left_out=len(truth.row_labels) - len(labels),
    )
