"""The loss against its definition in loops."""

import math

import pytest
import torch

from nasrlm.loss import number_loss, smoothing_kernel
from tests.nasrlm.scenes import CODE, all_spellings, tiny_model

TEXTS = torch.tensor([[3, 7, 7], [1, 2, 9]])
NUMBERS = all_spellings()[torch.tensor([[10, 170], [180, 300]])]
OBJECTIVES = torch.tensor([[0, 1], [0, 1]])
ALONE = torch.zeros(2, 2, 2, dtype=torch.bool)


def log_probabilities() -> torch.Tensor:
    return tiny_model()(TEXTS, OBJECTIVES, NUMBERS, ALONE).detach()


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
    return sum(losses) / len(losses)


@pytest.mark.parametrize("sigma", [0.0, 0.7, 2.0])
def test_the_loss_is_the_cross_entropy_to_smoothed_digits(sigma: float) -> None:
    given = log_probabilities()
    present = torch.tensor([[True, True], [False, True]])
    loss = number_loss(given, NUMBERS, present, smoothing_kernel(CODE, sigma))
    assert float(loss) == pytest.approx(loss_in_loops(given, sigma, [(0, 0), (0, 1), (1, 1)]), rel=1e-5)


def test_what_is_not_present_does_not_count() -> None:
    given, kernel = log_probabilities(), smoothing_kernel(CODE, 0.7)
    first = torch.tensor([[True, False], [False, False]])
    changed = given.clone()
    changed[1] -= 5
    changed[0, 1] -= 5
    assert float(number_loss(given, NUMBERS, first, kernel)) == float(number_loss(changed, NUMBERS, first, kernel))


def test_only_digits_are_smoothed() -> None:
    kernel = smoothing_kernel(CODE, 0.7)
    first = CODE.first_digit_id
    assert torch.equal(kernel[:first], torch.eye(CODE.vocabulary_size)[:first])
    assert (kernel[first:, first:] > 0).all()
    assert float(kernel[first + 4, first + 5]) == pytest.approx(math.exp(-0.5 / 0.49))
