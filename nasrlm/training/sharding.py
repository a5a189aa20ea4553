"""A model split over processes (FSDP): each keeps some rows of every weight, gradient and state of an optimiser.

What is split is a ``DTensor``; anything else passes through these functions unchanged. Torch's part for this is
imported only where something is split: that takes half as long as torch itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def is_split(tensor: Tensor) -> TypeGuard[DTensor]:
    """Whether each process keeps a part of it."""
    return hasattr(tensor, "full_tensor")


def split(module: nn.Module, device_type: str, num_processes: int) -> None:
    """Split a module that contains an encoder: its layers are gathered one at a time, all other weights at once.

    Layers of the decoder are not called as modules only (their ``memory`` is read before), so they are among the
    others.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device_type, (num_processes,))
    layers = [part for name, part in module.named_modules() if name.endswith("encoder.layers")]
    for layer in (layer for part in layers for layer in part.children()):
        fully_shard(layer, mesh=mesh)
    fully_shard(module, mesh=mesh)


def whole(tree: Any, keep: bool) -> Any:
    """A tree of containers with whole tensors in the CPU's memory; None in processes that do not keep them.

    Every process must call it with the same tree.
    """

    def gather(tensor: Tensor) -> Tensor | None:
        if not is_split(tensor):
            return tensor
        gathered = tensor.full_tensor()
        return gathered.cpu() if keep else None

    return tree_map_only(Tensor, gather, tree)


def part_like(tensor: Tensor, like: Tensor) -> Tensor:
    """This process's part of a whole tensor, split as ``like`` is; no process asks another."""
    if not is_split(like):
        return tensor
    from torch.distributed.tensor import distribute_tensor

    part = distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None)
    return part.clone()  # or the whole would stay in memory


def local(tensor: Tensor) -> Tensor:
    """The numbers of a tensor that this process keeps, in place."""
    return tensor.to_local() if is_split(tensor) else tensor


def load_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Load a state with whole tensors."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    parts = {
        index: {
            name: part_like(value, parameters[index]) if value.shape == parameters[index].shape else value
            for name, value in values.items()
        }
        for index, values in state["state"].items()
    }
    optimizer.load_state_dict({**state, "state": parts})
