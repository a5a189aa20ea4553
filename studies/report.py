"""The result of a study, the front and its hypervolume, and how it is written. M goals, F front members."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from nasrlm.arrays import BoolArray
from nasrlm.files import write_atomically
from nasrlm.objective import from_losses
from nasrlm.versions import versions_of
from studies.columns import ARCHITECTURE, EVALUATION, FEASIBLE, ORDER, SOFT_MET
from studies.constraints import soft_violations
from studies.evaluators import TableEvaluator
from studies.folder import FINISHED, FRONT_FILE, STUDY_FILE, write_json
from studies.loaded_study import LoadedStudy
from studies.pareto import hypervolume
from studies.truth import Truth, judge, own_labels

A = TypeVar("A", bound=Hashable)

TRUE = " true"  # suffix of the names of columns with true values
LIBRARIES = ("nasrlm", "numpy", "optuna", "pymoo", "moocore")


@dataclass(frozen=True)
class StudyResult:
    """The result of a study.

    Attributes:
        front: rows sorted by the first goal, best first: ``architecture``, then each objective with ``median``, ``low``
            and ``high`` in its own unit, and ``soft_met`` if there are soft constraints.
        hypervolume: hypervolume of the front's medians up to ``reference_point``; 0 if nothing is feasible.
        reference_point: (M,) worst median of each goal in the history, in own units.
        evaluations: number of evaluated architectures with complete results.
        failed: number of evaluated architectures without complete results.
        pruned: number of architectures that the gate pruned; with several workers, of those this one proposed.
        stopped: why the search ended before its trials were spent, or None.
        unmet: if the front is empty, each hard bound that no evaluated architecture meets, with the nearest value.
        seconds: total time of all finished runs into the study's folder, without figures.
        truth: comparison with true labels, if a table of them was given.
    """

    front: tuple[dict[str, Any], ...]
    hypervolume: float
    reference_point: tuple[float, ...]
    evaluations: int
    failed: int
    pruned: int
    stopped: str | None
    seconds: float
    truth: Truth | None
    unmet: tuple[str, ...] = ()

    def __repr__(self) -> str:
        others = "".join(f"{n:,} {kind}, " for n, kind in ((self.failed, "failed"), (self.pruned, "pruned")) if n)
        counts = f"{self.evaluations:,} evaluated, {others}{len(self.front):,} on the front"
        return f"StudyResult({counts}; see front, hypervolume)"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        values: dict[str, Any] = {
            "front": list(self.front),
            "hypervolume": self.hypervolume,
            "reference_point": list(self.reference_point),
            "evaluations": self.evaluations,
            "failed": self.failed,
            "pruned": self.pruned,
            "stopped": self.stopped,
            "seconds": round(self.seconds, 3),
            "unmet": list(self.unmet),
        }
        if self.truth is not None:
            ratio = self.truth.hypervolume_ratio
            values["hypervolume_ratio"] = None if math.isnan(ratio) else ratio
            values["truth_reference_point"] = list(self.truth.reference_point)
            values["truth_unknown"] = self.truth.unknown
            values["truth_left_out"] = self.truth.left_out
        return values


def summarise(
    study: LoadedStudy, *, truth: TableEvaluator[A] | None, stopped: str | None, seconds: float
) -> StudyResult:
    """Compute the result of a finished study."""
    losses, rows, goals = study.losses, study.front_rows, study.config.goals
    complete, evaluated = study.history.complete(), np.array(study.history.evaluated, dtype=np.bool_)
    worst = losses[complete].max(axis=0) if complete.any() else np.zeros(len(goals))
    return StudyResult(
        front=_front(study),
        hypervolume=hypervolume(losses[rows], worst),
        reference_point=tuple(from_losses(goals, worst[None])[0].tolist()),
        evaluations=int(complete.sum()),
        failed=int((evaluated & ~complete).sum()),
        pruned=int((~evaluated).sum()),
        stopped=stopped,
        seconds=seconds,
        truth=None if truth is None else judge(study, truth),
        unmet=() if rows else _unmet(study),
    )


def _unmet(study: LoadedStudy) -> tuple[str, ...]:
    """Return the hard bounds that no evaluated architecture meets, in words."""
    told = []
    for bound in study.config.hard_constraints:
        values = study.history.medians()[:, study.history.objectives.index(bound.objective)]
        values = values[np.isfinite(values)]
        if len(values) and (bound.violation(values) > 0).all():
            nearest = f"least found was {values.min():g}" if bound.at_most else f"largest found was {values.max():g}"
            told.append(f"{bound}: the {nearest}")
    return tuple(told)


def _front(study: LoadedStudy) -> tuple[dict[str, Any], ...]:
    history = study.history
    return tuple(
        {
            ARCHITECTURE: history.architectures[row],
            **{
                name: dict(zip(("median", "low", "high"), bounds, strict=True))
                for name, bounds in zip(history.objectives, history.values[row].tolist(), strict=True)
            },
            **({SOFT_MET: met} if study.config.has_soft_constraints else {}),
        }
        for row, met in zip(study.front_rows, _soft_met(study).tolist(), strict=True)
    )


def _soft_met(study: LoadedStudy) -> BoolArray:
    """Return (F,) flags: whether the medians of a front member meet all soft constraints."""
    medians = study.history.medians()[study.front_rows]
    violations = soft_violations(study.config.objectives, study.config.constraints, medians)
    return np.asarray(violations == 0, dtype=np.bool_)


def write_report(out: Path, study: LoadedStudy, result: StudyResult, *, truth: TableEvaluator[A] | None) -> None:
    """Write study.json and front.csv."""
    write_front(out, study, truth=truth)
    measures = {name: value for name, value in result.to_dict().items() if name != "front"}
    told = {"status": FINISHED, "config": study.config.to_dict(), **measures, "versions": versions_of(*LIBRARIES)}
    write_json(out / STUDY_FILE, told)


def write_front(out: Path, study: LoadedStudy, *, truth: TableEvaluator[A] | None = None) -> Path:
    """Write front.csv and return its path: a row for each front member, best in the first goal first.

    It has the number of each member's evaluation, and ``soft_met`` and true values if these apply.
    """
    rows = study.front_rows
    front = study.history.to_frame().iloc[rows].drop(columns=[ORDER, FEASIBLE])
    front.insert(0, EVALUATION, study.history.evaluations()[rows].astype(np.int64))
    if study.config.has_soft_constraints:
        front[SOFT_MET] = _soft_met(study)
    if truth is not None and rows:
        names = [name + TRUE for name in study.config.objectives]
        front[names] = own_labels(study.config, truth, front[ARCHITECTURE])
    write_atomically(out / FRONT_FILE, front.to_csv(index=False).encode())
    return out / FRONT_FILE
