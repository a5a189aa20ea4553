"""Objectives that are read off a text at once instead of being spelled; ``nasrlm.adaptation`` learns them.

A text's summary is the mean of its states beside that of its tokens (``Encoded.summaries``). How like it is to the
summaries of other texts, the anchors, gives the mean and the deviation of a normal distribution, and a table takes
that to the objective's own unit.

N texts, M objectives, Q levels, A objectives that are read, S numbers of a summary, F features, P anchors, G points of
a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

NUM_FEATURES = 64  # of a summary: 32 to all 256 rank as well
NUM_ANCHORS = 1000  # 800 rank as well as 1,500
REACH = 6.0  # standard deviations that a table covers; it goes on as steep as at its ends
GRID = torch.linspace(-REACH, REACH, 193, dtype=torch.float64)
LENGTHS = (0.5, 1.0, 2.0, 4.0)  # over which likeness falls
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SMALLEST = 1e-300


class Readouts(nn.Module):
    """A kernel machine and a table for each objective that is read."""

    objectives: Tensor  # (A,) ids
    centre: Tensor  # (A, S) of summaries
    projection: Tensor  # (A, S, F) to features
    anchors: Tensor  # (A, P, F)
    lengths: Tensor  # (A, 2) over which likeness falls, for the mean and for the logarithm of the deviation
    weights: Tensor  # (A, 2, P) likewise
    offsets: Tensor  # (A, 2) likewise
    table: Tensor  # (A, G) values on ``GRID``, or their logarithms
    logarithmic: Tensor  # (A,) bool, which of the two

    def __init__(self, count: int, summary_width: int) -> None:
        super().__init__()
        sizes = {
            "centre": (summary_width,),
            "projection": (summary_width, NUM_FEATURES),
            "anchors": (NUM_ANCHORS, NUM_FEATURES),
            "lengths": (2,),
            "weights": (2, NUM_ANCHORS),
            "offsets": (2,),
            "table": (len(GRID),),
        }
        for name, size in sizes.items():
            self.register_buffer(name, torch.zeros(count, *size))
        self.register_buffer("logarithmic", torch.zeros(count, dtype=torch.bool))
        self.register_buffer("objectives", torch.zeros(count, dtype=torch.int64))

    def hold(self, objectives: Tensor) -> Tensor:
        """(M,) bool, which of these are read."""
        return torch.isin(objectives, self.objectives)

    def forward(self, summaries: Tensor, objectives: Tensor) -> Readings:
        """What (N, S) summaries say of (M,) objectives, all of them read."""
        own = (objectives[:, None] == self.objectives).int().argmax(dim=1)
        features = (summaries - self.centre[own, None].double()) @ self.projection[own].double()  # (M, N, F)
        anchors, weights = self.anchors[own].double(), self.weights[own].double()
        read = [
            (_likeness(features, anchors, self.lengths[own, part]) @ weights[:, part, :, None])[..., 0].T
            + self.offsets[own, part]
            for part in range(2)
        ]
        return Readings(read[0], read[1].clamp(-12, 3).exp(), self.table[own].double(), self.logarithmic[own])


@dataclass(frozen=True)
class Readings:
    """Normal distributions of M objectives for N texts, and how they come to the objectives' own units.

    Attributes:
        mean: (N, M).
        deviation: (N, M), above 0.
        table: (M, G) values on ``GRID``, or their logarithms.
        logarithmic: (M,) bool, which of the two.
    """

    mean: Tensor
    deviation: Tensor
    table: Tensor
    logarithmic: Tensor

    def cpu(self) -> Readings:
        """The same on the CPU."""
        return Readings(self.mean.cpu(), self.deviation.cpu(), self.table.cpu(), self.logarithmic.cpu())

    def quantiles(self, levels: Tensor, temperature: float = 1.0) -> Tensor:
        """(N, M, Q) values at (N, M, Q) or (M, Q) levels; ``temperature`` multiplies variances."""
        normal = torch.special.ndtri(levels.double().clamp(1e-9, 1 - 1e-9)) * temperature**0.5
        position = (self.mean[..., None] + self.deviation[..., None] * normal + REACH) / _STEP
        index = position.floor().clamp(0, len(GRID) - 2).long()
        table = self.table.expand(len(position), -1, -1)
        low, high = table.gather(-1, index), table.gather(-1, index + 1)
        values = low + (position - index) * (high - low)
        return torch.where(self.logarithmic[:, None], values.exp(), values)

    def cumulative_probabilities(self, values: Tensor) -> Tensor:
        """(N, M) of (N, M) values."""
        scaled = torch.where(self.logarithmic, values.clamp(min=SMALLEST).log(), values).T.contiguous()
        index = (torch.searchsorted(self.table, scaled, right=True) - 1).clamp(0, len(GRID) - 2)
        low, high = self.table.gather(-1, index), self.table.gather(-1, index + 1)
        beyond = torch.where(scaled < low, -torch.inf, torch.inf)  # an end that is flat holds all that lies there
        share = torch.where(high > low, (scaled - low) / (high - low), beyond)
        latents = (index + share).T * _STEP - REACH
        probabilities: Tensor = torch.special.ndtr((latents - self.mean) / self.deviation)
        return probabilities


@dataclass(frozen=True)
class Readout:
    """One objective's part of ``Readouts``, by the names of its buffers."""

    tensors: dict[str, Tensor]

    @classmethod
    def fit(cls, summaries: Tensor, mean: Tensor, deviation: Tensor, table: Tensor, *, logarithmic: bool) -> Readout:
        """So that it reads what somebody who knows more than the texts says of them.

        What it cannot read is added to the deviations. Cost: two seconds for 1,000 texts on one core.

        Args:
            summaries: (N, S) of texts; ``NUM_ANCHORS`` of them become anchors.
            mean: (N,) of a normal distribution for each, on the scale of ``GRID``.
            deviation: (N,) likewise.
            table: (G,) values on ``GRID``, or their logarithms.
            logarithmic: which of the two.
        """
        rows = torch.linspace(0, len(summaries) - 1, min(len(summaries), NUM_ANCHORS)).round().long()
        centre, projection = _projection(summaries)
        anchors = (summaries[rows] - centre) @ projection
        likenesses = [_Likeness.of(anchors, length) for length in LENGTHS]
        of_mean = _Fit.of(likenesses, mean[rows])
        of_deviation = _Fit.of(likenesses, torch.hypot(deviation[rows], of_mean.error.sqrt()).log())
        fits = of_mean, of_deviation
        missing = NUM_ANCHORS - len(rows)
        tensors = {
            "centre": centre,
            "projection": projection,
            "anchors": nn.functional.pad(anchors, (0, 0, 0, missing)),
            "lengths": torch.tensor([fit.length for fit in fits]),
            "weights": nn.functional.pad(torch.stack([fit.weights for fit in fits]), (0, missing)),
            "offsets": torch.stack([fit.offset for fit in fits]),
            "table": table,
        }
        as_stored = {name: value.float() for name, value in tensors.items()}
        return cls({**as_stored, "logarithmic": torch.tensor(logarithmic)})


@dataclass(frozen=True)
class _Likeness:
    """How like N anchors are to each other, decomposed.

    Attributes:
        length: over which likeness falls.
        values: (N,) eigenvalues.
        vectors: (N, N), one a column.
    """

    length: float
    values: Tensor
    vectors: Tensor

    @classmethod
    def of(cls, anchors: Tensor, length: float) -> _Likeness:
        values, vectors = torch.linalg.eigh(_likeness(anchors, anchors, torch.tensor(length)))
        return cls(length, values.clamp(min=0), vectors)


@dataclass(frozen=True)
class _Fit:
    """Kernel ridge regression of N targets, its settings those that predict each from all others best.

    Attributes:
        weights: (N,) of the anchors.
        length: over which likeness falls.
        offset: mean of the targets.
        error: variance of what the others leave of a target.
    """

    weights: Tensor
    length: float
    offset: Tensor
    error: Tensor

    @classmethod
    def of(cls, likenesses: Sequence[_Likeness], targets: Tensor) -> _Fit:
        offset = targets.mean()
        fits: list[_Fit] = []
        for likeness in likenesses:
            projected = likeness.vectors.T @ (targets - offset)
            for ridge in RIDGES:
                inverse = 1 / (likeness.values + ridge)
                weights = likeness.vectors @ (inverse * projected)
                left = weights / (likeness.vectors**2 @ inverse)  # each target less what all others say of it
                fits.append(cls(weights, likeness.length, offset, (left**2).mean()))
        return min(fits, key=lambda fit: float(fit.error))


_STEP = float(GRID[1] - GRID[0])


def _projection(summaries: Tensor) -> tuple[Tensor, Tensor]:
    """(S,) centre and (S, F) features: principal components of standardised numbers, halfway to equal variances."""
    centre, deviation = summaries.mean(dim=0), summaries.std(dim=0, correction=0)
    scale = 1 / deviation.clamp(min=1e-2 * float(deviation.mean()) + SMALLEST)
    _, singular, components = torch.linalg.svd((summaries - centre) * scale, full_matrices=False)
    kept = singular[:NUM_FEATURES] > 1e-6 * singular[0]
    singular, components = singular[:NUM_FEATURES][kept], components[:NUM_FEATURES][kept]
    variances = singular / len(summaries) ** 0.5  # of what is left when each component is divided by its root
    projection = scale[:, None] * components.T / (variances.sqrt() * variances.mean().sqrt())
    return centre, nn.functional.pad(projection, (0, NUM_FEATURES - projection.shape[1]))


def _likeness(features: Tensor, anchors: Tensor, length: Tensor) -> Tensor:
    """(..., N, P): a product, and a Matérn kernel of smoothness 5/2, whose ``length`` is () or that of each batch."""
    product = features @ anchors.mT / NUM_FEATURES
    squares = [(x**2).sum(dim=-1) / NUM_FEATURES for x in (features, anchors)]
    distance = (squares[0][..., :, None] + squares[1][..., None, :] - 2 * product).clamp(min=0).sqrt()
    scaled = 5**0.5 * distance / length[..., None, None]
    return product + (1 + scaled + scaled**2 / 3) * (-scaled).exp()
