"""A graph network for few labels: what neither a process nor trees see of which operator reads which.

It reads the network of a text with every block written out. Operators that are alike, and read and are read by such as
are alike, two steps far, are one operator that occurs so often: a third of them are left. Several networks, each of
which a part of the labels was kept from, tell how far to go by them.

N networks, n labelled ones, V operators, E edges, D width, B networks of a batch.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from nasrlm.objective import FloatArray
from nasrlm.onnx_network import read_written_out
from nasrlm.operator_graph import NO_OPERATORS, OperatorGraph

FEWEST_LABELS = 10  # of which some can be kept
PARTS = 3  # of the labels, each kept from one network
WIDTH, LAYERS = 64, 3
ROUNDS = 2  # steps that operators are told apart by; three are no better in half as much time again
BATCH, LEARNING_RATE, WEIGHT_DECAY = 32, 4e-3, 0.01
STEPS = (300, 1500)  # the least and the most
STEPS_A_LABEL = 2.5
LEAST_SHARE = 0.25  # after the first network; fewer are not worth the others' time
AT_ONCE = 256  # networks that are asked about
UNSEEN = 0  # kind of an operator that no labelled network has


@dataclass(frozen=True)
class Operators:
    """The different operators of a network; of those that are alike the first stands for all.

    Attributes:
        labels: (V,).
        counts: (V,) how often each occurs.
        along: (2, E) one that is read, and one that reads it.
        against: (2, E) one that reads, and one that it reads.
    """

    labels: Sequence[str]
    counts: Tensor
    along: Tensor
    against: Tensor

    @classmethod
    def of(cls, graph: OperatorGraph) -> Operators:
        """Of all operators."""
        readers: list[list[int]] = [[] for _ in graph.labels]
        for number, sources in enumerate(graph.sources):
            for source in sources:
                readers[source].append(number)
        colours = _colours(graph.labels, graph.sources, readers)
        _, firsts, counts = np.unique(colours, return_index=True, return_counts=True)

        def edges(read: Sequence[Sequence[int]]) -> Tensor:
            pairs = [(colours[other], colour) for colour, first in enumerate(firsts) for other in read[first]]
            return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T

        labels = [graph.labels[first] for first in firsts]
        return cls(labels, torch.from_numpy(counts).float(), edges(graph.sources), edges(readers))

    @classmethod
    def of_text(cls, text: str) -> Operators:
        """Of a text's network; none where it has none. Cost: some milliseconds."""
        bodies = read_written_out(text)
        return cls.of(OperatorGraph.of(bodies[0].body) if bodies else NO_OPERATORS)


@dataclass(frozen=True)
class _Batch:
    """The operators of B networks as one.

    Attributes:
        kinds: (V,) by their labels.
        counts: (V,), and the edges, as in ``Operators``.
        networks: (V,) whose each is.
    """

    kinds: Tensor
    counts: Tensor
    along: Tensor
    against: Tensor
    networks: Tensor

    @classmethod
    def of(cls, several: Sequence[Operators], known: Mapping[str, int]) -> _Batch:
        """With kinds by label."""
        sizes = torch.tensor([len(x.labels) for x in several])
        offsets = (sizes.cumsum(0) - sizes).tolist()
        return cls(
            torch.tensor([known.get(label, UNSEEN) for x in several for label in x.labels]),
            torch.cat([x.counts for x in several]),
            torch.cat([x.along + offset for x, offset in zip(several, offsets, strict=True)], dim=1),
            torch.cat([x.against + offset for x, offset in zip(several, offsets, strict=True)], dim=1),
            torch.arange(len(several)).repeat_interleave(sizes),
        )


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


class _GraphNetwork(nn.Module):
    """GIN layers along the edges and against them, mean and logarithmic sum over operators, one number a network.

    Source:
        Xu et al. 2019, "How Powerful are Graph Neural Networks?", arXiv 1810.00826.
    """

    def __init__(self, num_kinds: int) -> None:
        super().__init__()
        self.kinds = nn.Embedding(num_kinds, WIDTH, padding_idx=UNSEEN)
        self.along = nn.ModuleList([_perceptron(WIDTH, WIDTH) for _ in range(LAYERS)])
        self.against = nn.ModuleList([_perceptron(WIDTH, WIDTH) for _ in range(LAYERS)])
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(LAYERS)])
        self.head = _perceptron(2 * WIDTH, 1)

    def forward(self, batch: _Batch) -> Tensor:
        """(B,) scores."""
        x = self.kinds(batch.kinds)
        for along, against, norm in zip(self.along, self.against, self.norms, strict=True):
            change = along(x + _read(x, batch.along)) + against(x + _read(x, batch.against))
            x = x + torch.relu(norm(change))
        counts, count = batch.counts[:, None], int(batch.networks[-1]) + 1
        means = _sums(counts * x, batch.networks, count) / _sums(counts, batch.networks, count)
        totals = _sums(counts * torch.relu(x), batch.networks, count)
        scores: Tensor = self.head(torch.cat([means, torch.log1p(totals)], dim=1))[:, 0]
        return scores


def _read(x: Tensor, edges: Tensor) -> Tensor:
    """(V, D) sums of what each operator's edges lead from."""
    start, end = edges
    return _sums(x.index_select(0, start), end, len(x))  # whose gradient takes a third of that of x[start]


def _perceptron(width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs))


def _sums(x: Tensor, places: Tensor, count: int) -> Tensor:
    """(count, D) of (V, D) numbers, each added at its place."""
    return x.new_zeros(count, x.shape[1]).index_add(0, places, x)


def towards_graphs(
    expected: FloatArray,
    networks: Sequence[Operators],
    rows: NDArray[np.intp],
    targets: FloatArray,
    errors: FloatArray,
    progress: bool = False,
) -> FloatArray:
    """(N,) what something else expects of all networks, moved to what graph networks expect as far as is of use.

    The arguments are those of ``expected_by_graphs``.
    """
    by_graphs, share = expected_by_graphs(networks, rows, targets, errors, progress)
    return expected + share * (by_graphs - expected)


def expected_by_graphs(
    networks: Sequence[Operators],
    rows: NDArray[np.intp],
    targets: FloatArray,
    errors: FloatArray,
    progress: bool = False,
) -> tuple[FloatArray, float]:
    """What graph networks expect of all networks, and how far to go by them: nothing where they are of little use.

    Fewer than ``FEWEST_LABELS`` are of no use.

    Args:
        networks: N.
        rows: (n,) of those that have targets.
        targets: (n,) of variance 1 or about.
        errors: (n,) of something else that expects each without having seen it.
        progress: show a bar on stderr.

    Returns:
        (N,) means of what they expect, and their share in the mean with the other that errs least.

    Cost: 20 seconds for a hundred labels and 2,000 networks of DARTS on two cores, a minute for 500; a third of that
    where they are of no use, and less of smaller networks.
    """
    if len(rows) < FEWEST_LABELS:
        return np.zeros(len(networks)), 0.0
    labels = sorted({label for row in rows for label in networks[row].labels})
    known = {label: kind for kind, label in enumerate(labels, UNSEEN + 1)}
    left_out = np.full(len(rows), np.nan)
    answers: list[FloatArray] = []
    parts = np.array_split(np.random.default_rng(0).permutation(len(rows)), PARTS)
    for seed, part in enumerate(tqdm(parts, "graph networks", disable=not progress)):
        seen = np.setdiff1d(np.arange(len(rows)), part)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = _fitted([networks[row] for row in rows[seen]], targets[seen], known)
        answers.append(_answers(model, networks, known))
        left_out[part] = targets[part] - answers[-1][rows[part]]
        if not seed and _share(left_out[part], errors[part]) < LEAST_SHARE:
            return answers[0], 0.0
    return np.mean(answers, axis=0), _share(left_out, errors)


def _fitted(networks: Sequence[Operators], targets: FloatArray, known: Mapping[str, int]) -> _GraphNetwork:
    """A network fitted to (n,) targets of (n,) networks."""
    model, wanted = _GraphNetwork(len(known) + 1), torch.from_numpy(targets).float()
    steps = int(np.clip(STEPS_A_LABEL * len(networks), *STEPS))
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=WEIGHT_DECAY, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    for _ in range(steps):
        chosen = torch.randperm(len(networks))[:BATCH]
        optimizer.zero_grad()
        answers = model(_Batch.of([networks[row] for row in chosen.tolist()], known))
        loss = nn.functional.mse_loss(answers, wanted[chosen])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    return model


@torch.inference_mode()
def _answers(model: _GraphNetwork, networks: Sequence[Operators], known: Mapping[str, int]) -> FloatArray:
    """(N,) scores."""
    parts = [model(_Batch.of(networks[at : at + AT_ONCE], known)) for at in range(0, len(networks), AT_ONCE)]
    return np.asarray(torch.cat(parts).double())


def _share(errors: FloatArray, others: FloatArray) -> float:
    """Of the first in the mean of two that has the least squared error."""
    apart = others - errors
    share = float(apart @ others) / max(float(apart @ apart), 1e-9)
    return min(max(share, 0.0), 1.0)
