"""Matrices that are made orthogonal together move as torch's own Muon moves them one by one."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from nasrlm.training import muon
from nasrlm.training.muon import Muon, orthogonal

SHAPES = [(24, 8), (8, 24), (8, 8), (24, 8), (8, 8), (8, 24), (5, 7)]


def matrices() -> list[nn.Parameter]:
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(shape)) for shape in SHAPES]


def gradients(step: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(shape, generator=generator) for shape in SHAPES]


def learned(kind: type[torch.optim.Optimizer], steps: int = 4) -> list[Tensor]:
    moved = matrices()
    optimizer = kind(moved, lr=0.1)
    for step in range(steps):
        for matrix, gradient in zip(moved, gradients(step), strict=True):
            matrix.grad = gradient
        optimizer.step()
    return [matrix.detach() for matrix in moved]


def changes(after: Sequence[Tensor]) -> Tensor:
    """All numbers by which the matrices moved, in a row."""
    return torch.cat([(x - y.detach()).flatten() for x, y in zip(after, matrices(), strict=True)])


def test_it_moves_matrices_as_torchs_own_does() -> None:
    expected = changes(learned(torch.optim.Muon))
    assert (changes(learned(Muon)) - expected).norm() < 0.01 * expected.norm()


def test_a_bound_on_what_is_taken_together_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = changes(learned(Muon))
    monkeypatch.setattr(muon, "NUMBERS_TOGETHER", 1)
    torch.testing.assert_close(changes(learned(Muon)), expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("shape", [(3, 6, 6), (2, 4, 16), (2, 16, 4)])
def test_singular_values_come_near_one(shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    values = torch.linalg.svdvals(orthogonal(torch.randn(shape)).float())
    assert values.min() > 0.3
    assert values.max() < 1.3


def test_what_has_no_gradient_stays() -> None:
    moved = matrices()
    moved[0].grad = gradients(0)[0]
    Muon(moved, lr=0.1).step()
    assert not torch.equal(moved[0], matrices()[0])
    assert all(torch.equal(x, y) for x, y in zip(moved[1:], matrices()[1:], strict=True))


def test_a_zero_gradient_is_no_division_by_zero() -> None:
    (matrix,) = (nn.Parameter(torch.ones(4, 4)),)
    matrix.grad = torch.zeros(4, 4)
    Muon([matrix], lr=0.1, weight_decay=0.5).step()
    torch.testing.assert_close(matrix.detach(), torch.full((4, 4), 0.95))
