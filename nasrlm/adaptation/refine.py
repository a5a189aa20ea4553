"""Costs that a checkpoint spells become sums of what the rows of a text cost, wherever valid rows show this is closer.

The sum is exact for a device that runs one operator after another; for others what is spelled is closer.

n labelled texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from tqdm import tqdm

from nasrlm.adaptation.repeated_labels import mean_labels, places_of
from nasrlm.arrays import FloatArray
from nasrlm.calibration import LEVELS, fit_calibration
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.deviations import COVERED, deviation_covering
from nasrlm.examples import Examples
from nasrlm.model.cost_sum import CostSum, rounded, without
from nasrlm.model.row_sum import RowSum
from nasrlm.objective import MAX_LABEL, Objective
from nasrlm.predictor import Predictor
from nasrlm.reader import naming_rows
from nasrlm.text.row_counts import RowCounts, row_counts

FEWEST_VALID = 20  # labels by which what is spelled and what is added up are compared
GAIN = 0.05  # by which errors have to be smaller: sums that are hardly nearer rank no better
ROUNDING = 1e-9  # of logarithms: labels that are what is said, but for rounding


class Comparison(NamedTuple):
    """Errors of one objective on valid rows, spelled by the model and as a sum.

    Attributes:
        objective: its name.
        labels: how many there are, in train and valid rows together.
        spelled: mean absolute error on valid rows of what the model spells, in the objective's unit.
        summed: the same of the sum, each label left out of the fit that it is compared with; NaN if no sum was fitted.
        is_summed: whether the sum is predicted from now on.
        why: no sum was fitted, in words; empty if one was.
    """

    objective: str
    labels: int
    spelled: float
    summed: float
    is_summed: bool
    why: str = ""


def refine(
    checkpoint: Checkpoint, space: str, examples: Examples, progress: bool = False
) -> tuple[Checkpoint, list[Comparison]]:
    """A checkpoint that says costs of a space as sums where valid rows show that these are closer than what it spells.

    Their intervals are calibrated by all train and valid labels, each left out of the sum that it is compared with.
    Cost: ten seconds for 3,000 texts and 24 costs on one core.

    Args:
        checkpoint: left as it is; sums that it has of these objectives are made anew.
        space: of the texts.
        examples: rows of the space; test rows are not used, nor objectives that are no costs or not known.
        progress: show a bar on stderr.

    Returns:
        The checkpoint, and how each cost compares that has ``FEWEST_VALID`` valid labels or more.

    Raises:
        ValueError: a text cannot be read; the message names its file and row; or labels beyond 1e30.
    """
    rows = examples.rows(np.flatnonzero(examples.splits != "test"))
    examples, places = _one_a_text(rows), places_of(rows.texts)
    valid = examples.split("valid")
    enough = np.isfinite(valid.labels).sum(axis=0) >= FEWEST_VALID
    named = dict(zip(examples.objectives, enough.tolist(), strict=True))
    names = [name for name, is_enough in named.items() if is_enough and may_add_up(checkpoint, name)]
    if not names:
        return checkpoint, []
    sums, of_space = without(checkpoint.sums, names), without(checkpoint.sums_by_space.get(space, {}), names)
    spelling = replace(checkpoint, sums=sums, sums_by_space={**checkpoint.sums_by_space, space: of_space})
    with naming_rows(valid.number, valid.file):
        spelled = Predictor(spelling, "auto").of_space(space).predict(valid.texts, names, (0.5,), progress).median
    counts = list(map(row_counts, examples.texts))
    comparisons: list[Comparison] = []
    medians_of = tqdm(zip(names, spelled.T, strict=True), "sums", len(names), unit="cost", disable=not progress)
    for name, medians in medians_of:
        column = examples.objectives.index(name)
        labels, labels_of_valid = examples.labels[:, column], valid.labels[:, column]
        if (largest := np.nanmax(np.abs(labels))) > MAX_LABEL:
            raise ValueError(f"refine: expected labels of {name} up to {MAX_LABEL:g}, got {largest:g}.")
        error = float(np.nanmean(np.abs(medians - labels_of_valid)))
        of_each = rows.labels[:, column]
        fitted = _Fitted.to(name, counts, labels, of_each, places)
        summed = fitted.error(np.flatnonzero(examples.splits == "valid")) if fitted else float("nan")
        is_summed = summed < (1 - GAIN) * error
        why = "" if fitted else "a label is not above 0" if np.nanmin(of_each) <= 0 else "too few labels for their rows"
        comparisons.append(Comparison(name, int(np.isfinite(labels).sum()), error, summed, is_summed, why))
        if fitted and is_summed:
            of_space[name] = fitted.cost_sum
    in_order = {name: of_space[name] for name in checkpoint.objectives if name in of_space}
    sums_by_space = {**checkpoint.sums_by_space, space: in_order}
    return replace(spelling, sums_by_space={name: x for name, x in sums_by_space.items() if x}), comparisons


def _one_a_text(examples: Examples) -> Examples:
    """Merge equal texts into one row with the mean of their labels; it is a train row if any of them is."""
    firsts, labels = mean_labels(examples.texts, examples.labels)
    learned = {examples.texts[row] for row in np.flatnonzero(examples.splits == "train").tolist()}
    found = examples.rows(firsts)
    splits = np.array(["train" if text in learned else "valid" for text in found.texts], dtype=np.str_)
    return replace(found, labels=labels, splits=splits)


def may_add_up(checkpoint: Checkpoint, objective: str) -> bool:
    """Whether an objective is a cost that the checkpoint spells, and may become a sum."""
    spelled = objective in checkpoint.objectives and objective not in checkpoint.read_off
    return spelled and not Objective.parse(objective).is_accuracy


@dataclass(frozen=True)
class _Fitted:
    """A sum fitted to labels of one cost, and what is expected of each label by all others.

    Attributes:
        cost_sum: by all labels.
        rows: (n,) of the texts that have one.
        labels: (n,) of them.
        expected: (n,) by all other labels; NaN where that is not above 0.
        errors: logarithm of every single label, before those of a text were averaged, less that of what is expected of
            its text; infinite where nothing is.
    """

    cost_sum: CostSum
    rows: NDArray[np.intp]
    labels: FloatArray
    expected: FloatArray
    errors: FloatArray

    @classmethod
    def to(
        cls,
        objective: str,
        counts: Sequence[RowCounts],
        labels: FloatArray,
        of_each: FloatArray,
        places: NDArray[np.intp],
    ) -> _Fitted | None:
        """Fit a sum to labels; None where these are not all above 0, or do not tell what rows cost."""
        rows, known = np.flatnonzero(np.isfinite(labels)), np.isfinite(of_each)
        labels = labels[rows]
        if not (of_each[known] > 0).all():
            return None
        fitted = RowSum.fit([counts[row] for row in rows.tolist()], labels, Objective.parse(objective).is_rate)
        if fitted is None:
            return None
        cost_sum = CostSum(fitted[0], deviation=1.0)
        expected = np.full(len(counts), np.nan)
        expected[rows] = rounded(fitted[1])
        errors = np.nan_to_num(np.log(of_each[known] / expected[places[known]]), nan=np.inf)
        found = cls(cost_sum, rows, labels, expected[rows], errors)
        farthest = float(np.quantile(np.abs(errors), COVERED, method="higher"))
        if not np.isfinite(farthest):  # too many sums are no costs
            return None
        deviation = max(deviation_covering(farthest), ROUNDING)
        return replace(found, cost_sum=replace(cost_sum, deviation=deviation, levels=found._levels(deviation)))

    def error(self, rows: NDArray[np.intp]) -> float:
        """Mean absolute error of what is expected of the labels of some of the texts."""
        of_these = np.isin(self.rows, rows)
        return float(np.abs(np.nan_to_num(self.expected) - self.labels)[of_these].mean())

    def _levels(self, deviation: float) -> list[float]:
        """Calibrated levels, or ``LEVELS`` itself where labels equal their sums but for rounding."""
        if deviation <= ROUNDING:
            return list(map(float, LEVELS))
        return fit_calibration({"": norm.cdf(self.errors / deviation)})[""]
