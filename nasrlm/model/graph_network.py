"""A graph network for few labels: what neither a process nor trees see of which operator reads which.

It reads the network of a text with every block written out. Operators that are alike, and read and are read by such as
are alike, two steps far, are one operator that occurs so often: a third of them are left. What an operator is called is
hashed, so that no names have to be kept. ``nasrlm.adaptation.graph_network_fit`` learns one.

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

NUM_HASHES = 256  # an operator has two of them; a space has some twenty operators
WIDTH, LAYERS = 64, 3
ROUNDS = 2  # steps that operators are told apart by; three are no better in half as much time again
AT_ONCE = 256  # networks


@dataclass(frozen=True)
class Operators:
    """The different operators of a network; of those that are alike the first stands for all.

    Attributes:
        kinds: (V, 2) hashes of what they are.
        counts: (V,) how often each occurs.
        along: (2, E) one that is read, and one that reads it.
        against: (2, E) one that reads, and one that it reads.
    """

    kinds: Tensor
    counts: Tensor
    along: Tensor
    against: Tensor

    @classmethod
    def of(cls, graph: OperatorGraph) -> Operators:
        """Group the operators of a graph that are alike."""
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
        """Read the operators of a text's network; of other text, input and output alone. Cost: some milliseconds."""
        bodies = read_written_out(text)
        return cls.of(OperatorGraph.of(bodies[0].body) if bodies else NO_OPERATORS)


class Batch(NamedTuple):
    """The operators of B networks as one."""

    operators: Operators
    networks: Tensor  # (V,) whose each is

    @classmethod
    def of(cls, several: Sequence[Operators], device: torch.device) -> Batch:
        """Join the operators of several networks, on a device."""
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
    """(all,) numbers of operators, from 0 on, the same of those that are alike ``ROUNDS`` steps far."""
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
    """GIN layers along the edges and against them, mean and logarithmic sum over operators, one number a network.

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
        """(N,) scores."""
        device = self.kinds.weight.device
        parts = [Batch.of(networks[at : at + AT_ONCE], device) for at in range(0, len(networks), AT_ONCE)]
        return torch.cat(list(map(self._scores, parts)))

    def _scores(self, batch: Batch) -> Tensor:
        """(B,) scores of the networks of a batch."""
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
    """(V, D) for each operator the sum of the rows of ``x`` that its edges lead from."""
    start, end = edges
    return _sums(x.index_select(0, start), end, len(x))  # whose gradient takes a third of that of x[start]


def _perceptron(width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs))


def _sums(x: Tensor, places: Tensor, count: int) -> Tensor:
    """(count, D) of (V, D) numbers, each added at its place."""
    return x.new_zeros(count, x.shape[1]).index_add(0, places, x)
