"""The loss that a training step minimises.

The loss of a number spelled digit by digit is its cross-entropy with targets smoothed over neighbouring digits; the
loss of a point is its squared error. On request, a loss on the order of every two labels of an objective is added.

N texts, R numbers per text, T tokens of a number, V vocabulary of numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from nasrlm.model.decoder import FORBIDDEN
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NumberCode
from nasrlm.model.point_decoder import PointDecoder
from nasrlm.training.batches import Batch
from nasrlm.training.rank_loss import digit_rank_losses, point_rank_losses


class TrainingLoss(nn.Module):
    """The loss of a batch, as one module that can be compiled and run by several processes.

    Args:
        model: its head decides the loss: cross-entropy of number tokens, or squared error of standardised labels.
        smoothing_digits: σ of the probability given to neighbouring digits.
        rank_loss_weight: weight of the mean loss of pairs, added to the mean loss of labels. Pairs are formed within
            the part of a batch that one process computes at a time, so more parts or processes give fewer pairs.
    """

    kernel: Tensor

    def __init__(self, model: RegressionLanguageModel, smoothing_digits: float, rank_loss_weight: float) -> None:
        super().__init__()
        self.model, self.rank_loss_weight = model, rank_loss_weight
        kernel = smoothing_kernel(model.code, smoothing_digits)
        self.register_buffer("kernel", kernel.to(model.device), persistent=False)

    def forward(self, batch: Batch) -> Tensor:
        """Return the sum of losses over the labels of a batch; zero if it has none."""
        decoder, here = self.model.decoder, batch.present
        rank_losses: Callable[[Tensor, Tensor, Tensor], Tensor]
        if isinstance(decoder, PointDecoder):
            answers = decoder.points(decoder.remember(self.model.encoder(batch.text_ids)), batch.objectives)
            losses = (answers - decoder.standardised(batch.values, batch.objectives)) ** 2
            rank_losses, labels = point_rank_losses, batch.values
        else:
            answers = self.model(batch.text_ids, batch.objectives, batch.numbers, batch.visible)
            losses = number_losses(answers, batch.numbers, self.kernel)
            rank_losses, labels = digit_rank_losses, batch.numbers
        total = losses.where(here, 0.0).sum()
        if not self.rank_loss_weight:
            return total
        ranked = rank_losses(answers[here], labels[here], batch.objectives[here])
        return total + self.rank_loss_weight * here.sum() * ranked.sum() / max(1, len(ranked))


def smoothing_kernel(code: NumberCode, sigma_digits: float) -> Tensor:
    """Return (V, V) target weights: for each true token, a row of weights of all tokens.

    The weights of digits are Gaussian in their distance, with standard deviation ``sigma_digits``; other tokens are
    not smoothed. Digits are ordered, so 93.5 is nearly right if the label is 93.4. A σ of 0.7 digits kept a small model
    from memorising 781 rows.
    """
    kernel = torch.eye(code.vocabulary_size)
    if sigma_digits > 0:
        digits = torch.arange(10)
        distance = (digits[:, None] - digits[None, :]).float()
        kernel[code.first_digit_id :, code.first_digit_id :] = torch.exp(-0.5 * (distance / sigma_digits) ** 2)
    return kernel


def number_losses(log_probabilities: Tensor, numbers: Tensor, kernel: Tensor) -> Tensor:
    """Return the (N, R) cross-entropy of every number, as the mean over its tokens.

    Args:
        log_probabilities: (N, R, T, V) under the grammar; very low for ids that it forbids.
        numbers: (N, R, T) true ids.
        kernel: (V, V) from ``smoothing_kernel``.
    """
    targets = kernel[numbers] * (log_probabilities > FORBIDDEN / 10)
    targets = targets / targets.sum(dim=-1, keepdim=True)
    return -(targets * log_probabilities).sum(dim=-1).mean(dim=-1)
