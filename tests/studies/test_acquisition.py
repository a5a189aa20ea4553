"""Hypervolume improvements, and batches chosen by them, against their definitions."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nasrlm.arrays import FloatArray
from studies import acquisition
from studies.acquisition import choose, expected_improvements, joint_improvements
from studies.pareto import hypervolume, pareto_mask

few_values = st.integers(0, 4).map(float)


@given(st.integers(1, 4).flatmap(lambda goals: arrays(np.float64, (8, goals), elements=few_values)))
def test_an_improvement_is_the_hypervolume_that_a_row_adds(losses: FloatArray) -> None:
    front, candidates = losses[:4][pareto_mask(losses[:4])], losses[4:]
    reference_point = np.array([3.5, 2.5, 4.0, 3.0])[: losses.shape[1]]
    before = hypervolume(front, reference_point)
    expected = [hypervolume(np.vstack([front, row]), reference_point) - before for row in candidates]
    np.testing.assert_allclose(expected_improvements(candidates[:, None], front, reference_point), expected, atol=1e-9)
    alone = expected_improvements(candidates[:, None], front[:0], reference_point)
    np.testing.assert_allclose(alone, [hypervolume(row[None], reference_point) for row in candidates])


def test_goals_count_as_independent_in_what_is_expected() -> None:
    rng = np.random.default_rng(0)
    front, reference_point = np.array([[0.3, 0.7, 0.4], [0.7, 0.3, 0.6]]), np.ones(3)
    losses = 1.2 * rng.random((5, 4, 3))
    expected = np.zeros(5)
    for combination in itertools.product(range(4), repeat=3):
        drawn = losses[:, combination, range(3)]
        expected += expected_improvements(drawn[:, None], front, reference_point) / 4**3
    np.testing.assert_allclose(expected_improvements(losses, front, reference_point), expected)


def _many_goals(members: int, candidates: int, samples: int, goals: int = 6) -> tuple[FloatArray, FloatArray]:
    """Losses of candidates and a front, of goals that no member is best in, below 1."""
    rng = np.random.default_rng(0)
    directions = rng.random((members + candidates, goals))
    points = 1 - 0.9 * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    return points[members:, None] + 0.1 * rng.normal(size=(candidates, samples, goals)), points[:members]


@pytest.mark.parametrize("members", [0, 10])
def test_improvements_of_many_goals_are_estimated(members: int) -> None:
    losses, front = _many_goals(members, 12, 8)
    losses[3] = front[0] + 0.01 if members else 2.0
    losses[5, :, 2] += 2.0  # beyond the reference point in one goal: adds nothing
    below = [acquisition._Below(losses[:, :, goal]) for goal in range(6)]
    expected = acquisition._volume(below, front, np.ones(6))
    found = expected_improvements(losses, front, np.ones(6))
    np.testing.assert_allclose(found, expected, rtol=0.12, atol=1e-12)
    assert found[5] == 0
    np.testing.assert_array_equal(found, expected_improvements(losses, front, np.ones(6)))
    assert not expected_improvements(losses + 2.0, front, np.ones(6)).any()
    units = 10.0 ** np.arange(-6, 6, 2)
    np.testing.assert_allclose(expected_improvements(losses * units, front * units, units), found * units.prod())


def test_hardly_better_in_one_of_many_goals_is_estimated_as_well() -> None:
    """Without bounds by members that are better in all other goals, few points would lie in a thousandth."""
    front = _many_goals(10, 1, 1)[1]
    rows = front + np.where(np.arange(6) == 0, -1e-3, 1e-3)
    before = hypervolume(front, np.ones(6))
    expected = [hypervolume(np.vstack([front, row]), np.ones(6)) - before for row in rows]
    np.testing.assert_allclose(expected_improvements(rows[:, None], front, np.ones(6)), expected, rtol=0.02)


@pytest.mark.parametrize(("goals", "members"), [(6, 80), (4, 600)])
def test_many_goals_or_front_members_take_no_time(goals: int, members: int) -> None:
    """Exactly, a hundred times as long, and ten times."""
    losses, front = _many_goals(members, 16, 4, goals)
    reference_point, before = np.ones(goals), hypervolume(front, np.ones(goals))
    rows = losses.reshape(-1, goals)
    added = np.array([hypervolume(np.vstack([front, row]), reference_point) - before for row in rows]).reshape(16, 4)
    started = time.process_time()
    found = joint_improvements(losses, front, reference_point)
    chosen = choose(losses, np.ones((16, 4), dtype=np.bool_), front, reference_point, 5)
    assert time.process_time() - started < 20
    assert len(set(chosen)) == 5
    assert np.corrcoef(found, added.mean(axis=1))[0, 1] > 0.99
    np.testing.assert_allclose(found.sum(), added.mean(axis=1).sum(), rtol=0.05)


def test_joint_improvements_are_the_mean_of_what_samples_add() -> None:
    rng = np.random.default_rng(0)
    front, reference_point = np.array([[0.3, 0.7, 0.4], [0.7, 0.3, 0.6]]), np.ones(3)
    losses = 1.2 * rng.random((4, 5, 3))
    losses[0, 0] = np.inf  # an infeasible sample
    before = hypervolume(front, reference_point)
    expected = [[hypervolume(np.vstack([front, row]), reference_point) - before for row in rows] for rows in losses]
    np.testing.assert_allclose(joint_improvements(losses, front, reference_point), np.mean(expected, axis=1), atol=1e-9)


def test_goals_that_are_good_together_are_chosen_where_samples_are_joint() -> None:
    """Both have the same marginal distributions."""
    together = np.array([[0.2, 0.2], [0.8, 0.8]] * 4)
    samples = np.stack([np.stack([together[:, 0], together[::-1, 1]], axis=1), together])
    feasible = np.ones((2, 8), dtype=np.bool_)
    front, reference_point = np.array([[0.5, 0.5]]), np.ones(2)
    assert choose(samples, feasible, front, reference_point, 1) == [0]  # alike: the first
    assert choose(samples, feasible, front, reference_point, 1, joint=True) == [1]


def test_a_batch_is_chosen_as_if_each_had_turned_out_as_its_median() -> None:
    rng = np.random.default_rng(0)
    front, reference_point = np.array([[0.5, 0.7], [0.7, 0.5]]), np.ones(2)
    shared, own = rng.normal(size=(2, 300)), rng.normal(size=(300, 2))
    centre, spread = np.array([0.5, 0.5]), 0.1
    samples = np.stack([centre + spread * shared.T, centre + spread * shared.T + 1e-3, centre + 0.02 + spread * own])
    feasible = np.ones((3, 300), dtype=np.bool_)
    gains = expected_improvements(samples, front, reference_point)
    assert gains[0] > gains[1] > gains[2] > 0
    assert choose(samples, feasible, front, reference_point, 2) == [0, 2]  # the first tells all about the second
    supposed = np.vstack([front, np.median(samples[0], axis=0)])
    left = expected_improvements(samples, supposed[pareto_mask(supposed)], reference_point)
    assert left[1] > left[2]  # which the front alone does not say


def test_what_is_hardly_feasible_is_chosen_late_and_keeps_nothing_out() -> None:
    samples = np.array([[[0.1, 0.1]] * 4, [[0.4, 0.4]] * 4, [[0.8, 0.3]] * 4])
    feasible = np.array([[True, False, False, False], [True] * 4, [True] * 4])
    assert choose(samples, feasible, np.empty((0, 2)), np.ones(2), 3) == [1, 0, 2]
    twins = samples[[0, 0]]
    for share, chosen in (([True] * 2, [0]), ([True, False], [0]), ([True, False, False, False], [0, 1])):
        rows = np.resize(share, (2, 4))
        assert choose(twins, rows, np.empty((0, 2)), np.ones(2), 2) == chosen


def test_what_one_turned_out_as_tells_about_others_by_regression() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(3, 40, 2))
    samples[1] += 2 * samples[0]
    samples = 5 + samples * [1, 1000]
    result = np.array([5.5, 4000.0])
    told = acquisition._given(samples, 0, result)
    np.testing.assert_allclose(told[0], np.tile(result, (40, 1)))
    for row, goal in itertools.product((1, 2), (0, 1)):
        slope, _ = np.polyfit(samples[0, :, goal], samples[row, :, goal], 1)
        np.testing.assert_allclose(
            told[row, :, goal], samples[row, :, goal] + slope * (result[goal] - samples[0, :, goal])
        )


def test_what_a_twin_turned_out_as_tells_nothing_more() -> None:
    samples = np.random.default_rng(0).normal(size=(6, 8, 2)) * [1, 1000] + [5, 3000]
    samples[1] = samples[0]
    told = acquisition._given(samples, 0, np.median(samples[0], axis=0))
    np.testing.assert_allclose(acquisition._given(told, 1, np.median(told[1], axis=0)), told)


def test_twins_are_not_chosen_together_and_nothing_is_chosen_for_nothing() -> None:
    samples = np.array([[[0.2, 0.2]], [[0.2, 0.2]], [[0.1, 0.5]], [[0.9, 0.9]], [[2.0, 0.0]]])
    feasible = np.ones((5, 1), dtype=np.bool_)
    assert choose(samples, feasible, np.array([[0.8, 0.8]]), np.ones(2), 5) == [0, 2]
    assert choose(samples, ~feasible, np.empty((0, 2)), np.ones(2), 5) == []
    assert choose(samples[:0], feasible[:0], np.empty((0, 2)), np.ones(2), 5) == []
    assert choose(samples, feasible, np.empty((0, 2)), np.ones(2), 1) == [0]


def test_one_goal() -> None:
    samples = np.array([[[3.0]], [[1.0]], [[2.0]]])
    feasible = np.ones((3, 1), dtype=np.bool_)
    assert expected_improvements(samples, np.array([[2.5]]), np.array([4.0])) == pytest.approx([0, 1.5, 0.5])
    assert choose(samples, feasible, np.array([[2.5]]), np.array([4.0]), 3) == [1]
