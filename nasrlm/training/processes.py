"""The processes that train one model together: one, unless torchrun or ``accelerate launch`` started more."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch
from torch import nn

from nasrlm.model.devices import torch_device
from nasrlm.training.sharding import split

T = TypeVar("T")

SPLIT_MODELS = ("FSDP", "DEEPSPEED", "MEGATRON_LM")


def is_first_process() -> bool:
    """Whether this process writes files and reports; the only one does."""
    return int(os.environ.get("RANK", "0")) == 0


class Processes:
    """Every process computes its part of each batch; gradients are averaged.

    Args:
        device: "cpu", "cuda", …; where several processes share a machine, each takes its own accelerator.
        shard: split the model over the processes, if there are several; otherwise each holds it whole.

    Raises:
        ValueError: torch cannot use the device, or the launcher asks for more than data parallelism.
    """

    def __init__(self, device: str, shard: bool = False) -> None:
        torch_device(device)
        self.rank = int(os.environ.get("RANK", "0"))
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.shard = shard and self.count > 1
        self._accelerator = _accelerator(device) if self.count > 1 else None
        own = device if self._accelerator is None else str(self._accelerator.device)
        self.device = "cpu" if device == "cpu" else own  # accelerate counts CPUs, which torch.load does not know

    def split(self, module: nn.Module) -> None:
        """Leave this process with its part of the weights, if that was asked for."""
        if self.shard:
            split(module, torch.device(self.device).type, self.count)

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module whose gradients are the mean over all processes; one that was split is that already."""
        if self._accelerator is None or self.shard:
            return module
        wrapped: nn.Module = self._accelerator.prepare_model(module, device_placement=False)
        return wrapped

    def gradients(self, wrapped: nn.Module, last: bool) -> AbstractContextManager[Any]:
        """Around a pass forward and backward; the last of a step averages what was added up in this process."""
        if self._accelerator is None or self.shard or last:  # whole gradients would be too large to add up
            return nullcontext()
        context: AbstractContextManager[Any] = self._accelerator.no_sync(wrapped)
        return context

    def sum(self, value: float) -> float:
        """Sum a number over all processes."""
        if self._accelerator is None:
            return value
        total = self._accelerator.reduce(torch.tensor(value, dtype=torch.float32, device=self.device), "sum")
        return float(total)

    def saves(self, due: bool) -> bool:
        """Whether this process is to save now: all of a split model when the first says so, else the first alone."""
        return self.from_first(lambda: due) if self.shard else due and self.rank == 0

    def from_first(self, make: Callable[[], T]) -> T:
        """What the first process makes, in every process."""
        if self._accelerator is None:
            return make()
        from accelerate.utils import broadcast_object_list

        shared = [make() if self.rank == 0 else None]
        result: T = broadcast_object_list(shared)[0]
        return result


def _accelerator(device: str) -> Any:
    # NOTE: FSDP and the like split matrices, and Muon needs them whole; our own splitting knows that.
    if asked := [name for name in SPLIT_MODELS if os.environ.get(f"ACCELERATE_USE_{name}") == "true"]:
        raise ValueError(
            f"train: expected a launcher that leaves models whole, got {asked[0]}. Launch without it; "
            "the key `shard` splits the model."
        )
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=device == "cpu", mixed_precision="no")  # the config's bf16 decides
    atexit.register(accelerator.end_training)  # threads of the group that outlive the interpreter abort the process
    return accelerator
