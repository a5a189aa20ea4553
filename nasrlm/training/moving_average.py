"""The moving average of a model's weights over training steps, which a run evaluates and saves."""

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
    """A copy of a model in training whose weights are the moving average of that model's.

    If the model is split over processes, each process averages its own part, and the first collects the whole.

    Args:
        learning: the model in training, not yet split.
        processes: those that it may be split over.

    Attributes:
        model: has the averaged weights; up to date after ``gather``.
        is_here: whether this process holds the whole average.
    """

    def __init__(self, learning: M, processes: Processes) -> None:
        self._learning, self._processes = learning, processes
        self.model = deepcopy(learning).eval()
        self.is_here = processes.is_first or not processes.shard
        self._parts = _learned_weights(self.model)

    def split(self) -> None:
        """Keep only this process's parts of the average; to be called after the model in training is split."""
        pairs = zip(_learned_weights(self.model), _learned_weights(self._learning), strict=True)
        self._parts = [part_like(average, weight) for average, weight in pairs]
        if not self.is_here:
            self.model.cpu()

    def update(self, decay: float) -> None:
        """Move the average towards the current weights, by 1 - ``decay``."""
        weights = _learned_weights(self._learning)
        torch._foreach_lerp_([local(x) for x in self._parts], [local(x) for x in weights], 1 - decay)

    def gather(self) -> None:
        """Collect the whole average in the first process; every process must call it."""
        if self._processes.shard:
            for average, part in zip(_learned_weights(self.model), self._parts, strict=True):
                if (found := whole(part, keep=self.is_here)) is not None:
                    average.copy_(found)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Continue from a whole average."""
        self.model.load_state_dict(weights)
        self.split()


def _learned_weights(model: nn.Module) -> list[Tensor]:
    """Return the weights of a model that are not frozen."""
    return [parameter.detach() for parameter in model.parameters() if parameter.requires_grad]
