"""Learn a new objective, such as the latency of a new device, from about ten labels.

``nasrlm.adaptation`` lists the models that take part and when. Here they are combined:

- Accuracy: mean of a Gaussian process and boosted trees, then corrected by a graph network.
- Cost: weighted mean of two Gaussian processes, one on the checkpoint's predictions and one on counts of the networks'
  operators (docs/log.md, 2026-11-27), then corrected by the sum of what the rows of a text cost.

The combined predictions for all texts of the pool are what a readout (``nasrlm.model.readout``) learns; it needs the
text alone. Nothing else of the model changes, so predictions of the old objectives stay the same, bit for bit.

N texts, n labels, M known objectives, G points of a table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from nasrlm.adaptation.adaptable_labels import labelled_rows, warn_of_labels, warn_of_strays
from nasrlm.adaptation.boosted_trees import expected_by_trees
from nasrlm.adaptation.graph_network_fit import FittedGraphs, best_share
from nasrlm.adaptation.group_process import GroupProcess
from nasrlm.adaptation.label_scales import Standardised
from nasrlm.adaptation.pool import Pool, check_adaptable, is_logarithmic, scaled_labels
from nasrlm.adaptation.readout_fit import AveragedSum, Expected, LeftOut, Readout, sizes_of, stacked, unstacked
from nasrlm.adaptation.repeated_labels import deviations_of_one, first_of_each, first_rows, one_a_text, places_of
from nasrlm.arguments import check_flag
from nasrlm.arrays import FloatArray, to_floats
from nasrlm.callers import warn_caller
from nasrlm.checkpoints.checkpoint import Checkpoint, round_weights
from nasrlm.deviations import SMALLEST_DEVIATION
from nasrlm.model.cost_sum import without
from nasrlm.model.graph_network import Operators
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.readout import GRID, REACH, directions
from nasrlm.model.row_sum import RowSum
from nasrlm.named_spaces import known_as
from nasrlm.objective import PERCENT, Objective, decoding_order
from nasrlm.text.counts import AT_PLACES
from nasrlm.text.network import up_to_executed
from nasrlm.text.row_counts import RowCounts, row_counts

FEWEST_TO_SUM = 30  # labels; with fewer, the process on the checkpoint's predictions is better than a row sum
FEW_LABELS = 10  # with so many, the process on counts of operators has half of the weight that it has with many
LARGEST_SHARE_LIKE_EARLIER = 0.05  # of a pool's texts; 0 between most published spaces, 0.5 for two pools of one space
SMALLEST_SHARE = 0.1  # weight of a row sum below which counting rows is not worth its time


def adapt(
    checkpoint: Checkpoint,
    pool: Pool,
    objective: str,
    labels: ArrayLike,
    progress: bool = False,
    *,
    names: Sequence[str] | None = None,
    beside: bool = False,
) -> Checkpoint:
    """Return a checkpoint that also predicts a new objective, or has learned a known one anew.

    Args:
        checkpoint: to start from; it is not changed.
        pool: of ``nasrlm.make_pool``, texts with and without labels: a thousand or two of the space whose networks
            will be predicted.
        objective: ``metric_unit@context``.
        labels: (N,) in the objective's unit, NaN or missing where a text has none; ten are a good start. Labels of
            equal texts are averaged; spellings of one network are merged if their labels never differ.
        progress: show a bar on stderr while graph networks learn.
        names: of the N texts, for warnings; if None, warnings give their indices.
        beside: keep what ``adapt`` taught of the objective from networks of other spaces; otherwise it is forgotten. A
            network is then predicted by what was learned in its space; if that is not named, in the space whose
            networks it resembles most.

    Warns:
        UserWarning: all labels are equal, accuracies look like fractions, costs are 0 or seem to be in two units, a
            label is far from what all others predict, or texts are more like those of an earlier pool that is kept.

    Raises:
        ValueError: labels are not numbers, infinite, above 1e30, or impossible for the objective, such as a negative
            latency; there is not one label or NaN per text, or fewer than two or more than 8,000 labels, or all are of
            one text; ``objective`` is not an objective's name; there are not N names; ``beside`` is neither True nor
            False; the model's head is not "digits"; or it knows nothing but this objective, from ``adapt``, and the
            texts are no networks.

    Example:
        >>> pool = nasrlm.make_pool(checkpoint, onnx_texts, space="nasbench201")  # doctest: +SKIP
        >>> labels = np.full(len(onnx_texts), np.nan)  # doctest: +SKIP
        >>> labels[:10] = measured_ms  # doctest: +SKIP
        >>> adapted = nasrlm.adapt(checkpoint, pool, "latency_ms@mine", labels)  # doctest: +SKIP
        >>> nasrlm.Predictor(adapted).predict(onnx_texts, ["latency_ms@mine"]).median  # doctest: +SKIP
    """
    check_adaptable(checkpoint, [objective])
    check_flag("adapt: beside", beside)
    if not isinstance(pool, Pool):
        raise ValueError(
            f"adapt: expected a pool, got {type(pool).__name__}. Create one with make_pool(checkpoint, texts)."
        )
    try:
        labels = to_floats(labels)
    except (TypeError, ValueError) as e:
        raise ValueError(f"adapt: expected numbers as labels of {objective}, got {repr(labels)[:60]}.") from e
    rows = labelled_rows(pool, objective, labels, names)
    labels, is_known = labels[rows], objective in pool.objectives
    pool = pool.to_learn(objective)
    warn_of_labels(objective, labels)
    warn_of_strays(pool, objective, rows, labels, names, "still learned: leave it out if the measurement failed")
    rows = _first_spellings(pool, rows, labels)
    if len(firsts := first_rows(pool.texts)) < len(pool.texts):
        pool, rows = pool.at(firsts), places_of(pool.texts)[rows]
    if pool.counts.any() and Objective.parse(objective).is_accuracy:
        expected = _expected_by_networks(pool, rows, labels, is_known, progress)
    else:
        expected = _expected_by_predictions(pool, objective, rows, labels)
    readout = Readout.fit(pool.text_features, expected)
    adapted = _with_readout(checkpoint, objective, readout, pool.space, beside)
    if beside:
        _warn_of_texts_like_earlier(adapted, objective, pool)
    return adapted


def _first_spellings(pool: Pool, rows: NDArray[np.intp], labels: FloatArray) -> NDArray[np.intp]:
    """Replace each labelled text by the first labelled spelling of its network, whose label all spellings share.

    Otherwise leave-one-out errors would be too small: the copies of a left-out label would reveal it. Nothing changes
    if spellings of a network differ in their labels, or if all labelled texts are of one network.
    """
    firsts = first_of_each([up_to_executed(pool.texts[row]) for row in rows.tolist()])
    return rows[firsts] if (labels == labels[firsts]).all() and firsts.any() else rows


def _expected_by_predictions(pool: Pool, objective: str, rows: NDArray[np.intp], labels: FloatArray) -> Expected:
    """Predict the labels of all texts by Gaussian processes whose main features are the model's own predictions."""
    logarithmic = is_logarithmic(objective, labels)
    of_each, places = scaled_labels(labels, logarithmic), places_of(rows.tolist())  # before labels are merged
    rows, labels = one_a_text(rows, labels)
    scaled = scaled_labels(labels, logarithmic)
    scale = Standardised.of(scaled, logarithmic)
    targets = scale.forward(scaled)
    process = pool.process_of(objective, rows, targets)
    table = scale.backward(GRID.numpy())
    if not logarithmic:
        table = table.clip(*Objective.parse(objective).bounds)
    mean, deviation = process.predict(pool.inputs, pool.followed)
    errors, deviations = process.left_out()
    if pool.counts.any():
        by_networks = _process_of_networks(pool).fit(rows, targets, Standardised(0.0, 1.0))
        share = _share_of_networks(pool, len(rows))
        mean = mean + share * (by_networks.expected_scores(np.arange(len(mean))) - mean)
        errors = errors + share * (by_networks.left_out() - errors)
    averaged = None
    if logarithmic and len(rows) >= FEWEST_TO_SUM:
        counts = [row_counts(pool.texts[row]) for row in rows]
        averaged, errors = _averaged_sum(counts, labels, errors, table, Objective.parse(objective).is_rate)
    gain = averaged.gain if averaged else 1.0
    errors_of_each = errors[places] + (of_each - scaled[places]) / scale.deviation
    return Expected(
        mean,
        deviation / gain,
        table,
        logarithmic,
        left_out=LeftOut(rows[places], errors_of_each, (deviations / gain)[places]),
        averaged_sum=averaged,
        # In known spaces the encoder's states tell as much.
        log_sizes=pool.log_sizes if logarithmic and pool.guessed else None,
    )


def _share_of_networks(pool: Pool, count: int) -> float:
    """Return the weight of ``_process_of_networks`` with ``count`` labels: a half, but less with few if the space is
    known, because the predictions of the other process tell more then (docs/log.md, 2026-11-29).
    """
    return 0.5 if pool.guessed else 0.5 * count / (count + FEW_LABELS)


def _process_of_networks(pool: Pool) -> GroupProcess:
    """Make a Gaussian process on counts of the networks' operators, and on two groups with linear kernels too:
    predictions that are no guesses, and the networks' sizes.
    """
    _, *groups = pool.text_features.numbers()  # without the encoder's states, which do not improve it
    groups += [pool.learned, pool.sizes]
    return GroupProcess(groups, linear=[len(groups) - 2, len(groups) - 1])


def _averaged_sum(
    counts: Sequence[RowCounts], labels: FloatArray, errors: FloatArray, table: FloatArray, is_rate: bool
) -> tuple[AveragedSum | None, FloatArray]:
    """Fit the sum of what a text's rows cost, and its share in the average with a prediction with (n,) ``errors``.

    The share is the one with the least leave-one-out error. Returns the errors of the average too; None and ``errors``
    if no sum can be fitted or its share is below ``SMALLEST_SHARE``.
    """
    fitted = RowSum.fit(counts, labels, is_rate)
    if fitted is None:
        return None, errors
    row_sum, by_others = fitted
    low, high = table[[0, -1]]  # logarithms of costs
    unit = (high - low) / (2 * REACH)
    of_sum = (np.log(labels) - np.log(np.nan_to_num(by_others).clip(min=math.exp(low)))) / unit
    share = best_share(of_sum, errors)
    if share < SMALLEST_SHARE:
        return None, errors
    of_both = share * of_sum + (1 - share) * errors
    gain = math.sqrt((errors @ errors) / max(of_both @ of_both, SMALLEST_DEVIATION**2))
    return AveragedSum(row_sum, share, gain), of_both


def _expected_by_networks(
    pool: Pool, rows: NDArray[np.intp], labels: FloatArray, is_known: bool, progress: bool
) -> Expected:
    """Predict an accuracy of all texts from counts of their networks' operators and the model's other accuracies.

    The mean is that of a Gaussian process and boosted trees, which fit steps that a process smooths. The readout will
    move it towards a graph network, by a share that held-out labels decide.
    """
    accuracies = pool.accuracies
    if is_known:  # the model may have learned the other accuracies together with these very labels
        accuracies = accuracies[:, :0]
    of_each, texts_of_each = labels, rows.tolist()  # before labels are merged
    rows, labels = one_a_text(rows, labels)
    _, *of_networks = pool.text_features.numbers()  # without the encoder's states, which do not improve it
    process = GroupProcess([*of_networks, accuracies]).fit(rows, labels)
    mean, deviation = process.predict(np.arange(len(pool.texts)))
    scores = process.scale.forward(labels)
    # Trees rank better without the counts of operators by place, given the weights by place.
    to_split = np.delete(pool.counts, AT_PLACES, axis=1)
    by_trees = expected_by_trees(np.concatenate([to_split, accuracies], axis=1), rows, scores)
    networks = [Operators.of_text(pool.texts[row]) for row in rows]
    graphs = FittedGraphs.fit(networks, scores, process.left_out(), progress)
    of_one = deviations_of_one(texts_of_each, process.scale.forward(of_each))
    noise = math.sqrt(process.noise + float((of_one**2).mean()))
    deviation = np.hypot(deviation, noise) * (graphs.error if graphs else 1.0)
    table = process.scale.backward(GRID.numpy()).clip(*PERCENT)
    return Expected((mean + by_trees) / 2, deviation, table, graphs=graphs)


def _with_readout(checkpoint: Checkpoint, objective: str, readout: Readout, space: str, beside: bool) -> Checkpoint:
    """Return the checkpoint with a readout of one objective for a space, beside or in place of those that it has for
    others; accuracies stand before costs.
    """
    old = checkpoint.model
    names = decoding_order(dict.fromkeys((*checkpoint.objectives, objective)))
    weights = old.weights_without_readouts()
    prompts = weights["decoder.objectives.weight"]
    rows = [prompts[checkpoint.objectives.index(x)] if x in checkpoint.objectives else prompts.mean(0) for x in names]
    weights["decoder.objectives.weight"] = torch.stack(rows)
    others = [
        (name, other, x)
        for name, other, x in _readouts(checkpoint)
        if name != objective or (beside and not _replaces(readout, space, x, other))
    ]
    of_each, spaces, readouts = zip(*others, (objective, space, readout), strict=True)
    state = stacked(readouts) | {"objectives": torch.tensor([names.index(name) for name in of_each])}
    weights |= {f"readouts.{name}": x for name, x in state.items()}
    config = replace(old.config, **sizes_of(state))
    model = RegressionLanguageModel.to_fill(config, checkpoint.tokenizer.vocabulary_size, len(names), old.code)
    model.load_state_dict(weights)
    if checkpoint.weight_bits == 16:
        round_weights(model)
    return replace(
        checkpoint,
        model=model.to(prompts.device).eval(),
        objectives=names,
        calibration={name: levels for name, levels in checkpoint.calibration.items() if name != objective},
        calibration_by_space={
            space: {name: () if name == objective else levels for name, levels in known.items()}
            for space, known in checkpoint.calibration_by_space.items()
        },
        sums=without(checkpoint.sums, [objective]),
        sums_by_space={
            space: kept for space, sums in checkpoint.sums_by_space.items() if (kept := without(sums, [objective]))
        },
        readout_spaces=spaces,
    )


def _replaces(readout: Readout, space: str, earlier: Readout, earlier_space: str) -> bool:
    """Return whether both readouts are of one space; if one is not named, whether no text can tell which of them was
    fitted to networks more like its own.
    """
    if space and earlier_space:
        return known_as(space, [earlier_space]) == earlier_space
    return torch.equal(*[directions(x.tensors["centre"]) for x in (readout, earlier)])


def _warn_of_texts_like_earlier(adapted: Checkpoint, objective: str, pool: Pool) -> None:
    """Warn if texts of the pool would be read by another readout than the newest, which is the last, if their space
    were not named.
    """
    assert adapted.model.readouts is not None
    ids = torch.tensor([adapted.objectives.index(objective)], device=adapted.model.readouts.objectives.device)
    of, chosen = adapted.model.readouts.choice(torch.from_numpy(pool.summaries).to(ids.device), ids)
    if (share := float((chosen < len(of) - 1).double().mean())) > LARGEST_SHARE_LIKE_EARLIER:
        advice = "Name their space in predictions too" if pool.space else "Give make_pool and predictions their space"
        warn_caller(
            f"adapt: {100 * share:.0f} % of the texts are more like those from which {objective} was learned before. "
            f"{advice}, or these are predicted from the earlier labels."
        )


def _readouts(checkpoint: Checkpoint) -> list[tuple[str, str, Readout]]:
    """Return the readouts that a checkpoint already has, each with its objective and space."""
    if checkpoint.model.readouts is None:
        return []
    each = unstacked(checkpoint.model.readouts)
    return list(zip(checkpoint.of_readouts, checkpoint.readout_spaces, each, strict=True))
