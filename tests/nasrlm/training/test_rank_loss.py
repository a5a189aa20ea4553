"""Losses of pairs against their definitions in loops."""

import math

import numpy as np
import pytest
import torch

from nasrlm.training.rank_loss import digit_rank_losses, point_rank_losses
from tests.nasrlm.scenes import CODE

VALUES = [93.0, 91.0, 93.0, -2.5, -31.0, 0.0, 12.0]
OBJECTIVES = torch.tensor([0, 0, 0, 0, 0, 0, 1])
NUMBERS = torch.from_numpy(CODE.encode(VALUES))


def log_probabilities() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(len(VALUES), CODE.length, CODE.vocabulary_size).log_softmax(-1)


def pairs() -> list[tuple[int, int]]:
    different = [(i, j) for i in range(len(VALUES)) for j in range(i) if VALUES[i] != VALUES[j]]
    return [(i, j) for i, j in different if OBJECTIVES[i] == OBJECTIVES[j]]


def digit_losses_in_loops(given: torch.Tensor) -> list[float]:
    losses = []
    for i, j in pairs():
        place = next(t for t in range(CODE.length) if NUMBERS[i, t] != NUMBERS[j, t])
        right = 0.0
        for a, p in enumerate(given[i, place].exp().tolist()):
            for b, q in enumerate(given[j, place].exp().tolist()):
                in_order = 0.5 if a == b else float((a > b) == bool(NUMBERS[i, place] > NUMBERS[j, place]))
                right += p * q * in_order
        losses.append(-math.log(right))
    return losses


def test_digits_are_compared_where_they_first_differ() -> None:
    given = log_probabilities()
    losses = digit_rank_losses(given, NUMBERS, OBJECTIVES)
    np.testing.assert_allclose(sorted(losses.tolist()), sorted(digit_losses_in_loops(given)), rtol=1e-4)


def test_numbers_that_are_surely_right_lose_nothing() -> None:
    certain = torch.nn.functional.one_hot(NUMBERS, CODE.vocabulary_size).float().clamp(min=1e-9).log()
    assert float(digit_rank_losses(certain, NUMBERS, OBJECTIVES).max()) < 1e-5


def test_points_are_compared_by_their_difference() -> None:
    points = torch.tensor([0.3, 0.9, -1.0, 2.0, 0.5, 0.0, 7.0])
    expected = [
        math.log1p(math.exp(-float(points[i] - points[j]) * np.sign(VALUES[i] - VALUES[j]))) for i, j in pairs()
    ]
    losses = point_rank_losses(points, torch.tensor(VALUES), OBJECTIVES)
    np.testing.assert_allclose(sorted(losses.tolist()), sorted(expected), rtol=1e-5)


@pytest.mark.parametrize("count", [0, 1])
def test_without_pairs_there_are_no_losses(count: int) -> None:
    few = slice(0, count)
    assert len(digit_rank_losses(log_probabilities()[few], NUMBERS[few], OBJECTIVES[few])) == 0
    assert len(point_rank_losses(torch.zeros(count), torch.zeros(count), OBJECTIVES[few])) == 0
