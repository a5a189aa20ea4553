"""How a front fares by true labels."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nasrlm.arrays import FloatArray
from nasrlm.objective import from_losses, to_losses
from studies.config import SearchConfig
from studies.constraints import feasible_mask
from studies.evaluators import TableEvaluator
from studies.loaded_study import LoadedStudy
from studies.pareto import complete_mask, hypervolume_ratio, pareto_mask

A = TypeVar("A", bound=Hashable)


@dataclass(frozen=True)
class Truth:
    """How the found front fares by true labels, those of the table's rows.

    Attributes:
        hypervolume_ratio: of the true labels of the found front to the true front, in [0, 1].
        reference_point: (M,) the worst label of each goal in the table, own units.
        unknown: front members that the table does not know; the found front is then the one among those
            evaluated architectures that it does know.
        left_out: rows of the table with a label missing.
    """

    hypervolume_ratio: float
    reference_point: tuple[float, ...]
    unknown: int
    left_out: int


def true_labels(config: SearchConfig, truth: TableEvaluator[A]) -> FloatArray:
    """(N, M) labels of the rows that have every one of ``config.objectives``, a column each.

    Raises:
        ValueError: the table lacks an objective, or no row has every label.
    """
    missing = [name for name in config.objectives if name not in truth.objectives]
    if missing:
        raise ValueError(
            f"truth {truth.name}: expected {', '.join(config.objectives)}, got no {', '.join(missing)}. "
            f"It was read for {', '.join(truth.objectives)}."
        )
    labels = truth.row_labels[:, [truth.objectives.index(name) for name in config.objectives]]
    known = complete_mask(labels)
    if not known.any():
        raise ValueError(
            f"truth {truth.name}: expected rows with {', '.join(config.objectives)}, got none in {len(known)} rows. "
            "Use a table with these labels."
        )
    return labels[known]


def judge(study: LoadedStudy, truth: TableEvaluator[A]) -> Truth:
    """Compare with true labels, row by row.

    The found front is predicted: the feasible evaluated architectures that the table knows and that no other
    such one dominates by predicted medians. Its members count with their true labels, where these meet the
    constraints.
    """
    config, history = study.config, study.history
    labels = true_labels(config, truth)
    columns = [truth.objectives.index(name) for name in config.objectives]
    architectures = [truth.space.parse(notation) for notation in history.architectures]
    own = truth.evaluate(architectures).median[:, columns]
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
