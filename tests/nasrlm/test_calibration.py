"""Calibrated levels cover what they say."""

import math
import warnings

import numpy as np
import pytest

from nasrlm.arrays import FloatArray
from nasrlm.calibration import LEVELS, MIN_TEXTS, calibrated_levels, fit_calibration, read_calibration


def overconfident(rows: int, seed: int) -> FloatArray:
    """(rows,) scores that gather at the ends: half of the labels lie outside of the model's own 80 %."""
    return np.random.default_rng(seed).beta(0.4, 0.6, size=rows)


@pytest.mark.parametrize("interval", [(0.1, 0.9), (0.25, 0.75), (0.02, 0.98)])
def test_intervals_of_a_miscalibrated_model_cover_new_labels(interval: tuple[float, float]) -> None:
    calibration = fit_calibration({"a@x": overconfident(2000, seed=0)})
    ((low, high),) = calibrated_levels(calibration, ["a@x"], interval)
    scores = overconfident(20_000, seed=1)
    assert np.mean((scores >= low) & (scores <= high)) == pytest.approx(interval[1] - interval[0], abs=0.03)
    assert np.mean((scores >= interval[0]) & (scores <= interval[1])) < 0.9 * (interval[1] - interval[0])


def test_a_calibrated_model_keeps_its_levels() -> None:
    uniform = (np.arange(999) + 0.5) / 999
    np.testing.assert_allclose(fit_calibration({"a@x": uniform})["a@x"], LEVELS, atol=2e-3)


def test_levels_are_scores_by_their_rank_the_farther_one_where_it_lies_between_two() -> None:
    scores = np.sort(overconfident(36, seed=0))
    expected = []
    for level in LEVELS.tolist():
        rank = math.floor(37 * level) if level < 0.5 else math.ceil(37 * level)
        if 1 <= rank <= 36:
            expected.append(scores[rank - 1])
        else:
            expected.append(min(level, scores[0]) if rank < 1 else max(level, scores[-1]))
    np.testing.assert_allclose(fit_calibration({"a@x": scores})["a@x"], expected, atol=1e-6)


@pytest.mark.parametrize("rows", [MIN_TEXTS, 30, 98])
def test_levels_that_few_rows_cannot_bound_stay_inside(rows: int) -> None:
    with warnings.catch_warnings(action="error"):
        levels = fit_calibration({"a@x": overconfident(rows, seed=0)})["a@x"]
    assert (np.diff(levels) >= 0).all()
    assert levels[0] <= 0.01
    assert levels[-1] >= 0.99
    assert 0 < levels[0] < levels[-1] < 1


def test_an_objective_with_few_labels_is_not_calibrated() -> None:
    few = np.full(50, np.nan)
    few[: MIN_TEXTS - 1] = 0.9
    calibration = fit_calibration({"few@x": few, "many@x": np.linspace(0.3, 0.6, 50)})
    assert list(calibration) == ["many@x"]
    levels = calibrated_levels(calibration, ["few@x", "many@x"], (0.1, 0.5, 0.9))
    np.testing.assert_allclose(levels, [[0.1, 0.5, 0.9], [0.33, 0.45, 0.57]], atol=0.02)


def test_many_labels_of_few_texts_are_not_enough() -> None:
    scores = np.linspace(0.3, 0.6, 50)
    repeated = [f"text {row % MIN_TEXTS}" for row in range(50)]
    assert fit_calibration({"a@x": scores}, {"a@x": repeated}) == fit_calibration({"a@x": scores})
    scores[::MIN_TEXTS] = np.nan  # one of the texts has no label
    assert fit_calibration({"a@x": scores}, {"a@x": repeated}) == {}


def test_levels_between_those_of_the_grid_are_interpolated() -> None:
    calibration = {"a@x": (LEVELS**2).tolist()}
    levels = calibrated_levels(calibration, ["a@x"], (0.005, 0.505, 0.999))
    np.testing.assert_allclose(levels, [[0.00005, (0.25 + 0.2601) / 2, 0.9801 + 0.9 * 0.0199]])


@pytest.mark.parametrize("levels", [[-0.1] * 99, [1.5] * 99, [0.5] * 98, [0.5] * 98 + ["1"], [0.5] * 98 + [0.4], None])
def test_what_are_no_levels_is_refused(levels: object) -> None:
    with pytest.raises(ValueError, match=r"calibration of a@x: expected 99 non-decreasing levels in \[0, 1\], got "):
        read_calibration({"b@x": [], "a@x": levels})


def test_levels_may_be_none_and_reach_the_ends() -> None:
    stored = {"a@x": [], "b@x": [0, *[0.5] * 97, 1]}
    assert read_calibration(stored) == stored
