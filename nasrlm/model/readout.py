"""Readouts: predict objectives from a text at once, instead of decoding them digit by digit.

``nasrlm.adaptation.adapt`` fits a readout for each objective that it learns.

1. ``Encoded.summaries`` summarises a text by a vector of five parts: the means of its encoder states and token
   embeddings, then four kinds of counts of its network (walks and neighbours, rows, places, sizes; see
   ``nasrlm.text.counts``).
2. Each part is projected to fewer features and compared by a kernel with the features of other texts, the anchors.
   Weighted sums of these kernel values are the mean and the log standard deviation of a normal distribution (a kernel
   machine).
3. For some objectives the mean is corrected by a graph network, by slopes along the logarithms of the
   multiply-accumulates (MACs) and activations, or towards the sum of what the network's rows cost
   (``nasrlm.model.row_sum``).
4. A table maps the normal distribution to the objective's own unit.

An objective that was learned in several spaces has a readout for each of them.

N texts, M objectives, Q levels, A readouts, B graph networks, C readouts of M objectives, R rows of a sum, S numbers of
a summary, F features, P anchors, G points of a table.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nasrlm.model.config import ModelConfig
from nasrlm.model.graph_network import GraphNetwork, Operators
from nasrlm.model.row_sum import RowSum
from nasrlm.text.counts import NUM_COUNTS, PARTS, log_sizes
from nasrlm.text.row_counts import RowCounts, row_counts

NAMES = ("states", "structures", "rows", "places", "sizes")
NUM_FEATURES = (64, 192, 128, 64, 32)  # by part of a summary; with 64 for rows, τ on MnasNet is 0.007 lower
HASHED = ("structures", "rows")  # parts whose numbers are counts on one scale
SLOPES = ("macs", "activations")  # buffers; in the order of ``log_sizes``
REACH = 6.0  # standard deviations that a table covers on each side; beyond, it is extrapolated linearly
GRID = torch.linspace(-REACH, REACH, 193, dtype=torch.float64)
SMALLEST = 1e-300  # lower bound of arguments of logarithms
NO_ROW = -1  # padding of sums with fewer rows than others
FIRST = 3.0  # more than two readouts can differ in how much they are like a text, which is from 0 to 2


def parts_of(summaries: Tensor) -> tuple[Tensor, ...]:
    """Split (..., S) summaries into their five parts."""
    return _split(summaries, [summaries.shape[-1] - NUM_COUNTS, *PARTS])


def _split(x: Tensor, widths: Sequence[int]) -> tuple[Tensor, ...]:
    ends = itertools.accumulate(widths)
    return tuple(x[..., end - width : end] for width, end in zip(widths, ends, strict=True))


def directions(summaries: Tensor) -> Tensor:
    """Return the counts of structures and of rows in (..., S) summaries, each scaled to length 1, or 0 if there are
    none, and concatenated: by these, networks of different spaces are told apart.
    """
    counts = [part for name, part in zip(NAMES, parts_of(summaries), strict=True) if name in HASHED]
    return torch.cat([nn.functional.normalize(part, dim=-1) for part in counts], dim=-1)


def likeness(features: Tensor, anchors: Tensor, kernels: Tensor) -> Tensor:
    """Return the (N, P) covariances of texts with anchors: the sum of a Matérn-5/2 kernel for each of the five parts.

    Args:
        features: (N, F) features of the texts, the five parts concatenated.
        anchors: (P, F) features of the anchors likewise.
        kernels: (5, 2) variance and length scale of each part's kernel, as fitted by ``GroupProcess``.
    """
    total = torch.zeros((), dtype=features.dtype, device=features.device)
    parts = zip(_split(features, NUM_FEATURES), _split(anchors, NUM_FEATURES), kernels, strict=True)
    for own, others, (variance, length) in parts:
        squares = (own**2).sum(dim=-1)[:, None] + (others**2).sum(dim=-1) - 2 * own @ others.mT
        scaled = (5 * squares.clamp(min=0) / own.shape[-1]).sqrt() / length
        total = total + variance * (1 + scaled + scaled**2 / 3) * (-scaled).exp()
    return total


class Readouts(nn.Module):
    """The readouts of a model: a kernel machine and a table for each of A, with a graph network for some.

    If an objective has several readouts, ``choice`` tells which one reads a text.

    There is one more buffer ``projection_of_…``, (A, part of S, part of F), for each part of a summary.
    """

    objectives: Tensor  # (A,) ids; repeated if an objective has several readouts
    centre: Tensor  # (A, S) mean of the summaries that it was fitted to, subtracted before projection
    anchors: Tensor  # (A, P, F) features in 16 bits
    kernels: Tensor  # (A, 5, 2) variance and length scale of each part
    weights: Tensor  # (A, 2, P) for the mean and for the log standard deviation
    offsets: Tensor  # (A, 2) likewise
    table: Tensor  # (A, G) values at the points of ``GRID``, or their logarithms
    logarithmic: Tensor  # (A,) bool, whether the table holds logarithms
    # Each of ``SLOPES`` only if a readout has one:
    macs: Tensor  # (A, 2) slope of the mean along the log MACs, 0 if it has none, and the mean of the log MACs
    activations: Tensor  # (A, 2) the same for activations
    # Only if there are graph networks:
    shares: Tensor  # (A, B) factor of each network's scores, 0 for networks of other readouts
    # Only if there are row sums:
    sum_rows: Tensor  # (A, R) numbers of rows, padded with NO_ROW
    sum_costs: Tensor  # (A, R, 2) float64 costs of these rows, see ``RowSum``
    sum_is_rate: Tensor  # (A,) bool, see ``RowSum``
    sum_shares: Tensor  # (A,) weight of the sum in the mean, 0 for readouts without a sum
    sum_gains: Tensor  # (A,) logarithm of the factor by which deviations are larger without the sum

    def __init__(self, config: ModelConfig, summary_width: int) -> None:
        super().__init__()
        count, num_anchors = config.num_readouts, config.num_anchors
        widths = [part.shape[-1] for part in parts_of(torch.empty(summary_width))]
        projections = {
            f"projection_of_{name}": tuple(size) for name, *size in zip(NAMES, widths, NUM_FEATURES, strict=True)
        }
        sizes = projections | {
            "centre": (summary_width,),
            "kernels": (len(NUM_FEATURES), 2),
            "weights": (2, num_anchors),
            "offsets": (2,),
            "table": (len(GRID),),
        }
        for name, size in sizes.items():
            self.register_buffer(name, torch.zeros(count, *size))
        self.register_buffer("anchors", torch.zeros(count, num_anchors, sum(NUM_FEATURES), dtype=torch.float16))
        self.register_buffer("logarithmic", torch.zeros(count, dtype=torch.bool))
        self.register_buffer("objectives", torch.zeros(count, dtype=torch.int64))
        self.networks = nn.ModuleList([GraphNetwork() for _ in range(config.num_graph_networks)]).requires_grad_(False)
        if config.num_graph_networks:
            self.register_buffer("shares", torch.zeros(count, config.num_graph_networks))
        self.slopes = tuple(name for name in SLOPES if getattr(config, f"reads_{name}"))
        for name in self.slopes:
            self.register_buffer(name, torch.zeros(count, 2))
        self.has_sums = config.num_sum_rows > 0
        for name, x in no_sum(config.num_sum_rows).items():
            self.register_buffer(name, x.expand(count, *x.shape).clone())

    def hold(self, objectives: Tensor) -> Tensor:
        """Return (M,) flags of the objectives, given by id, that have a readout."""
        return torch.isin(objectives, self.objectives)

    def forward(self, summaries: Tensor, objectives: Tensor, texts: Sequence[str]) -> Readings:
        """Predict objectives by each of their C readouts; C is M unless an objective has several.

        Args:
            summaries: (N, S) float64 summaries of the texts.
            objectives: (M,) ids of objectives that have a readout.
            texts: N texts, read only if an objective has a graph network, a slope along a size, or a row sum.
        """
        _, own = self._places(objectives)
        read = [self._by_anchors(summaries, row) for row in own.tolist()]
        mean, log_deviation = torch.stack(read, dim=1).unbind(-1)
        mean, log_deviation = self._towards_sums(self._corrected(mean, texts, own), log_deviation, texts, own)
        return Readings(mean, log_deviation.clamp(-12, 3).exp(), self.table[own].double(), self.logarithmic[own])

    def choice(self, summaries: Tensor, objectives: Tensor, preferred: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Choose the readout of each objective that was fitted to networks most like a text's, or a preferred one.

        How alike they are is the cosine between a text's counts of structures and their mean over the texts that a
        readout was fitted to, plus the same for rows. This tells spaces apart, except those that share networks
        (docs/log.md, 2026-11-29).

        Args:
            summaries: (N, S) of the texts.
            objectives: (M,) ids.
            preferred: (A,) flags of readouts that are chosen before all others; None for none.

        Returns:
            (C,) indices of the objectives that the readouts are of, and (N, M) indices of chosen readouts among the C.
        """
        of, own = self._places(objectives)
        alike = directions(summaries) @ directions(self.centre[own].double()).mT
        if preferred is not None:
            alike = alike + FIRST * preferred[own]
        is_of = of == torch.arange(len(objectives), device=of.device)[:, None]
        return of, torch.where(is_of, alike[:, None], -torch.inf).argmax(dim=-1)

    def _places(self, objectives: Tensor) -> tuple[Tensor, Tensor]:
        """Return (C,) indices of objectives among the M, ascending, and of their readouts among the A."""
        of, own = (objectives[:, None] == self.objectives).nonzero(as_tuple=True)
        return of, own

    def _by_anchors(self, summaries: Tensor, row: int) -> Tensor:
        """Return the (N, 2) mean and log standard deviation of a readout's kernel machine.

        Anchors of weight 0, which pad readouts with fewer anchors than others, are left out: they would change
        rounding.
        """
        weights = self.weights[row].double()
        used = weights.any(dim=0).nonzero()
        count = int(used[-1]) + 1 if len(used) else 0
        projections = [getattr(self, f"projection_of_{name}")[row].double() for name in NAMES]
        parts = parts_of(summaries - self.centre[row].double())
        features = [part @ projection for part, projection in zip(parts, projections, strict=True)]
        anchors = self.anchors[row, :count].double()
        alike = likeness(torch.cat(features, dim=-1), anchors, self.kernels[row].double())
        return alike @ weights[:, :count].mT + self.offsets[row]

    def _corrected(self, mean: Tensor, texts: Sequence[str], own: Tensor) -> Tensor:
        """Correct the (N, C) means of the (C,) readouts by graph networks and by slopes along the log sizes."""
        if self.networks and self.shares[own].any():
            operators, each = list(map(Operators.of_text, texts)), self.shares[own].double().T
            pairs = [(network, shares) for network, shares in zip(self.networks, each, strict=True) if shares.any()]
            mean = mean + sum(network(operators).double()[:, None] * shares for network, shares in pairs)
        if any(getattr(self, name)[own, 0].any() for name in self.slopes):
            sizes = torch.from_numpy(log_sizes(texts)).to(own.device)
            lines = [(SLOPES.index(name), *getattr(self, name)[own].double().T) for name in self.slopes]
            mean = mean + sum(slopes * (sizes[:, column, None] - centres) for column, slopes, centres in lines)
        return mean

    def _towards_sums(
        self, mean: Tensor, log_deviation: Tensor, texts: Sequence[str], own: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Move the (N, C) means of the (C,) readouts towards the sums of what the rows of each text cost.

        For a text with a row that the sum does not know, mean and deviation are those of a readout without a sum.
        """
        if not self.has_sums or not self.sum_shares[own].any():
            return mean, log_deviation
        counts = list(map(row_counts, texts))
        mean, log_deviation = mean.clone(), log_deviation.clone()
        for column, row in enumerate(own.tolist()):
            if share := float(self.sum_shares[row]):
                latents = self._by_sum(counts, row).to(mean.device)
                moved = share * latents + (1 - share) * mean[:, column]
                mean[:, column] = torch.where(latents.isnan(), mean[:, column], moved)
                log_deviation[latents.isnan(), column] += self.sum_gains[row]
        return mean, log_deviation

    def _by_sum(self, counts: Sequence[RowCounts], row: int) -> Tensor:
        """Return (N,) predictions of one readout's sum on the scale of ``GRID``; NaN if ``RowSum`` gives none."""
        rows, costs = self.sum_rows[row].cpu(), self.sum_costs[row].cpu()
        stored = rows[rows != NO_ROW].numpy(), costs[rows != NO_ROW].numpy(), bool(self.sum_is_rate[row])
        sums = torch.from_numpy(RowSum(*stored).of(counts))
        low, high = self.table[row, [0, -1]].double().cpu()  # costs have logarithmic tables, linear in the grid
        shares = (sums.clamp(min=low.exp()).log() - low) / (high - low)
        latents: Tensor = (2 * shares.clamp(max=1) - 1) * REACH
        return latents


def no_sum(num_rows: int) -> dict[str, Tensor]:
    """Return the tensors of a readout without a sum, beside others with up to ``num_rows`` rows; empty if 0."""
    if not num_rows:
        return {}
    return {
        "sum_rows": torch.full((num_rows,), NO_ROW),
        "sum_costs": torch.zeros(num_rows, 2, dtype=torch.float64),
        "sum_is_rate": torch.tensor(False),
        "sum_shares": torch.tensor(0.0),
        "sum_gains": torch.tensor(0.0),
    }


@dataclass(frozen=True)
class Readings:
    """Predicted normal distributions of M objectives for N texts, and the tables that map them to own units.

    Attributes:
        mean: (N, M) means on the scale of ``GRID``.
        deviation: (N, M) standard deviations on this scale, above 0.
        table: (M, G) values in the objectives' own units at the points of ``GRID``, or their logarithms.
        logarithmic: (M,) flags of the objectives whose table holds logarithms.
    """

    mean: Tensor
    deviation: Tensor
    table: Tensor
    logarithmic: Tensor

    def cpu(self) -> Readings:
        """Return a copy on the CPU."""
        return Readings(self.mean.cpu(), self.deviation.cpu(), self.table.cpu(), self.logarithmic.cpu())

    def quantiles(self, levels: Tensor, temperature: float = 1.0) -> Tensor:
        """Return (N, M, Q) values in own units at (N, M, Q) or (M, Q) levels; ``temperature`` multiplies variances."""
        normal = torch.special.ndtri(levels.double().clamp(1e-9, 1 - 1e-9)) * temperature**0.5
        position = (self.mean[..., None] + self.deviation[..., None] * normal + REACH) / _STEP
        index = position.floor().clamp(0, len(GRID) - 2).long()
        table = self.table.expand(len(position), -1, -1)
        low, high = table.gather(-1, index), table.gather(-1, index + 1)
        values = low + (position - index) * (high - low)
        return torch.where(self.logarithmic[:, None], values.exp(), values)

    def cumulative_probabilities(self, values: Tensor) -> Tensor:
        """Return the (N, M) probabilities that an objective is at most its value, given (N, M) values in own units."""
        scaled = torch.where(self.logarithmic, values.clamp(min=SMALLEST).log(), values).T.contiguous()
        index = (torch.searchsorted(self.table, scaled, right=True) - 1).clamp(0, len(GRID) - 2)
        low, high = self.table.gather(-1, index), self.table.gather(-1, index + 1)
        beyond = torch.where(scaled < low, -torch.inf, torch.inf)  # at a flat end, all probability is at its value
        share = torch.where(high > low, (scaled - low) / (high - low), beyond)
        latents = (index + share).T * _STEP - REACH
        probabilities: Tensor = torch.special.ndtr((latents - self.mean) / self.deviation)
        return probabilities


_STEP = float(GRID[1] - GRID[0])
