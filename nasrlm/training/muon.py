"""Muon: an optimiser that updates a matrix by its orthogonalised momentum, here for all matrices of a shape at a time.

n matrices of one shape, r rows, c columns, r <= c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn

from nasrlm.model.devices import multiplies_bf16
from nasrlm.training.sharding import is_split, part_like

A, B, C = 3.4445, -4.7750, 2.0315  # coefficients of the quintic iteration, from the source
ITERATIONS = 5
NUMBERS_TOGETHER = 2**24  # matrix entries orthogonalised at a time, to bound memory


class Muon(torch.optim.Optimizer):
    """Muon with Nesterov momentum and decoupled weight decay, also for matrices split over processes.

    It equals ``torch.optim.Muon`` up to rounding and takes two fifths to two thirds of its time on a CPU, because that
    one handles matrices one by one. The momentum of split matrices is split too, and is gathered to be orthogonalised.

    Args:
        matrices: two-dimensional parameters.
        lr: learning rate; multiplied by √(rows / columns) for matrices with more rows than columns.
        weight_decay: share of a matrix that is subtracted in a step, times ``lr``.
        momentum: share of the momentum that remains after a step.

    Source:
        Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks".
    """

    def __init__(
        self, matrices: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.1, momentum: float = 0.95
    ) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        assert closure is None, "training computes the gradients itself"
        for group in self.param_groups:
            matrices = [matrix for matrix in group["params"] if matrix.grad is not None]
            for matrix in matrices:
                matrix.mul_(1 - group["lr"] * group["weight_decay"])
            for together in _of_one_shape(matrices):
                updates = [_whole(self._update(matrix, group["momentum"])) for matrix in together]
                rate = group["lr"] * math.sqrt(max(1.0, together[0].shape[0] / together[0].shape[1]))
                for matrix, change in zip(together, orthogonal(torch.stack(updates)), strict=True):
                    matrix.add_(part_like(change.to(matrix.dtype), matrix), alpha=-rate)

    def _update(self, matrix: nn.Parameter, share: float) -> Tensor:
        """Update the momentum of a matrix, and return the gradient moved towards it (Nesterov)."""
        assert matrix.grad is not None
        state = self.state[matrix]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(matrix.grad)
        momentum: Tensor = state["momentum_buffer"].lerp_(matrix.grad, 1 - share)
        return matrix.grad.lerp(momentum, share)


def orthogonal(matrices: Tensor) -> Tensor:
    """Return (n, r, c) matrices with about the same singular vectors and singular values near 1.

    Computed in bf16 on devices with instructions for it; any shape is allowed.

    Source:
        The Newton-Schulz iteration of ``torch.optim.Muon``.
    """
    if matrices.shape[-2] > matrices.shape[-1]:
        return orthogonal(matrices.mT).mT
    x = matrices.to(torch.bfloat16 if multiplies_bf16(matrices.device) else torch.float32)
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=B, alpha=C), x, beta=A)
    return x


def _of_one_shape(matrices: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Yield groups of matrices of one shape, each up to ``NUMBERS_TOGETHER`` entries."""
    by_shape: dict[torch.Size, list[nn.Parameter]] = {}
    for matrix in matrices:
        by_shape.setdefault(matrix.shape, []).append(matrix)
    for shape, alike in by_shape.items():
        count = max(1, NUMBERS_TOGETHER // shape.numel())
        yield from (alike[first : first + count] for first in range(0, len(alike), count))


def _whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if is_split(tensor) else tensor
