"""Pareto fronts and hypervolumes against their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from nasrlm.arrays import FloatArray, complete_mask
from studies.pareto import hypervolume, hypervolume_ratio, no_worse, pareto_mask

few_values = st.integers(0, 4).map(float)  # so that equal rows and ties are common
losses_strategy = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=7), elements=few_values)


@given(losses_strategy | arrays(np.float64, (5, 4), elements=few_values | st.sampled_from([-np.inf, np.inf])))
def test_pareto_mask_is_its_definition(losses: FloatArray) -> None:
    expected = []
    for row in losses:
        dominated = False
        for other in losses:
            dominated = dominated or bool((other <= row).all() and (other < row).any())
        expected.append(not dominated)
    assert pareto_mask(losses).tolist() == expected


@given(losses_strategy)
def test_no_worse_is_its_definition(losses: FloatArray) -> None:
    front, points = losses[: len(losses) // 2], losses[len(losses) // 2 :]
    expected = [[bool((member <= point).all()) for member in front] for point in points]
    assert no_worse(front, points).tolist() == expected


@given(losses_strategy)
def test_hypervolume_is_the_share_of_a_grid(losses: FloatArray) -> None:
    losses = losses[:, :3]
    reference_point = np.full(losses.shape[1], 4.0)
    cells = np.stack(np.meshgrid(*[np.arange(4.0)] * losses.shape[1], indexing="ij"), axis=-1).reshape(
        -1, losses.shape[1]
    )
    expected = sum(any((row <= cell).all() for row in losses) for cell in cells)
    assert hypervolume(losses, reference_point) == pytest.approx(expected)


def test_nothing_found_has_no_front_and_no_volume() -> None:
    for goals in (1, 2, 3):
        assert pareto_mask(np.empty((0, goals))).tolist() == []
        assert hypervolume(np.empty((0, goals)), np.ones(goals)) == 0
    assert hypervolume_ratio(np.empty((0, 2)), np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]), np.ones(2)) == 0


def test_volumes_of_penalties_are_finite() -> None:
    largest = np.finfo(np.float64).max
    losses = np.array([[largest] * 6, [1.0] * 6, [-largest] * 5 + [np.inf]])
    assert 0 < hypervolume(losses, np.full(6, largest)) < np.inf


def test_hypervolume_ratio_by_hand() -> None:
    truth = np.array([[0.0, 4.0], [1.0, 1.0], [4.0, 0.0], [3.0, 3.0]])
    worst = truth.max(axis=0)  # (4, 4): 3 * 3 squares
    assert hypervolume_ratio(truth, truth, worst) == 1
    assert hypervolume_ratio(truth[[3]], truth, worst) == pytest.approx(1 / 9)
    assert hypervolume_ratio(truth[[0]], truth, worst) == 0  # on the border of the reference
    assert hypervolume_ratio(truth[[1]], truth, np.array([5.0, 5.0])) == pytest.approx(16 / 18)


def test_a_flat_truth_has_no_ratio() -> None:
    assert math.isnan(hypervolume_ratio(np.ones((1, 2)), np.ones((3, 2)), np.ones(2)))


def test_nan_is_refused_with_its_row() -> None:
    losses = np.array([[0.0, 1.0], [np.nan, 0.0]])
    assert complete_mask(losses).tolist() == [True, False]
    for call in (pareto_mask, lambda x: hypervolume(x, np.ones(2)), lambda x: hypervolume_ratio(x[:1], x, np.ones(2))):
        with pytest.raises(ValueError, match="expected numbers, got NaN in row 1"):
            call(losses)


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"pareto_mask: expected losses of shape \(N, M\), got \(3,\)"):
        pareto_mask(np.ones(3))
    for reference_point in (np.ones(3), np.array([1.0, np.nan])):
        with pytest.raises(ValueError, match="hypervolume: expected a reference point of 2 numbers"):
            hypervolume(np.ones((1, 2)), reference_point)
