"""The loss of spelled numbers: cross-entropy to targets that give neighbouring digits a little.

N texts, R number rows an input, T number tokens, V vocabulary of numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nasrlm.model.decoder import FORBIDDEN
from nasrlm.model.number import NumberCode


def smoothing_kernel(code: NumberCode, sigma_digits: float) -> Tensor:
    """(V, V): row = true token, columns = target weights. Digits spread as a Gaussian, other tokens not at all.

    Digits are ordered, and 93.5 is nearly right where 93.4 was meant; a σ of 0.7 digits kept a small model from
    memorising 781 rows.
    """
    kernel = torch.eye(code.vocabulary_size)
    if sigma_digits > 0:
        digits = torch.arange(10)
        distance = (digits[:, None] - digits[None, :]).float()
        kernel[code.first_digit_id :, code.first_digit_id :] = torch.exp(-0.5 * (distance / sigma_digits) ** 2)
    return kernel


def number_losses(log_probabilities: Tensor, numbers: Tensor, kernel: Tensor) -> Tensor:
    """(N, R) cross-entropy of every number, the mean over its tokens.

    Args:
        log_probabilities: (N, R, T, V) under the grammar; ids it forbids have a very low one.
        numbers: (N, R, T) true ids.
        kernel: (V, V) from ``smoothing_kernel``.
    """
    targets = kernel[numbers] * (log_probabilities > FORBIDDEN / 10)
    targets = targets / targets.sum(dim=-1, keepdim=True)
    return -(targets * log_probabilities).sum(dim=-1).mean(dim=-1)
