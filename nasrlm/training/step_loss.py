"""The loss that a training step minimises. N rows, K objectives decoded per row, P labels in them."""

from __future__ import annotations

from torch import Tensor, nn

from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.point_decoder import PointDecoder
from nasrlm.training.batches import Batch
from nasrlm.training.loss import number_losses, smoothing_kernel
from nasrlm.training.rank_loss import digit_rank_losses, point_rank_losses


class TrainingLoss(nn.Module):
    """The loss of a batch, as one module that can be compiled and run by several processes.

    Args:
        model: its head decides the loss: cross-entropy of number tokens, or squared error of standardised labels.
        smoothing_digits: σ of the probability given to neighbouring digits.
        rank_loss_weight: weight of the mean loss of pairs, added to the mean loss of labels. Pairs are formed within
            the part of a batch that one process computes at a time, so more parts or processes give fewer pairs.
    """

    def __init__(self, model: RegressionLanguageModel, smoothing_digits: float, rank_loss_weight: float) -> None:
        super().__init__()
        self.model, self.rank_loss_weight = model, rank_loss_weight
        kernel = smoothing_kernel(model.code, smoothing_digits)
        self.register_buffer("kernel", kernel.to(model.device), persistent=False)

    def forward(self, batch: Batch) -> Tensor:
        """Return the sum of losses over the labels of a batch; zero if it has none."""
        losses, ranked = self._of_points(batch) if self.model.config.head == "mse" else self._of_digits(batch)
        total = losses.where(batch.present, 0.0).sum()
        if ranked is not None:
            total = total + self.rank_loss_weight * batch.present.sum() * ranked.sum() / max(1, len(ranked))
        return total

    def _of_digits(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return (N, K) losses of numbers, and losses of pairs or None."""
        log_probabilities = self.model(batch.text_ids, batch.objectives, batch.numbers, batch.visible)
        assert isinstance(self.kernel, Tensor)
        losses = number_losses(log_probabilities, batch.numbers, self.kernel)
        if not self.rank_loss_weight:
            return losses, None
        here = batch.present
        return losses, digit_rank_losses(log_probabilities[here], batch.numbers[here], batch.objectives[here])

    def _of_points(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return (N, K) squared errors, and losses of pairs or None."""
        decoder, here = self.model.decoder, batch.present
        assert isinstance(decoder, PointDecoder)
        points = decoder.points(decoder.remember(self.model.encoder(batch.text_ids)), batch.objectives)
        losses = (points - decoder.standardised(batch.values, batch.objectives)) ** 2
        if not self.rank_loss_weight:
            return losses, None
        return losses, point_rank_losses(points[here], batch.values[here], batch.objectives[here])
