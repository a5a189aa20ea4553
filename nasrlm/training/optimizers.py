"""The optimisers of a training run, with the weights of each, and the learning rate schedule."""

from __future__ import annotations

import math

import torch

from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.training.config import TrainConfig
from nasrlm.training.muon import Muon

BACKBONE = "encoder.backbone."  # prefix of the weights of a pretrained backbone


def make_optimizers(model: RegressionLanguageModel, config: TrainConfig) -> tuple[torch.optim.Optimizer, ...]:
    """Make Muon for the matrices of our layers, and AdamW without weight decay for embeddings, norms and the head.

    AdamW also learns the unfrozen weights of a pretrained backbone, at a learning rate of their own.

    Source:
        Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks". In equal time it
        ranks better than AdamW alone, see docs/log.md (2026-11-20).
    """
    learned = {name: p for name, p in model.named_parameters() if p.requires_grad}
    ours = {name: p for name, p in learned.items() if not name.startswith(BACKBONE)}
    matrices = {name: p for name, p in ours.items() if p.ndim == 2 and ".layers." in name}
    others = [p for name, p in ours.items() if name not in matrices]
    groups = [{"params": others, "lr": config.embedding_learning_rate}]
    if backbone := [p for name, p in learned.items() if name not in ours]:
        groups.append({"params": backbone, "lr": config.backbone_learning_rate})
    return (
        Muon(list(matrices.values()), lr=config.learning_rate, weight_decay=config.weight_decay),
        torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.0, fused=True),
    )


class Schedule:
    """Linear warm-up to the optimisers' learning rates, then cosine decay to 2 % of them."""

    def __init__(self, optimizers: tuple[torch.optim.Optimizer, ...], warmup_steps: float, total_steps: int) -> None:
        self._groups = [(optimizer, [group["lr"] for group in optimizer.param_groups]) for optimizer in optimizers]
        self._warmup_steps, self._total_steps = warmup_steps, total_steps

    def set_rates(self, step: int) -> None:
        """Set the learning rates of a step."""
        share = self._share(step)
        for optimizer, peaks in self._groups:
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                group["lr"] = peak * share

    def _share(self, step: int) -> float:
        if step < self._warmup_steps:
            return min(1.0, (step + 1) / self._warmup_steps)
        done = (step - self._warmup_steps) / max(1.0, self._total_steps - self._warmup_steps)
        return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done))
