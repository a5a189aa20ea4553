"""The processes that train one model together (data parallelism): one, unless torchrun or accelerate starts more."""

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
    """Return whether this process writes files and reports; a single process does."""
    return int(os.environ.get("RANK", "0")) == 0


class Processes:
    """The group of processes; every process computes its part of each batch, and gradients are averaged.

    Args:
        device: "cpu", "cuda", …; if several processes share a machine, each uses its own accelerator.
        shard: split the model over the processes, if there are several; otherwise each holds the whole model.

    Raises:
        ValueError: torch cannot use the device, or the launcher is set to split models itself.
    """

    def __init__(self, device: str, shard: bool = False) -> None:
        torch_device(device)
        self.rank = int(os.environ.get("RANK", "0"))
        self.is_first = is_first_process()
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.shard = shard and self.count > 1
        self._accelerator = _accelerator(device) if self.count > 1 else None
        own = device if self._accelerator is None else str(self._accelerator.device)
        self.device = "cpu" if device == "cpu" else own  # accelerate numbers CPUs, which torch.load rejects

    def split(self, module: nn.Module) -> None:
        """Keep only this process's part of the weights, if ``shard`` is set."""
        if self.shard:
            split(module, torch.device(self.device).type, self.count)

    def wrap(self, module: nn.Module) -> nn.Module:
        """Return a module whose gradients are averaged over all processes; a split module does so by itself."""
        if self._accelerator is None or self.shard:
            return module
        wrapped: nn.Module = self._accelerator.prepare_model(module, device_placement=False)
        return wrapped

    def gradients(self, wrapped: nn.Module, last: bool) -> AbstractContextManager[Any]:
        """Return the context for a forward and backward pass; only the last one of a step averages over processes.

        Gradients of the other passes are accumulated in this process.
        """
        if self._accelerator is None or self.shard or last:  # whole gradients of a split model would be too large
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
        """Return whether this process takes part in saving now.

        The first process decides for all of them if the model is split; otherwise it saves alone.
        """
        return self.from_first(lambda: due) if self.shard else due and self.is_first

    def from_first(self, make: Callable[[], T]) -> T:
        """Call ``make`` in the first process, and return its result in every process."""
        if self._accelerator is None:
            return make()
        from accelerate.utils import broadcast_object_list

        shared = [make() if self.is_first else None]
        result: T = broadcast_object_list(shared)[0]
        return result


def _accelerator(device: str) -> Any:
    # NOTE: FSDP and the like split matrices, which Muon needs whole; our own splitting gathers them for it.
    if asked := [name for name in SPLIT_MODELS if os.environ.get(f"ACCELERATE_USE_{name}") == "true"]:
        raise ValueError(
            f"train: expected a launcher that does not split models, got {asked[0]}. Launch without it; to split the "
            "model, use the key `shard`."
        )
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=device == "cpu", mixed_precision="no")  # the config's bf16 decides
    atexit.register(accelerator.end_training)  # or threads of the group outlive the interpreter and abort the process
    return accelerator
