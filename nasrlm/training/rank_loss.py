"""Pairwise ranking losses: predictions of two labels of an objective should have the labels' order.

P numbers, T number tokens, V vocabulary of numbers.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

_LEAST_PROBABILITY = 1e-6  # keeps the logarithm finite


def digit_rank_losses(log_probabilities: Tensor, numbers: Tensor, objectives: Tensor) -> Tensor:
    """Return -log P(two predicted numbers are in the labels' order), by the first token in which the labels differ.

    Both have the same prefix up to there, so that the order of their next tokens is the order of the numbers (reversed
    if negative).

    Args:
        log_probabilities: (P, T, V), teacher-forced.
        numbers: (P, T) true ids.
        objectives: (P,); only numbers of one objective are compared.

    Returns:
        One loss for each pair of different labels; equal predicted tokens count half.
    """
    first, second = _pairs(objectives)
    differ = numbers[first] != numbers[second]
    first, second = (x[differ.any(dim=-1)] for x in (first, second))
    place = differ[differ.any(dim=-1)].int().argmax(dim=-1)
    p, q = (log_probabilities[x, place].exp() for x in (first, second))
    larger = (p * (q.cumsum(dim=-1) - q / 2)).sum(dim=-1)  # P(first token > second) + P(equal) / 2
    is_larger = numbers[first, place] > numbers[second, place]
    in_order = larger.where(is_larger, 1 - larger)
    return -in_order.clamp(min=_LEAST_PROBABILITY).log()


def point_rank_losses(points: Tensor, values: Tensor, objectives: Tensor) -> Tensor:
    """Return -log P(two predictions are in the order of their labels), a logistic function of their difference.

    Args:
        points: (P,) standardised predictions.
        values: (P,) labels.
        objectives: (P,); only labels of one objective are compared.

    Returns:
        One loss for each pair of different labels.

    Source:
        Burges et al. 2005, "Learning to rank using gradient descent".
    """
    first, second = _pairs(objectives)
    order = (values[first] - values[second]).sign()
    return F.softplus(-order * (points[first] - points[second]))[order != 0]


def _pairs(objectives: Tensor) -> tuple[Tensor, Tensor]:
    """Return every pair of numbers with the same objective, once."""
    same = objectives[:, None] == objectives[None, :]
    first, second = same.triu(1).nonzero(as_tuple=True)
    return first, second
