"""The loss against its definition in loops."""

import math

import pytest
import torch

from nasrlm.training.batches import Batch
from nasrlm.training.loss import TrainingLoss, smoothing_kernel
from tests.nasrlm.scenes import CODE, all_spellings, tiny_model

TEXTS = torch.tensor([[3, 7, 7], [1, 2, 9]])
NUMBERS = all_spellings()[torch.tensor([[10, 170], [180, 300]])]
OBJECTIVES = torch.tensor([[0, 1], [0, 1]])
ALONE = torch.zeros(2, 2, 2, dtype=torch.bool)


def log_probabilities() -> torch.Tensor:
    return tiny_model()(TEXTS, OBJECTIVES, NUMBERS, ALONE).detach()


def loss_of(numbers: torch.Tensor, present: torch.Tensor, sigma: float) -> float:
    """Of the labels that are present, as a training step sums it."""
    batch = Batch(TEXTS, OBJECTIVES, numbers, torch.zeros(numbers.shape[:2]).double(), present, ALONE)
    return float(TrainingLoss(tiny_model(), sigma, 0.0)(batch).detach())


def loss_in_loops(log_probabilities: torch.Tensor, sigma: float, present: list[tuple[int, int]]) -> float:
    losses = []
    for row, column in present:
        for position, true in enumerate(NUMBERS[row, column].tolist()):
            sign = int(NUMBERS[row, column, 0])
            weights = {}
            for token in range(CODE.vocabulary_size):
                digits = true >= CODE.first_digit_id and token >= CODE.first_digit_id
                close = math.exp(-0.5 * ((token - true) / sigma) ** 2) if digits and sigma else float(token == true)
                if bool(CODE.grammar[sign, position, token]):
                    weights[token] = close
            total = sum(weights.values())
            here = log_probabilities[row, column, position]
            losses.append(-sum(weight / total * float(here[token]) for token, weight in weights.items()))
    return sum(losses) / NUMBERS.shape[-1]


@pytest.mark.parametrize("sigma", [0.0, 0.7, 2.0])
def test_the_loss_is_the_cross_entropy_to_smoothed_digits(sigma: float) -> None:
    expected = loss_in_loops(log_probabilities(), sigma, [(0, 0), (0, 1), (1, 1)])
    assert loss_of(NUMBERS, torch.tensor([[True, True], [False, True]]), sigma) == pytest.approx(expected, rel=1e-5)


def test_what_is_not_present_does_not_count() -> None:
    first = torch.tensor([[True, False], [False, False]])
    changed = NUMBERS.clone()
    changed[1] = NUMBERS[0]
    changed[0, 1] = NUMBERS[1, 1]
    assert loss_of(changed, first, 0.7) == loss_of(NUMBERS, first, 0.7)
    assert loss_of(changed, ~first, 0.7) != loss_of(NUMBERS, ~first, 0.7)
    assert loss_of(NUMBERS, first, 0.7) + loss_of(NUMBERS, ~first, 0.7) == pytest.approx(
        loss_of(NUMBERS, torch.ones(2, 2).bool(), 0.7), rel=1e-6
    )


def test_only_digits_are_smoothed() -> None:
    kernel = smoothing_kernel(CODE, 0.7)
    first = CODE.first_digit_id
    assert torch.equal(kernel[:first], torch.eye(CODE.vocabulary_size)[:first])
    assert (kernel[first:, first:] > 0).all()
    assert float(kernel[first + 4, first + 5]) == pytest.approx(math.exp(-0.5 / 0.49))
