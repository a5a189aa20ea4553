"""Metrics against their definitions in loops."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasrlm.arrays import FloatArray
from nasrlm.metrics import coverage, judged_tau, kendall_tau, quality, spearman_rho
from nasrlm.prediction import Prediction


def tau_in_loops(a: FloatArray, b: FloatArray) -> float:
    """Kendall's tau-b over all pairs."""
    agreeing, untied_a, untied_b = 0.0, 0, 0
    for i in range(len(a)):
        for j in range(i):
            agreeing += np.sign(a[i] - a[j]) * np.sign(b[i] - b[j])
            untied_a += a[i] != a[j]
            untied_b += b[i] != b[j]
    return agreeing / math.sqrt(untied_a * untied_b) if untied_a and untied_b else math.nan


def rho_in_loops(a: FloatArray, b: FloatArray) -> float:
    """Pearson's correlation of mid-ranks."""
    ranks = [[sum((y < x) + 0.5 * (y == x) for y in values) for x in values] for values in (a, b)]
    first, second = (np.array(r) - np.mean(r) for r in ranks)
    scale = math.sqrt((first**2).sum() * (second**2).sum())
    return float((first * second).sum()) / scale if scale else math.nan


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_rank_correlations_count_ties(pairs: list[tuple[int, int]]) -> None:
    a, b = 0.1 * np.array(pairs).T
    np.testing.assert_allclose(kendall_tau(a[:, None], b[:, None]), [tau_in_loops(a, b)], atol=1e-12)
    np.testing.assert_allclose(spearman_rho(a[:, None], b[:, None]), [rho_in_loops(a, b)], atol=1e-12)


def test_missing_labels_are_left_out_objective_by_objective() -> None:
    predicted = np.array([[1.0, 1], [2, 2], [3, 3], [4, 4]])
    measured = np.array([[10.0, np.nan], [np.nan, np.nan], [30, np.nan], [20, 7]])
    tau = kendall_tau(predicted, measured)
    assert tau[0] == pytest.approx(1 / 3)
    assert np.isnan(tau[1])


def test_vectors_have_one_number() -> None:
    a, b = np.array([1.0, 2.0, 3.0, np.nan]), np.array([1.0, 3.0, 2.0, 9.0])
    for correlation in (kendall_tau, spearman_rho):
        found = correlation(a, b)
        assert isinstance(found, float)
        assert [found] == correlation(a[:, None], b[:, None])
    assert math.isnan(kendall_tau(a[:1], b[:1]))
    with pytest.raises(
        ValueError,
        match=r"expected two \(N, M\) arrays, got \(\) and \(\)\. For a single objective, give two arrays of",
    ):
        kendall_tau(np.array(1.0), np.array(1.0))


def test_lists_and_columns_of_tables_are_ranked() -> None:
    column = pd.Series([1, None, 3, 2], index=[7, 7, 8, 9], dtype="Int64")
    frame = pd.DataFrame({"a@x": [1.0, 2.0, 3.0, 4.0]})
    for correlation in (kendall_tau, spearman_rho):
        expected = correlation(np.array([1.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0]))
        assert correlation([1, 2, 3, 4], column) == expected
        assert correlation(frame["a@x"], column.astype("category")) == expected
        assert correlation(frame, column.to_frame()).tolist() == [expected]
    with pytest.raises(ValueError, match=r"rank correlation: expected numbers, got \['a', 'b'\]"):
        kendall_tau([1.0, 2.0], ["a", "b"])


def test_shapes_must_match() -> None:
    with pytest.raises(ValueError, match=r"rank correlation: expected two \(N, M\) arrays, got \(3, 1\) and \(3,\)"):
        kendall_tau(np.zeros((3, 1)), np.zeros(3))


def test_quality_is_that_of_the_labels_that_are_there() -> None:
    medians = np.array([[1.0], [2.0], [3.0], [4.0]])
    prediction = Prediction(("a@x",), (0.1, 0.5, 0.9), np.stack([medians - 1, medians, medians + 1], axis=-1))
    measured = np.array([[2.0], [4.0], [np.nan], [3.0]])  # the first and last on the ends of their intervals
    (found,) = quality(prediction, measured).values()
    assert found == {
        "n": 3,
        "kendall_tau": pytest.approx(1 / 3),
        "spearman_rho": pytest.approx(0.5),
        "mae": pytest.approx((1 + 2 + 1) / 3),
        "coverage_80": pytest.approx(2 / 3),
    }


def test_coverage_is_of_the_labels_that_have_an_interval() -> None:
    low = np.array([[0.0, np.nan], [0.0, np.nan], [0.0, 0.0], [np.nan, 0.0]])
    measured = np.array([[0.5, 1.0], [2.0, 1.0], [1.0, np.nan], [0.5, np.nan]])
    np.testing.assert_array_equal(coverage(low, low + 1, measured), [2 / 3, np.nan])


def test_an_objective_with_one_label_has_no_quality() -> None:
    prediction = Prediction(("a@x",), (0.5,), np.zeros((2, 1, 1)))
    assert quality(prediction, np.array([[1.0], [np.nan]])) == {}
    assert list(quality(prediction, np.array([[1.0], [2.0]]))) == ["a@x"]


def test_equal_predictions_of_different_labels_rank_at_nothing() -> None:
    predicted = np.array([[1.0, 2.0, 3.0, 3.0], [1.0, 3.0, 3.0, 3.0], [9.0, 4.0, 3.0, 3.0]])
    labels = np.array([[5.0, 1.0, 1.0, 2.0], [6.0, 2.0, 2.0, 2.0], [np.nan, 3.0, 3.0, 2.0]])
    np.testing.assert_array_equal(judged_tau(predicted, labels), [0.0, 1.0, 0.0, np.nan])
