"""A frozen linear layer with a learned change of low rank."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LoRALinear(nn.Linear):
    """``W x + up (down x)``: only ``down`` and ``up`` are learned; the change is zero at initialisation.

    ``W`` and the bias have the same names as in ``nn.Linear``, so weights saved from one can be loaded.

    Source:
        Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models".
    """

    def __init__(self, in_features: int, out_features: int, bias: bool, rank: int) -> None:
        super().__init__(in_features, out_features, bias)
        self.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, in_features) * in_features**-0.5)
        self.up = nn.Parameter(torch.zeros(out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in) to (..., out)."""
        return super().forward(x) + F.linear(F.linear(x, self.down), self.up)


def add_lora(module: nn.Module, names: frozenset[str], rank: int) -> None:
    """Replace all linear layers with these names in a module and its submodules."""
    for name, child in module.named_children():
        if name in names and isinstance(child, nn.Linear):
            setattr(module, name, LoRALinear(child.in_features, child.out_features, child.bias is not None, rank))
        else:
            add_lora(child, names, rank)
