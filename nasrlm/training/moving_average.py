"""The moving average of a model's weights over its steps, which is what a run judges and saves."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from nasrlm.training.processes import Processes
from nasrlm.training.sharding import local, part_like, whole

M = TypeVar("M", bound=nn.Module)


class MovingAverage(Generic[M]):
    """A copy of a learning model whose weights are a moving average of that model's.

    If the learning model is split, each process averages its parts and the first has the whole.

    Args:
        learning: not yet split.
        processes: that it will be split over, if it is.

    Attributes:
        model: with the average; up to date after ``gather``.
        is_here: whether this process holds all of it.
    """

    def __init__(self, learning: M, processes: Processes) -> None:
        self._learning, self._processes = learning, processes
        self.model = deepcopy(learning).eval()
        self.is_here = processes.rank == 0 or not processes.shard
        self._parts = _learned_weights(self.model)

    def split(self) -> None:
        """Take this process's parts of the average, now that the learning model is split."""
        pairs = zip(_learned_weights(self.model), _learned_weights(self._learning), strict=True)
        self._parts = [part_like(average, weight) for average, weight in pairs]
        if not self.is_here:
            self.model.cpu()

    def update(self, decay: float) -> None:
        """Move towards what the model has learned."""
        weights = _learned_weights(self._learning)
        torch._foreach_lerp_([local(x) for x in self._parts], [local(x) for x in weights], 1 - decay)

    def gather(self) -> None:
        """Collect the whole average in the first process; every process must call it."""
        if self._processes.shard:
            for average, part in zip(_learned_weights(self.model), self._parts, strict=True):
                if (found := whole(part, keep=self.is_here)) is not None:
                    average.copy_(found)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Go on from a whole average."""
        self.model.load_state_dict(weights)
        self.split()


def _learned_weights(model: nn.Module) -> list[Tensor]:
    """Weights of a model, without frozen ones."""
    return [parameter.detach() for parameter in model.parameters() if parameter.requires_grad]
