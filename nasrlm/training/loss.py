"""The loss of numbers spelled digit by digit: cross-entropy with targets smoothed over neighbouring digits.

N texts, R numbers per text, T tokens of a number, V vocabulary of numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nasrlm.model.decoder import FORBIDDEN
from nasrlm.model.number import NumberCode


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
