"""Fit readouts: Gaussian processes on the five parts of a text's summary that learn other models' predictions.

The other models are those of ``nasrlm.adaptation``, which know labels and the checkpoint's predictions; a readout needs
the text alone. Anchors are the texts that its kernels compare a text with.

N texts, n labels, S numbers of a summary, F features, P anchors, G points of a table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh
from torch import Tensor, nn

from nasrlm.adaptation.graph_network_fit import FittedGraphs
from nasrlm.adaptation.group_process import GroupProcess
from nasrlm.adaptation.label_scales import Standardised
from nasrlm.arrays import FloatArray
from nasrlm.deviations import COVERED, deviation_covering
from nasrlm.model.graph_network import GraphNetwork
from nasrlm.model.readout import HASHED, NAMES, NO_ROW, NUM_FEATURES, SLOPES, Readouts, no_sum, parts_of
from nasrlm.model.row_sum import RowSum
from nasrlm.threads import one_thread

MAX_ANCHORS = 6000  # 3,000 of 6,236 texts lose 0.008; a fit with 6,000 takes 17 s, and grows with their cube


@dataclass(frozen=True)
class TextFeatures:
    """The features by which texts are compared: principal components of each part of their summaries.

    Attributes:
        centre: (S,) mean of the summaries.
        projections: (part of S, part of F) for each part.
        groups: (N, part of F) features for each part, in 16 bits as anchors are.
    """

    centre: Tensor
    projections: Sequence[Tensor]
    groups: Sequence[Tensor]

    @classmethod
    def of(cls, summaries: Tensor) -> TextFeatures:
        """Compute the features of texts from their (N, S) summaries. Cost: a second for 6,000 on one core."""
        centre = summaries.mean(dim=0).float()
        centred = parts_of(summaries - centre)
        projections = [
            _projection(part, count, standardised=name not in HASHED).float()
            for part, count, name in zip(centred, NUM_FEATURES, NAMES, strict=True)
        ]
        groups = [(part @ x.double()).half() for part, x in zip(centred, projections, strict=True)]
        return cls(centre, projections, groups)

    def numbers(self, rows: Tensor | None = None) -> list[FloatArray]:
        """Return the (N, part of F) features of each part, of some rows or of all, for a Gaussian process."""
        return [(group if rows is None else group[rows]).double().numpy() for group in self.groups]


@dataclass(frozen=True)
class LeftOut:
    """Leave-one-out predictions of labels: each by a model that knows the labels of all other texts.

    Attributes:
        rows: (n,) indices of the labelled texts among the N; a text with several labels occurs several times.
        errors: (n,) labels minus their predicted means.
        deviations: (n,) predicted standard deviations, up to a common factor, which ``width`` computes from the errors.
    """

    rows: NDArray[np.intp]
    errors: FloatArray
    deviations: FloatArray

    def width(self, unread: FloatArray) -> float:
        """Return the factor for deviations with which an 80 % interval contains a new label (conformal prediction).

        It is at least 1 / √(number of labelled texts + 1), which matters if all labels are equal and errors are 0.

        Args:
            unread: (N,) predicted mean of each text minus what the readout predicts of it.

        Source:
            Vovk, Gammerman, Shafer 2005, "Algorithmic Learning in a Random World": the rank among errors that are
            exchangeable.
        """
        sizes = np.sort(np.abs(self.errors + unread[self.rows]) / self.deviations)
        texts = len(np.unique(self.rows))  # texts are exchangeable, while labels of one text are alike
        rank = min(math.ceil(COVERED * (texts + 1)), texts)
        asked = deviation_covering(float(sizes[-(-rank * len(sizes) // texts) - 1]))
        return max(asked, 1 / math.sqrt(texts + 1))

    def are_all(self, texts: int) -> bool:
        """Return whether all N texts have labels."""
        return len(np.unique(self.rows)) == texts

    def deviations_alone(self, unread: FloatArray) -> FloatArray:
        """Return (N,) deviations for texts that all have labels, so that an 80 % interval contains a new text's label.

        No unlabelled text shows how wide intervals must be. Leave-one-out errors of labels and of the readout occur
        together, so the larger of the two counts instead of their sum (docs/log.md, 2026-11-27).

        Args:
            unread: (N,) as for ``width``.
        """
        errors = np.maximum(np.abs(self.errors), np.abs(unread[self.rows]))
        deviations = np.empty(len(unread))
        deviations[self.rows] = self.deviations
        return replace(self, errors=errors).width(np.zeros(len(unread))) * deviations


@dataclass(frozen=True)
class AveragedSum:
    """A row sum, to be averaged with another prediction of the same cost.

    Attributes:
        row_sum: the sum.
        share: its weight in the average.
        gain: errors of the other prediction, divided by those of the average.
    """

    row_sum: RowSum
    share: float
    gain: float


@dataclass(frozen=True)
class Expected:
    """Predicted labels of N texts: normal distributions on the scale of ``GRID``, including the noise of a label.

    Attributes:
        mean: (N,), before the correction by a graph network.
        deviation: (N,).
        table: (G,) labels at the grid's points, or their logarithms; it converts the scale to the objective's unit.
        logarithmic: whether the table holds logarithms.
        graphs: a graph network, which reads the texts itself, and its share of the mean.
        left_out: leave-one-out errors of the labels; if given, deviations are scaled until they cover these errors.
        averaged_sum: the sum towards which the readout's mean is moved.
        log_sizes: (N, 2) logarithms of the texts' multiply-accumulates and activations; if given, the part of the mean
            that is linear in them is predicted apart, because the features of a text do not determine them.
    """

    mean: FloatArray
    deviation: FloatArray
    table: FloatArray
    logarithmic: bool = False
    graphs: FittedGraphs | None = None
    left_out: LeftOut | None = None
    averaged_sum: AveragedSum | None = None
    log_sizes: FloatArray | None = None

    def deviations(self, rows: NDArray[np.intp], unread: FloatArray) -> FloatArray:
        """Return (n,) deviations for the readout to learn for the texts ``rows``.

        ``unread`` is the (n,) leave-one-out error of the readout's mean for these texts.
        """
        if self.left_out is None:
            return np.asarray(np.hypot(self.deviation[rows], np.sqrt((unread**2).mean())))
        of_all = np.zeros(len(self.mean))
        of_all[rows] = unread
        of_all *= 1.0 if self.averaged_sum is None else 1 - self.averaged_sum.share
        if self.left_out.are_all(len(self.mean)):
            return self.left_out.deviations_alone(of_all)[rows]
        return self.left_out.width(of_all) * self.deviation[rows]


@dataclass(frozen=True)
class Readout:
    """One objective's part of ``Readouts``.

    Attributes:
        tensors: by the names of buffers; those of a row sum only if there is one.
        network: a graph network whose scores, times ``share``, are added to the mean.
        share: weight of these scores.
    """

    tensors: dict[str, Tensor]
    network: GraphNetwork | None = None
    share: float = 0.0

    @classmethod
    def fit(cls, features: TextFeatures, expected: Expected) -> Readout:
        """Fit a readout that predicts ``expected`` from the texts alone.

        Its own errors are added to the deviations. Cost: three seconds for 1,500 texts on one core.

        Args:
            features: of N texts; up to ``MAX_ANCHORS`` of them become anchors.
            expected: predictions for the same texts.
        """
        network, share = (expected.graphs.network, expected.graphs.share) if expected.graphs else (None, 0.0)
        mean, logs = (1 - share) * expected.mean, expected.log_sizes
        anchors = torch.linspace(0, len(mean) - 1, min(len(mean), MAX_ANCHORS)).round().long()
        rows = anchors.numpy()
        targets, slopes, centres = mean[rows], *_along(mean, logs)
        if logs is not None:
            targets = targets - (logs[rows] - centres) @ slopes
        scale = Standardised.of(targets)
        process = GroupProcess(features.numbers(anchors))
        process.fit(np.arange(len(rows)), targets, scale)
        log_deviation = np.log(expected.deviations(rows, process.left_out() * scale.deviation))
        offsets = np.array([scale.mean, log_deviation.mean()])
        weights = [process.weights_for(x - offset) for x, offset in zip((targets, log_deviation), offsets, strict=True)]
        tensors = {
            "centre": features.centre,
            "kernels": torch.from_numpy(process.kernels).float(),
            "weights": torch.from_numpy(np.stack(weights)).float(),
            "offsets": torch.from_numpy(offsets).float(),
            "table": torch.from_numpy(expected.table).float(),
            "logarithmic": torch.tensor(expected.logarithmic),
            "anchors": torch.cat([group[anchors] for group in features.groups], dim=-1),
            **{f"projection_of_{name}": x for name, x in zip(NAMES, features.projections, strict=True)},
        }
        if slopes.any():
            tensors |= zip(SLOPES, torch.from_numpy(np.stack([slopes, centres], axis=1)).float(), strict=True)
        if expected.averaged_sum is not None:
            tensors |= _sum_tensors(expected.averaged_sum)
        return cls(tensors, network, share)


def _sum_tensors(averaged: AveragedSum) -> dict[str, Tensor]:
    return {
        "sum_rows": torch.from_numpy(averaged.row_sum.rows),
        "sum_costs": torch.from_numpy(averaged.row_sum.costs),
        "sum_is_rate": torch.tensor(averaged.row_sum.is_rate),
        "sum_shares": torch.tensor(averaged.share),
        "sum_gains": torch.tensor(math.log(averaged.gain)),
    }


def stacked(readouts: Sequence[Readout]) -> dict[str, Tensor]:
    """Stack readouts to the state of ``Readouts``, without its ``objectives``.

    Readouts with fewer anchors are padded with anchors of weight 0, sums with fewer rows with ``NO_ROW``.
    """
    most = max(len(readout.tensors["anchors"]) for readout in readouts)
    most_rows = max(len(readout.tensors.get("sum_rows", ())) for readout in readouts)
    no_slopes = {name: torch.zeros(2) for name in SLOPES if any(name in readout.tensors for readout in readouts)}
    each = [no_sum(most_rows) | no_slopes | readout.tensors for readout in readouts]
    state = {name: torch.stack([_padded(name, x[name], most, most_rows) for x in each]) for name in each[0]}
    if having := [(row, x.network, x.share) for row, x in enumerate(readouts) if x.network]:
        state["shares"] = torch.zeros(len(readouts), len(having))
        for number, (row, network, share) in enumerate(having):
            state["shares"][row, number] = share
            state |= {f"networks.{number}.{name}": x for name, x in network.state_dict().items()}
    return state


def sizes_of(state: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the fields of ``ModelConfig`` that describe ``Readouts`` with a state that ``stacked`` returned."""
    count, num_anchors, _ = state["anchors"].shape
    return {
        "num_readouts": count,
        "num_anchors": num_anchors,
        "num_graph_networks": state["shares"].shape[1] if "shares" in state else 0,
        "num_sum_rows": state["sum_rows"].shape[1] if "sum_rows" in state else 0,
        **{f"reads_{name}": name in state for name in SLOPES},
    }


def unstacked(readouts: Readouts) -> list[Readout]:
    """Split ``Readouts`` into the readout of each objective, on the CPU."""
    tensors = {name: x.cpu() for name, x in readouts.named_buffers() if name not in ("objectives", "shares")}
    found = [_of_row(tensors, row) for row in range(len(readouts.objectives))]
    for number, network in enumerate(readouts.networks):
        assert isinstance(network, GraphNetwork)
        row = int(readouts.shares[:, number].argmax())
        share = float(readouts.shares[row, number])
        found[row] = replace(found[row], network=deepcopy(network).cpu(), share=share)
    return found


def _of_row(tensors: Mapping[str, Tensor], row: int) -> Readout:
    own = {name: x[row] for name, x in tensors.items()}
    if not own.get("sum_shares", 0):
        own = {name: x for name, x in own.items() if not name.startswith("sum_")}
    return Readout({name: x for name, x in own.items() if name not in SLOPES or x[0]})


def _along(mean: FloatArray, logs: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the (2,) least-squares slopes of (N,) means along (N, 2) logarithms, and the means of the logarithms.

    Zeros if ``logs`` is None; a slope is 0 if its logarithms are constant. Rounded to 32 bits, so that the residuals
    are those of the stored slopes.
    """
    if logs is None:
        return np.zeros(2), np.zeros(2)
    centres = logs.mean(axis=0)
    varying = np.ptp(logs, axis=0) > 0
    slopes = np.zeros(2)
    slopes[varying] = np.linalg.lstsq((logs - centres)[:, varying], mean)[0]
    return slopes.astype(np.float32).astype(np.float64), centres.astype(np.float32).astype(np.float64)


def _padded(name: str, x: Tensor, num_anchors: int, num_rows: int) -> Tensor:
    if name == "anchors":
        return nn.functional.pad(x, (0, 0, 0, num_anchors - len(x)))
    if name == "weights":
        return nn.functional.pad(x, (0, num_anchors - x.shape[1]))
    if name == "sum_rows":
        return nn.functional.pad(x, (0, num_rows - len(x)), value=NO_ROW)
    if name == "sum_costs":
        return nn.functional.pad(x, (0, 0, 0, num_rows - len(x)))
    return x


def _projection(part: Tensor, count: int, *, standardised: bool) -> Tensor:
    """Return the (part of S, count) projection to principal components, with mean variance 1, padded with zeros."""
    scale = torch.ones(part.shape[1], dtype=part.dtype)
    if standardised:
        deviation = part.std(dim=0, correction=0)
        scale = torch.where(deviation > 0, 1 / deviation.clamp(min=1e-2 * float(deviation.mean())), 0.0)
    covariance = ((part * scale).T @ (part * scale) / len(part)).numpy()
    kept = min(count, len(covariance))
    with one_thread():
        variances, vectors = eigh(covariance, subset_by_index=(len(covariance) - kept, len(covariance) - 1))
    size = max(float(variances.sum()), 0.0) / count or 1.0  # 1 if all numbers of a part are equal
    projection = scale[:, None] * torch.from_numpy(vectors) / size**0.5
    return nn.functional.pad(projection, (0, count - kept))
