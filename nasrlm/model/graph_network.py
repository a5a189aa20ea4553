"""A graph network for few labels; unlike Gaussian processes and trees on counts, it sees which operator reads which.

Its input is the network of a text with every block written out. Operators whose neighbourhoods of two steps are the
same are merged into one with a count, which leaves a third of them. Names of operators are hashed, so none have to be
stored. ``nasrlm.adaptation.graph_network_fit`` fits one.

N networks, V operators, E edges, D width, B networks of a batch.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from nasrlm.text.network import read_written_out
from nasrlm.text.operator_graph import NO_OPERATORS, OperatorGraph
from nasrlm.text.remembered import remembered

NUM_HASHES = 256  # an operator's name has two hashes of this range; a space has some twenty operators
WIDTH, LAYERS = 64, 3
ROUNDS = 2  # radius of the neighbourhoods compared; three are no better and take half as much time again
AT_ONCE = 256  # networks of a batch


@dataclass(frozen=True)
class Operators:
    """The different operators of a network; the first of equal ones represents all.

    Attributes:
        kinds: (V, 2) hashes of their names.
        counts: (V,) number of occurrences.
        along: (2, E) edges, from an operator to one that reads it.
        against: (2, E) edges, from an operator to one that it reads.
    """

    kinds: Tensor
    counts: Tensor
    along: Tensor
    against: Tensor

    @classmethod
    def of(cls, graph: OperatorGraph) -> Operators:
        """Merge the operators of a graph that have equal neighbourhoods."""
        readers: list[list[int]] = [[] for _ in graph.labels]
        for number, sources in enumerate(graph.sources):
            for source in sources:
                readers[source].append(number)
        colours = _colours(graph.labels, graph.sources, readers)
        _, firsts, counts = np.unique(colours, return_index=True, return_counts=True)

        def edges(read: Sequence[Sequence[int]]) -> Tensor:
            pairs = [(colours[other], colour) for colour, first in enumerate(firsts) for other in read[first]]
            return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T

        kinds = torch.tensor([_kind(graph.labels[first]) for first in firsts])
        return cls(kinds, torch.from_numpy(counts).float(), edges(graph.sources), edges(readers))

    @classmethod
    def of_text(cls, text: str) -> Operators:
        """Read the operators of a text; only input and output if it is not canonical ONNX. Cost: some milliseconds."""
        graphs = read_written_out(text)
        return cls.of(graphs[0] if graphs else NO_OPERATORS)


class Batch(NamedTuple):
    """The operators of B networks as one disconnected graph."""

    operators: Operators
    networks: Tensor  # (V,) index of the network of each operator

    @classmethod
    def of(cls, several: Sequence[Operators], device: torch.device) -> Batch:
        """Concatenate the operators of several networks, on a device."""
        sizes = torch.tensor([len(x.kinds) for x in several])
        offsets = (sizes.cumsum(0) - sizes).tolist()
        operators = Operators(
            torch.cat([x.kinds for x in several]).to(device),
            torch.cat([x.counts for x in several]).to(device),
            torch.cat([x.along + offset for x, offset in zip(several, offsets, strict=True)], dim=1).to(device),
            torch.cat([x.against + offset for x, offset in zip(several, offsets, strict=True)], dim=1).to(device),
        )
        return cls(operators, torch.arange(len(several)).repeat_interleave(sizes).to(device))


@remembered
def _kind(label: str) -> Sequence[int]:
    return divmod(zlib.crc32(label.encode()) % NUM_HASHES**2, NUM_HASHES)


def _colours(
    labels: Sequence[str], sources: Sequence[Sequence[int]], readers: Sequence[Sequence[int]]
) -> Sequence[int]:
    """Return the (all,) classes of operators, from 0 on, equal if their neighbourhoods of ``ROUNDS`` steps are equal.

    This is Weisfeiler-Leman colour refinement.
    """
    colours = _numbered(labels)
    for _ in range(ROUNDS):
        around = [
            (colour, *(tuple(sorted(colours[other] for other in others)) for others in beside))
            for colour, *beside in zip(colours, sources, readers, strict=True)
        ]
        colours = _numbered(around)
    return colours


def _numbered(values: Sequence[Hashable]) -> Sequence[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


class GraphNetwork(nn.Module):
    """GIN layers along and against the edges, then mean and log of the sum over operators, to one score per network.

    Source:
        Xu et al. 2019, "How Powerful are Graph Neural Networks?", arXiv 1810.00826.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.Embedding(NUM_HASHES, WIDTH)
        self.along = nn.ModuleList([_perceptron(WIDTH, WIDTH) for _ in range(LAYERS)])
        self.against = nn.ModuleList([_perceptron(WIDTH, WIDTH) for _ in range(LAYERS)])
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(LAYERS)])
        self.head = _perceptron(2 * WIDTH, 1)

    def forward(self, networks: Sequence[Operators]) -> Tensor:
        """Return (N,) scores."""
        device = self.kinds.weight.device
        parts = [Batch.of(networks[at : at + AT_ONCE], device) for at in range(0, len(networks), AT_ONCE)]
        return torch.cat(list(map(self._scores, parts)))

    def _scores(self, batch: Batch) -> Tensor:
        """Return (B,) scores of the networks of a batch."""
        operators, networks = batch
        x = self.kinds(operators.kinds).sum(dim=1)
        for along, against, norm in zip(self.along, self.against, self.norms, strict=True):
            change = along(x + _read(x, operators.along)) + against(x + _read(x, operators.against))
            x = x + torch.relu(norm(change))
        counts, count = operators.counts[:, None], int(networks[-1]) + 1
        means = _sums(counts * x, networks, count) / _sums(counts, networks, count)
        totals = _sums(counts * torch.relu(x), networks, count)
        scores: Tensor = self.head(torch.cat([means, torch.log1p(totals)], dim=1))[:, 0]
        return scores


def _read(x: Tensor, edges: Tensor) -> Tensor:
    """Return (V, D), for each operator the sum of ``x`` over the starts of the edges that end at it."""
    start, end = edges
    return _sums(x.index_select(0, start), end, len(x))  # its gradient takes a third of the time of x[start]'s


def _perceptron(width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs))


def _sums(x: Tensor, places: Tensor, count: int) -> Tensor:
    """Return (count, D) sums of the (V, D) numbers by their (V,) places."""
    return x.new_zeros(count, x.shape[1]).index_add(0, places, x)
