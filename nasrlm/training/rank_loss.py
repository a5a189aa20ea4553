"""Losses of pairs: two labels of one objective shall come out in their order.

P numbers, T number tokens, V vocabulary of numbers.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

_LEAST_PROBABILITY = 1e-6  # keeps the logarithm finite


def digit_rank_losses(log_probabilities: Tensor, numbers: Tensor, objectives: Tensor) -> Tensor:
    """-log P(two numbers come out in their order), by the first token in which their spellings differ.

    Up to there both have the same prefix, so neither knows more than the other, and the order of their tokens is the
    order of the numbers (reversed when negative).

    Args:
        log_probabilities: (P, T, V), teacher-forced.
        numbers: (P, T) true ids.
        objectives: (P,); only numbers of one objective are compared.

    Returns:
        One loss for each pair of different spellings; ties between tokens count half.
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
    """-log P(two points come out in the order of their values), logistic in their difference.

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
    """Every pair of rows with the same objective, once."""
    same = objectives[:, None] == objectives[None, :]
    first, second = same.triu(1).nonzero(as_tuple=True)
    return first, second
