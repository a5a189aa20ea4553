"""A complete training step on one batch, as in ``nasrlm train``, for timing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from nasrlm.model.devices import autocast
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.training.batches import Batch
from nasrlm.training.config import TrainConfig
from nasrlm.training.optimizers import make_optimizers

SETTINGS = TrainConfig(out=Path("none"))

Loss = Callable[[Batch], torch.Tensor]


def make_step(model: RegressionLanguageModel, loss_of: Loss) -> Callable[[Batch], None]:
    """Return a function that trains one step on a batch.

    A step is forward and backward, in bf16 if that is faster, clipping of gradients, and Muon and AdamW.

    Args:
        model: the model to train.
        loss_of: its ``TrainingLoss``, compiled or not.
    """
    optimizers = make_optimizers(model, SETTINGS)

    def step(batch: Batch) -> None:
        model.zero_grad(set_to_none=True)
        add_gradients(loss_of, batch)
        torch.nn.utils.clip_grad_norm_(model.parameters(), SETTINGS.clip_norm)
        for optimizer in optimizers:
            optimizer.step()

    return step


def add_gradients(loss_of: Loss, batch: Batch) -> None:
    """Add the gradients of the batch's mean loss per label."""
    with autocast(batch.text_ids.device):
        loss = loss_of(batch) / int(batch.present.sum())
    loss.backward()  # type: ignore[no-untyped-call]
