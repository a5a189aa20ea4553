"""Fit a graph network to few labels, and decide by held-out labels how much weight it gets beside other predictions.

N networks, n labelled ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from nasrlm.arrays import FloatArray
from nasrlm.model.graph_network import NUM_HASHES, GraphNetwork, Operators

FEWEST_LABELS = 10  # with fewer, none can be held out
PARTS = 3  # of the labels; each part is held out from one network (cross-validation)
BATCH, LEARNING_RATE, WEIGHT_DECAY = 32, 4e-3, 0.01
STEPS = (300, 1500)  # the least and the most
STEPS_A_LABEL = 2.5
LEAST_SHARE = 0.25  # after the first part; with less, fitting the other networks is not worth the time


@dataclass(frozen=True)
class FittedGraphs:
    """A graph network, to be averaged with another model that predicts the same scores.

    Attributes:
        network: predicts scores; its weights are rounded to 16 bits.
        share: its weight in the average that has the least squared error on held-out labels.
        error: root mean squared error of that average, divided by that of the other model alone.
    """

    network: GraphNetwork
    share: float
    error: float

    @classmethod
    def fit(
        cls, networks: Sequence[Operators], targets: FloatArray, errors: FloatArray, progress: bool = False
    ) -> FittedGraphs | None:
        """Fit a graph network to all labels, and its share by networks fitted with one part held out each.

        Returns None for fewer than ``FEWEST_LABELS`` labels, or if the share is below ``LEAST_SHARE`` after the first
        held-out part, or 0 after any.

        Args:
            networks: n.
            targets: (n,) scores to learn, of variance about 1.
            errors: (n,) leave-one-out errors of the other model.
            progress: show a bar on stderr.

        Cost: 15 seconds for a hundred labels of DARTS on two cores, a minute for 500; a fifth of that if it stops after
        the first part, and less for smaller networks.
        """
        if len(networks) < FEWEST_LABELS:
            return None
        left_out = np.full(len(networks), np.nan)
        parts = np.array_split(np.random.default_rng(0).permutation(len(networks)), PARTS)
        with tqdm(total=PARTS + 1, desc="graph networks", disable=not progress) as bar:
            for seed, part in enumerate(parts):
                seen = np.setdiff1d(np.arange(len(networks)), part)
                network = _fitted([networks[row] for row in seen], targets[seen], seed)
                left_out[part] = targets[part] - network([networks[row] for row in part]).double().numpy()
                known = np.isfinite(left_out)
                share = best_share(left_out[known], errors[known])
                if not share or (not seed and share < LEAST_SHARE):
                    return None
                bar.update()
            network = _fitted(networks, targets, PARTS)
            bar.update()
        together = errors + share * (left_out - errors)
        return cls(network, share, float(np.sqrt((together**2).mean() / (errors**2).mean())))

    def move(self, expected: FloatArray, networks: Sequence[Operators]) -> FloatArray:
        """Return (N,) scores of the other model, moved by the share towards those of the graph network."""
        moved: FloatArray = expected + self.share * (self.network(networks).double().numpy() - expected)
        return moved


def _fitted(networks: Sequence[Operators], targets: FloatArray, seed: int) -> GraphNetwork:
    """Fit a graph network to (n,) targets of n networks. Embeddings of operators that none of them has are 0."""
    draws = torch.Generator().manual_seed(seed)  # not the generator that all threads share
    model, wanted = _drawn(draws), torch.from_numpy(targets).float()
    seen = torch.cat([x.kinds for x in networks])
    with torch.no_grad():
        model.kinds.weight *= torch.isin(torch.arange(NUM_HASHES), seen)[:, None]
    steps = int(np.clip(STEPS_A_LABEL * len(networks), *STEPS))
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=WEIGHT_DECAY, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    for _ in range(steps):
        chosen = torch.randperm(len(networks), generator=draws)[:BATCH]
        optimizer.zero_grad()
        answers = model([networks[row] for row in chosen.tolist()])
        loss = nn.functional.mse_loss(answers, wanted[chosen])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    return model.half().float().requires_grad_(False)


def _drawn(draws: torch.Generator) -> GraphNetwork:
    """Return a graph network with torch's usual random weights, drawn by this generator alone."""
    with torch.device("meta"):  # draws nothing
        model = GraphNetwork()
    for part in model.to_empty(device="cpu").modules():
        if isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, generator=draws)
        elif isinstance(part, nn.Linear):
            nn.init.kaiming_uniform_(part.weight, a=math.sqrt(5), generator=draws)
            nn.init.uniform_(part.bias, -(part.in_features**-0.5), part.in_features**-0.5, generator=draws)
        elif isinstance(part, nn.LayerNorm):
            part.reset_parameters()
    return model


def best_share(errors: FloatArray, others: FloatArray) -> float:
    """Return the weight in [0, 1] of one of two predictions for which their weighted mean has the least squared error.

    Args:
        errors: (N,) of the prediction that gets the weight.
        others: (N,) of the other one.
    """
    apart = others - errors
    share = float(apart @ others) / max(float(apart @ apart), 1e-9)
    return min(max(share, 0.0), 1.0)
