"""Hypervolume improvements, and batches chosen by them, against their definitions."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nasrlm.objective import FloatArray
from studies.acquisition import choose, improvements
from studies.pareto import hypervolume, pareto_mask

few_values = st.integers(0, 4).map(float)


@given(st.integers(1, 3).flatmap(lambda goals: arrays(np.float64, (8, goals), elements=few_values)))
def test_an_improvement_is_the_hypervolume_that_a_row_adds(losses: FloatArray) -> None:
    front, candidates = losses[:4][pareto_mask(losses[:4])], losses[4:]
    reference_point = np.full(losses.shape[1], 3.5)
    before = hypervolume(front, reference_point)
    expected = [hypervolume(np.vstack([front, row]), reference_point) - before for row in candidates]
    np.testing.assert_allclose(improvements(candidates, front, reference_point), expected, atol=1e-9)
    alone = improvements(candidates, front[:0], reference_point)
    np.testing.assert_allclose(alone, [hypervolume(row[None], reference_point) for row in candidates])


def test_a_batch_is_chosen_greedily_by_what_is_added_in_the_mean() -> None:
    rng = np.random.default_rng(0)
    front, reference_point = np.array([[0.3, 0.7], [0.7, 0.3]]), np.ones(2)
    samples = rng.random((9, 6, 2))
    feasible = rng.random((9, 6)) < 0.8

    def expected_volume(rows: tuple[int, ...]) -> float:
        volumes = []
        for s in range(6):
            taken = [samples[row, s] for row in rows if feasible[row, s]]
            volumes.append(hypervolume(np.vstack([front, *taken]), reference_point))
        return float(np.mean(volumes))

    chosen: tuple[int, ...] = ()
    for _ in range(4):
        rest = [row for row in range(9) if row not in chosen]
        chosen = (*chosen, max(rest, key=lambda row: expected_volume((*chosen, row))))
    assert choose(samples, feasible, front, reference_point, 4) == list(chosen)
    best = max(expected_volume(rows) for rows in itertools.combinations(range(9), 4))
    assert expected_volume(chosen) >= 0.95 * best


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
    assert improvements(samples[:, 0], np.array([[2.5]]), np.array([4.0])) == pytest.approx([0, 1.5, 0.5])
    assert choose(samples, feasible, np.array([[2.5]]), np.array([4.0]), 3) == [1]
