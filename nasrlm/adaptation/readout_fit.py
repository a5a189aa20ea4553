"""Fit readouts: Gaussian processes of the five parts of a summary, which learn what a better informed model expects.

N texts, n labelled ones, S numbers of a summary, F features, P anchors, G points of a table.
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
from nasrlm.adaptation.group_process import GroupProcess, Standardised
from nasrlm.arrays import FloatArray
from nasrlm.deviations import COVERED, deviation_covering
from nasrlm.model.graph_network import GraphNetwork
from nasrlm.model.readout import NAMES, NO_ROW, NUM_FEATURES, Readouts, no_sum, parts_of
from nasrlm.model.row_sum import RowSum

MAX_ANCHORS = 6000  # 3,000 of 6,236 lose 0.008; the time of a fit, 17 s for so many, grows with their cube
HASHED = ("structures", "rows")  # whose numbers are of one scale; those of the other parts are standardised


@dataclass(frozen=True)
class TextFeatures:
    """What texts are compared by: principal components of each part of their summaries.

    Attributes:
        centre: (S,) of the summaries.
        projections: (part of S, part of F) of each part.
        groups: (N, part of F) of each part, in 16 bits as anchors are.
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
        """(N, part of F) of each part, of some rows or of all, for a Gaussian process."""
        return [(group if rows is None else group[rows]).double().numpy() for group in self.groups]


@dataclass(frozen=True)
class LeftOut:
    """What is expected of each label by a model that knows the labels of all other texts.

    Attributes:
        rows: (n,) of the N texts; of one with several labels several times.
        errors: (n,) labels less what is expected of them.
        deviations: (n,) that were expected, in a unit that the errors decide.
    """

    rows: NDArray[np.intp]
    errors: FloatArray
    deviations: FloatArray

    def width(self, unread: FloatArray) -> float:
        """Factor by which to multiply deviations so that 80 % intervals hold a label that is not known.

        Labels that are all equal leave what they would if one more deviated as expected.

        Args:
            unread: (N,) what was expected of each text less what is read off it.

        Source:
            Vovk, Gammerman, Shafer 2005, "Algorithmic Learning in a Random World": the rank among errors that are
            exchangeable.
        """
        sizes = np.sort(np.abs(self.errors + unread[self.rows]) / self.deviations)
        texts = len(np.unique(self.rows))  # which are exchangeable; labels of one are alike
        rank = min(math.ceil(COVERED * (texts + 1)), texts)
        asked = deviation_covering(float(sizes[-(-rank * len(sizes) // texts) - 1]))
        return max(asked, 1 / math.sqrt(texts + 1))

    def are_all(self, texts: int) -> bool:
        """Whether all of N texts have labels."""
        return len(np.unique(self.rows)) == texts

    def deviations_alone(self, unread: FloatArray) -> FloatArray:
        """(N,) deviations of texts that all have labels, so that 80 % intervals hold that of another text.

        No text without a label tells then how far these deviate. What is expected without a label and what is read
        without its text err together, so the larger of the two counts, and not their sum (docs/log.md, 2026-11-27).

        Args:
            unread: (N,) as for ``width``.
        """
        errors = np.maximum(np.abs(self.errors), np.abs(unread[self.rows]))
        deviations = np.empty(len(unread))
        deviations[self.rows] = self.deviations
        return replace(self, errors=errors).width(np.zeros(len(unread))) * deviations


@dataclass(frozen=True)
class Expected:
    """What is expected of the labels of N texts: normal distributions, noise included, on the scale of ``GRID``.

    Attributes:
        mean: (N,), before a graph network has its share.
        deviation: (N,).
        table: (G,) labels on the grid, or their logarithms: it takes the scale to the objective's own unit.
        logarithmic: which of the two.
        graphs: a graph network, which reads the texts itself, and its share of the mean.
        left_out: how far labels are from what is expected without them; if given, deviations are as wide as these
            errors ask for.
        row_sum: towards which the mean goes when it has been read off a text.
        logs_of_macs: (N,) logarithms of the texts' multiply-accumulates; if given, what of the mean is in proportion
            to them is read off apart, as the features of a text do not tell them.
    """

    mean: FloatArray
    deviation: FloatArray
    table: FloatArray
    logarithmic: bool = False
    graphs: FittedGraphs | None = None
    left_out: LeftOut | None = None
    row_sum: RowSum | None = None
    logs_of_macs: FloatArray | None = None

    def deviations(self, rows: NDArray[np.intp], unread: FloatArray) -> FloatArray:
        """(n,) deviations to read off the texts ``rows``, given (n,) what of their means cannot be read off."""
        if self.left_out is None:
            return np.asarray(np.hypot(self.deviation[rows], np.sqrt((unread**2).mean())))
        of_all = np.zeros(len(self.mean))
        of_all[rows] = unread
        of_all *= 1.0 if self.row_sum is None else 1 - self.row_sum.share
        if self.left_out.are_all(len(self.mean)):
            return self.left_out.deviations_alone(of_all)[rows]
        return self.left_out.width(of_all) * self.deviation[rows]


@dataclass(frozen=True)
class Readout:
    """One objective's part of ``Readouts``.

    Attributes:
        tensors: by the names of buffers; none of a sum where there is none.
        network: whose scores are added to the mean.
        share: that they are multiplied by.
    """

    tensors: dict[str, Tensor]
    network: GraphNetwork | None = None
    share: float = 0.0

    @classmethod
    def fit(cls, features: TextFeatures, expected: Expected) -> Readout:
        """Fit a readout that tells from the texts alone what is expected of them.

        What it cannot read is added to the deviations. Cost: three seconds for 1,500 texts on one core.

        Args:
            features: of N texts; up to ``MAX_ANCHORS`` of them become anchors.
            expected: of the same texts.
        """
        network, share = (expected.graphs.network, expected.graphs.share) if expected.graphs else (None, 0.0)
        mean, logs = (1 - share) * expected.mean, expected.logs_of_macs
        anchors = torch.linspace(0, len(mean) - 1, min(len(mean), MAX_ANCHORS)).round().long()
        rows = anchors.numpy()
        targets, along = mean[rows], _along(mean, logs)
        if logs is not None:
            targets = targets - along[0] * (logs[rows] - along[1])
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
        if along[0]:
            tensors["macs"] = torch.from_numpy(along).float()
        if expected.row_sum is not None:
            tensors |= _sum_tensors(expected.row_sum)
        return cls(tensors, network, share)


def _sum_tensors(row_sum: RowSum) -> dict[str, Tensor]:
    return {
        "sum_rows": torch.from_numpy(row_sum.rows),
        "sum_costs": torch.from_numpy(row_sum.costs),
        "sum_is_rate": torch.tensor(row_sum.is_rate),
        "sum_shares": torch.tensor(row_sum.share),
        "sum_gains": torch.tensor(math.log(row_sum.gain)),
    }


def stacked(readouts: Sequence[Readout]) -> dict[str, Tensor]:
    """Stack readouts to the state of ``Readouts`` without its objectives.

    Readouts with fewer anchors are padded with some of no weight, sums with fewer rows with none.
    """
    most = max(len(readout.tensors["anchors"]) for readout in readouts)
    most_rows = max(len(readout.tensors.get("sum_rows", ())) for readout in readouts)
    no_macs = {"macs": torch.zeros(2)} if any("macs" in readout.tensors for readout in readouts) else {}
    each = [no_sum(most_rows) | no_macs | readout.tensors for readout in readouts]
    state = {name: torch.stack([_padded(name, x[name], most, most_rows) for x in each]) for name in each[0]}
    if having := [(row, x.network, x.share) for row, x in enumerate(readouts) if x.network]:
        state["shares"] = torch.zeros(len(readouts), len(having))
        for number, (row, network, share) in enumerate(having):
            state["shares"][row, number] = share
            state |= {f"networks.{number}.{name}": x for name, x in network.state_dict().items()}
    return state


def sizes_of(state: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the fields of ``ModelConfig`` of a model whose ``Readouts`` have a state of ``stacked``."""
    count, num_anchors, _ = state["anchors"].shape
    return {
        "num_readouts": count,
        "num_anchors": num_anchors,
        "num_graph_networks": state["shares"].shape[1] if "shares" in state else 0,
        "num_sum_rows": state["sum_rows"].shape[1] if "sum_rows" in state else 0,
        "reads_macs": "macs" in state,
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
    if "macs" in own and not own["macs"][0]:
        del own["macs"]
    return Readout(own)


def _along(mean: FloatArray, logs: FloatArray | None) -> FloatArray:
    """(2,) slope of (N,) means along (N,) logarithms, by least squares, and the mean of these; zeros without any.

    In 32 bits, as what is left has to fit what is stored.
    """
    if logs is None or not np.ptp(logs):
        return np.zeros(2)
    centre = logs.mean()
    slope = ((logs - centre) @ mean) / ((logs - centre) ** 2).sum()
    return np.array([slope, centre]).astype(np.float32).astype(np.float64)


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
    """(part of S, count) to principal components, of variance 1 in the mean; zeros where there are fewer."""
    scale = torch.ones(part.shape[1], dtype=part.dtype)
    if standardised:
        deviation = part.std(dim=0, correction=0)
        scale = torch.where(deviation > 0, 1 / deviation.clamp(min=1e-2 * float(deviation.mean())), 0.0)
    covariance = ((part * scale).T @ (part * scale) / len(part)).numpy()
    kept = min(count, len(covariance))
    variances, vectors = eigh(covariance, subset_by_index=(len(covariance) - kept, len(covariance) - 1))
    size = max(float(variances.sum()), 0.0) / count or 1.0  # all numbers of a part may be equal
    projection = scale[:, None] * torch.from_numpy(vectors) / size**0.5
    return nn.functional.pad(projection, (0, count - kept))
