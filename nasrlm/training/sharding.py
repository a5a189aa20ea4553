"""Split a model over processes (FSDP): each keeps a shard, some rows, of every weight, gradient and optimiser state.

A split tensor is a ``DTensor``; other tensors pass through these functions unchanged. ``torch.distributed`` is imported
only where something is split, since this import takes half as long as that of torch itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def is_split(tensor: Tensor) -> TypeGuard[DTensor]:
    """Return whether a tensor is split, each process keeping a part."""
    return hasattr(tensor, "full_tensor")


def split(module: nn.Module, device_type: str, num_processes: int) -> None:
    """Split a module that contains an encoder; its layers are gathered one at a time, all other weights at once.

    The decoder's layers are among the others, because they are not only called as modules: their ``memory`` is called
    before.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device_type, (num_processes,))
    layers = [part for name, part in module.named_modules() if name.endswith("encoder.layers")]
    for layer in (layer for part in layers for layer in part.children()):
        fully_shard(layer, mesh=mesh)
    fully_shard(module, mesh=mesh)


def whole(tree: Any, keep: bool) -> Any:
    """Gather the split tensors in a tree of containers, on the CPU; None replaces them in processes without ``keep``.

    Every process must call it with the same tree.
    """

    def gather(tensor: Tensor) -> Tensor | None:
        if not is_split(tensor):
            return tensor
        gathered = tensor.full_tensor()
        return gathered.cpu() if keep else None

    return tree_map_only(Tensor, gather, tree)


def part_like(tensor: Tensor, like: Tensor) -> Tensor:
    """Return this process's part of a whole tensor, split as ``like`` is, without communication."""
    if not is_split(like):
        return tensor
    from torch.distributed.tensor import distribute_tensor

    part = distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None)
    return part.clone()  # a view would keep the whole tensor in memory


def local(tensor: Tensor) -> Tensor:
    """Return the part of a tensor that this process keeps, sharing its memory."""
    return tensor.to_local() if is_split(tensor) else tensor


def load_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Load an optimiser's state of whole tensors, splitting them as the parameters are."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    parts = {
        index: {
            name: part_like(value, parameters[index]) if value.shape == parameters[index].shape else value
            for name, value in values.items()
        }
        for index, values in state["state"].items()
    }
    optimizer.load_state_dict({**state, "state": parts})
