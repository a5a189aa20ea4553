"""Labels onto the scale on which they are learned, and back."""

import numpy as np
import pytest

from studies.surrogates.scale import LearningScale, Scale


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("accuracy@toy", [0.5, 94.0, 100.0], "error"),
        ("accuracy@toy", [10.0, 100.5], "log"),
        ("accuracy@toy", [0.0, 94.0], "linear"),
        ("latency_ms@toy", [0.1, 20.0], "log"),
        ("latency_ms@toy", [0.0, 20.0], "linear"),
        ("latency_ms@toy", [-1.0, 20.0], "linear"),
    ],
)
def test_scales_increase_and_come_back(name: str, values: list[float], kind: str) -> None:
    scale = Scale.of(name, np.array(values))
    assert scale.kind == kind
    assert (np.diff(scale.forward(np.array(values))) > 0).all()
    np.testing.assert_allclose(scale.backward(scale.forward(np.array(values))), values)


@pytest.mark.parametrize("floor", [-np.inf, 8.0])
def test_an_accuracy_is_none_below_0_or_above_100_percent(floor: float) -> None:
    scale, accuracies = Scale("error", floor), np.array([9.0, 10.0, 94.0, 100.0])
    np.testing.assert_allclose(scale.backward(scale.forward(accuracies)), accuracies)
    np.testing.assert_allclose(scale.backward(np.array([-10.0, 10.0])), [max(floor, 0.0), 100.0], atol=0.01)
    assert scale.forward(np.array([101.0])) == scale.forward(np.array([100.0]))
    assert np.isfinite(scale.forward(np.array([8.0]))).all()


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_costs_that_are_equal_up_to_rounding_have_no_deviation_of_their_own_in_any_unit(unit: float) -> None:
    costs = unit * np.array([1.0, 1.0 + 1e-8, 1.0 - 1e-8])
    assert LearningScale.of(Scale.of("latency_ms@toy", costs), costs).deviation == 1.0
