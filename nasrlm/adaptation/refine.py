"""Replace costs that the decoder predicts by sums of what a text's rows cost, where valid rows show these are closer.

A row of a text is an operator with its attributes and its place (``nasrlm.model.row_sum``). The sum is exact for a
device that runs one operator after another; for other devices the decoder is closer. A cost that the decoder predicts,
digit by digit, is called spelled.

n labelled texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from tqdm import tqdm

from nasrlm.adaptation.repeated_labels import mean_labels, places_of
from nasrlm.adaptation.stray_labels import LEAST_GAP
from nasrlm.arguments import check_kind
from nasrlm.arrays import FloatArray
from nasrlm.calibration import LEVELS, fit_calibration
from nasrlm.checkpoints.checkpoint import Checkpoint, check_checkpoint
from nasrlm.deviations import COVERED, deviation_covering
from nasrlm.examples import Examples
from nasrlm.model.cost_sum import CostSum, rounded, without
from nasrlm.model.row_sum import RowSum
from nasrlm.named_spaces import Space, known_as, name_of
from nasrlm.objective import MAX_LABEL, Objective
from nasrlm.predictor import Predictor
from nasrlm.text.row_counts import RowCounts, row_counts
from nasrlm.unreadable_texts import naming_rows

FEWEST_VALID = 20  # valid labels needed to compare spelled costs and sums
GAIN = 0.05  # share by which a sum's error must be smaller: sums that are hardly closer do not rank better
ROUNDING = 1e-9  # smallest deviation of logarithms; labels this close equal their sums up to rounding


class Comparison(NamedTuple):
    """Errors of one objective on valid rows: as spelled by the model, and as a sum.

    Attributes:
        objective: its name.
        labels: number of texts with labels in train and valid rows.
        spelled: mean absolute error of the model's spelled medians on valid rows, in the objective's unit.
        summed: the same for the sum, with each label left out of the fit that predicts it; NaN if no sum was fitted.
        is_summed: whether the sum is predicted from now on.
        why: the reason why no sum was fitted, or the row of a label that makes the sum less close; else empty.
    """

    objective: str
    labels: int
    spelled: float
    summed: float
    is_summed: bool
    why: str = ""


def refine(
    checkpoint: Checkpoint, space: str | Space, examples: Examples, progress: bool = False
) -> tuple[Checkpoint, list[Comparison]]:
    """Return a checkpoint that predicts costs of a space as sums where these are closer than what the decoder spells.

    Intervals of sums are calibrated on all train and valid labels, each left out of the sum that predicts it.
    Cost: ten seconds for 3,000 texts and 24 costs on one core.

    Args:
        checkpoint: to start from; it is not changed. Its own sums of these objectives are fitted anew.
        space: name of the texts' space, or the space.
        examples: rows of the space; test rows are ignored, and objectives that are no costs or that the checkpoint does
            not know.
        progress: show a bar on stderr.

    Returns:
        The checkpoint, and a comparison for each cost with at least ``FEWEST_VALID`` valid labels.

    Raises:
        ValueError: an argument is of another class; a text cannot be read, with its file and row in the message; or a
            label is beyond 1e30.
    """
    check_checkpoint("refine", checkpoint)
    check_kind("refine", examples, Examples)
    space = known_as(known_as(name_of(space), checkpoint.spaces), checkpoint.sums_by_space)
    rows = examples.rows(np.flatnonzero(examples.splits != "test"))
    examples, places = _one_a_text(rows), places_of(rows.texts)
    valid, is_valid = examples.split("valid"), examples.splits == "valid"
    enough = np.isfinite(valid.labels).sum(axis=0) >= FEWEST_VALID
    named = dict(zip(examples.objectives, enough.tolist(), strict=True))
    names = [name for name, is_enough in named.items() if is_enough and may_add_up(checkpoint, name)]
    if not names:
        return checkpoint, []
    sums, of_space = without(checkpoint.sums, names), without(checkpoint.sums_of(space), names)
    spelling = replace(checkpoint, sums=sums, sums_by_space={**checkpoint.sums_by_space, space: of_space})
    with naming_rows(valid.number, valid.file):
        spelled = Predictor(spelling, "auto").of_space(space).predict(valid.texts, names, (0.5,), progress).median
    counts = list(map(row_counts, examples.texts))
    comparisons: list[Comparison] = []
    medians_of = tqdm(zip(names, spelled.T, strict=True), "sums", len(names), unit="cost", disable=not progress)
    for name, medians in medians_of:
        column = examples.objectives.index(name)
        labels, labels_of_rows = examples.labels[:, column], rows.labels[:, column]
        if (largest := np.nanmax(np.abs(labels))) > MAX_LABEL:
            raise ValueError(f"refine: expected labels of {name} up to {MAX_LABEL:g}, got {largest:g}.")
        error, summed, is_summed = float(np.nanmean(np.abs(medians - labels[is_valid]))), float("nan"), False
        if fitted := _fitted_sum(name, counts, labels, labels_of_rows, places):
            cost_sum, expected = fitted
            errors = np.abs(np.nan_to_num(expected) - labels)  # a prediction that is not above 0 counts as 0
            summed = float(errors[is_valid & np.isfinite(labels)].mean())
            if is_summed := summed < (1 - GAIN) * error:
                of_space[name] = cost_sum
        undetermined = "" if fitted else "the labels do not determine what rows cost"
        why = _doubt(rows, name) or undetermined
        comparisons.append(Comparison(name, int(np.isfinite(labels).sum()), error, summed, is_summed, why))
    in_order = {name: of_space[name] for name in checkpoint.objectives if name in of_space}
    sums_by_space = {**checkpoint.sums_by_space, space: in_order}
    return replace(spelling, sums_by_space={name: x for name, x in sums_by_space.items() if x}), comparisons


def _one_a_text(examples: Examples) -> Examples:
    """Merge rows with equal texts into one with their mean label; it is a train row if any of them is one."""
    firsts, labels = mean_labels(examples.texts, examples.labels)
    learned = {examples.texts[row] for row in np.flatnonzero(examples.splits == "train").tolist()}
    found = examples.rows(firsts)
    splits = np.array(["train" if text in learned else "valid" for text in found.texts], dtype=np.str_)
    return replace(found, labels=labels, splits=splits)


def _doubt(rows: Examples, objective: str) -> str:
    """Say what is wrong with labels of rows: one is not above 0, or far above or below the others; "" if neither."""
    labels = rows.labels[:, rows.objectives.index(objective)]
    if np.nanmin(labels) <= 0:
        return "a label is not above 0"
    ascending = np.argsort(labels)[: np.count_nonzero(np.isfinite(labels))]  # NaN is sorted to the end
    ratios = labels[ascending[1:]] / labels[ascending[:-1]]
    gap = int(ratios.argmax())
    if ratios[gap] < LEAST_GAP:
        return ""
    row = int(ascending[0 if gap < len(ratios) // 2 else -1])
    return f"{rows.place(row)} has {labels[row]:.4g}, far from the other labels"


def may_add_up(checkpoint: Checkpoint, objective: str) -> bool:
    """Return whether an objective is a cost that the checkpoint spells, which may become a sum."""
    spelled = objective in checkpoint.objectives and objective not in checkpoint.read_off
    return spelled and not Objective.parse(objective).is_accuracy


def _fitted_sum(
    objective: str,
    counts: Sequence[RowCounts],
    labels: FloatArray,
    labels_of_rows: FloatArray,
    places: NDArray[np.intp],
) -> tuple[CostSum, FloatArray] | None:
    """Fit a sum to the (n,) mean labels of texts, and its intervals to the single labels of rows, of texts ``places``.

    Returns the sum, and (n,) labels predicted from those of all other texts; NaN where a text has no label or the
    prediction is not above 0. None if labels are not all above 0, or do not determine what rows cost.
    """
    texts, rows = np.flatnonzero(np.isfinite(labels)), np.flatnonzero(np.isfinite(labels_of_rows))
    if not (labels_of_rows[rows] > 0).all():
        return None
    fitted = RowSum.fit([counts[text] for text in texts.tolist()], labels[texts], Objective.parse(objective).is_rate)
    if fitted is None:
        return None
    row_sum, left_out = fitted
    expected = np.full(len(counts), np.nan)
    expected[texts] = rounded(left_out)
    errors = np.nan_to_num(np.log(labels_of_rows[rows] / expected[places[rows]]), nan=np.inf)
    farthest = float(np.quantile(np.abs(errors), COVERED, method="higher"))
    if not np.isfinite(farthest):  # too many predictions are not above 0
        return None
    deviation = max(deviation_covering(farthest), ROUNDING)
    if deviation <= ROUNDING:  # labels equal their sums up to rounding
        return CostSum(row_sum, deviation, list(map(float, LEVELS))), expected
    return CostSum(row_sum, deviation, fit_calibration({"": norm.cdf(errors / deviation)})[""]), expected
