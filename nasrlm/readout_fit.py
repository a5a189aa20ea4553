"""Readouts are fitted: a Gaussian process of the four parts of a summary, taught by somebody who knows more.

N texts, S numbers of a summary, F features, P anchors, G points of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg import eigh
from torch import Tensor, nn

from nasrlm.group_process import GroupProcess, Standardised
from nasrlm.readout import NAMES, NUM_FEATURES, parts_of

MAX_ANCHORS = 3000  # 1,000 instead of 2,400 lose 0.01 to 0.02; the time of a fit grows with their cube
HASHED = ("structures", "rows")  # whose numbers are of one scale; those of the other parts are standardised


@dataclass(frozen=True)
class Readout:
    """One objective's part of ``Readouts``, by the names of its buffers."""

    tensors: dict[str, Tensor]

    @classmethod
    def fit(cls, summaries: Tensor, mean: Tensor, deviation: Tensor, table: Tensor, *, logarithmic: bool) -> Readout:
        """So that it reads what somebody who knows more than the texts says of them.

        What it cannot read is added to the deviations. Cost: three seconds for 1,500 texts on one core.

        Args:
            summaries: (N, S) of texts; up to ``MAX_ANCHORS`` of them become anchors.
            mean: (N,) of a normal distribution for each, on the scale of ``GRID``.
            deviation: (N,) likewise.
            table: (G,) values on ``GRID``, or their logarithms.
            logarithmic: which of the two.
        """
        rows = torch.linspace(0, len(summaries) - 1, min(len(summaries), MAX_ANCHORS)).round().long()
        centre = summaries.mean(dim=0).float()
        centred = parts_of(summaries - centre)
        projections = [
            _projection(part, count, standardised=name not in HASHED).float()
            for part, count, name in zip(centred, NUM_FEATURES, NAMES, strict=True)
        ]
        groups = [(part[rows] @ x.double()).half() for part, x in zip(centred, projections, strict=True)]
        targets = mean[rows].numpy()
        scale = Standardised.of(targets)
        process = GroupProcess([group.double().numpy() for group in groups])
        process.fit(np.arange(len(rows)), targets, scale)
        left = process.left_out() * scale.deviation
        log_deviation = np.log(np.hypot(deviation[rows].numpy(), np.sqrt((left**2).mean())))
        offsets = np.array([scale.mean, log_deviation.mean()])
        weights = [process.weights_for(x - offset) for x, offset in zip((targets, log_deviation), offsets, strict=True)]
        as_stored = {
            "centre": centre,
            "kernels": torch.from_numpy(process.kernels).float(),
            "weights": torch.from_numpy(np.stack(weights)).float(),
            "offsets": torch.from_numpy(offsets).float(),
            "table": table.float(),
            "logarithmic": torch.tensor(logarithmic),
            "anchors": torch.cat(groups, dim=-1),
        }
        return cls(as_stored | {f"projection_of_{name}": x for name, x in zip(NAMES, projections, strict=True)})


def stacked(readouts: Sequence[Readout]) -> dict[str, Tensor]:
    """Tensors of all of them by name, one a row, with anchors of no weight where others have more."""
    most = max(len(readout.tensors["anchors"]) for readout in readouts)
    return {
        name: torch.stack([_with_anchors(name, readout.tensors[name], most) for readout in readouts])
        for name in readouts[0].tensors
    }


def _with_anchors(name: str, x: Tensor, count: int) -> Tensor:
    if name == "anchors":
        return nn.functional.pad(x, (0, 0, 0, count - len(x)))
    return nn.functional.pad(x, (0, count - x.shape[1])) if name == "weights" else x


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
