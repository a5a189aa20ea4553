"""Objectives, goals and losses."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasrlm.deviations import deviation_of
from nasrlm.objective import Goal, Objective, from_losses, to_losses
from nasrlm.prediction import Prediction, columns_of


@pytest.mark.parametrize(
    ("name", "metric", "unit", "context", "label"),
    [
        ("latency_ms@raspi4", "latency", "ms", "raspi4", "latency raspi4 [ms]"),
        ("latency_ms@1080ti_32", "latency", "ms", "1080ti_32", "latency 1080ti_32 [ms]"),
        ("energy_mj@edgegpu", "energy", "mj", "edgegpu", "energy edgegpu [mJ]"),
        ("accuracy@imagenet16-120", "accuracy", "percent", "imagenet16-120", "accuracy imagenet16-120 [%]"),
        ("valid_accuracy_12ep@cifar10", "valid_accuracy_12ep", "percent", "cifar10", "valid accuracy 12ep cifar10 [%]"),
        ("throughput_ips@tpuv2", "throughput", "ips", "tpuv2", "throughput tpuv2 [images/s]"),
        ("train_time_s@tpuv2", "train_time", "s", "tpuv2", "train time tpuv2 [s]"),
        ("error_percent@cifar10", "error", "percent", "cifar10", "error cifar10 [%]"),
        ("params", "params", "", "", "params"),
        ("ms@x", "ms", "", "x", "ms x"),
    ],
)
def test_objective_names_are_read(name: str, metric: str, unit: str, context: str, label: str) -> None:
    objective = Objective.parse(name)
    assert objective == Objective(metric, unit, context, name)
    assert objective.label == label


@pytest.mark.parametrize("name", ["", "@cifar10", "accuracy@", "a@b@c", "accuracy cifar10", "latency__ms@x", "2x@y"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"objective: expected metric_unit@context, got "):
        Objective.parse(name)


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("valid_accuracy@x", (0, 100)),
        ("Accuracy@x", (0, 100)),
        ("acc@x", (0, 100)),
        ("latency_ms@x", (0, np.inf)),
        ("Latency@x", (0, np.inf)),
        ("peak_throughput@x", (0, np.inf)),
        ("inference_ms@x", (0, np.inf)),
        ("change_percent@x", (-np.inf, np.inf)),
        ("gain@x", (-np.inf, np.inf)),
    ],
)
def test_some_metrics_have_bounds(name: str, bounds: tuple[float, float]) -> None:
    assert Objective.parse(name).bounds == bounds


def test_what_lies_beyond_the_bounds_is_not_allowed_and_no_value_is() -> None:
    accuracy, latency = Objective.parse("accuracy@cifar10"), Objective.parse("latency_ms@raspi4")
    assert accuracy.allows([-0.1, 0.0, 100.0, 100.1, np.nan]).tolist() == [False, True, True, False, True]
    assert latency.allows([-1.0, 0.0, np.inf]).tolist() == [False, True, True]
    assert not latency.allows(-1.0)
    assert latency.allows(3.0)


@pytest.mark.parametrize(("value", "seems"), [(0.0, False), (0.94, True), (1.0, False), (94.0, False)])
def test_an_accuracy_below_one_seems_to_be_a_fraction(value: float, seems: bool) -> None:
    assert Objective.parse("accuracy@cifar10").seems_fraction(value) == seems
    assert not Objective.parse("latency_ms@raspi4").seems_fraction(value)


@pytest.mark.parametrize(
    ("name", "better", "worse"),
    [
        ("valid_accuracy@x", "max", "min"),
        ("throughput_ips@x", "max", "min"),
        ("latency_ms@x", "min", "max"),
        ("error_percent@x", "min", "max"),
        ("params", "min", "max"),
    ],
)
def test_a_goal_that_is_the_worst_value_is_doubted(name: str, better: str, worse: str) -> None:
    assert Goal.parse(f"{better}:{name}").doubt == ""
    sought = "largest" if worse == "max" else "smallest"
    assert Goal.parse(f"{worse}:{name}").doubt.startswith(f"{worse}:{name}: looks for the {sought} values")


def test_no_goal_is_doubted_where_it_is_not_known_what_is_better() -> None:
    assert Goal.parse("max:gain@x").doubt == Goal.parse("min:gain@x").doubt == ""


@pytest.mark.parametrize(
    ("name", "grows"),
    [
        ("latency@x", True),
        ("inference_ms@x", True),
        ("macs@onnx", True),
        ("power_w@x", True),
        ("throughput_ips@x", False),
        ("frames_ips@x", None),
        ("error_percent@x", None),
        ("accuracy@x", None),
        ("gain@x", None),
    ],
)
def test_costs_grow_with_the_size_of_networks(name: str, grows: bool | None) -> None:
    assert Objective.parse(name).grows_with_size is grows


@pytest.mark.parametrize("text", ["max:accuracy@cifar10", "min:latency_ms@pixel3"])
def test_goals_keep_their_spelling(text: str) -> None:
    goal = Goal.parse(text)
    assert str(goal) == text
    assert goal.maximise == text.startswith("max")


@pytest.mark.parametrize(
    "text", ["accuracy@cifar10", "maximise:accuracy@cifar10", ":a@b", "max accuracy@cifar10", None, 3]
)
def test_goals_need_a_direction(text: Any) -> None:
    with pytest.raises(ValueError, match="goal: expected max:objective or min:objective"):
        Goal.parse(text)


@given(st.lists(st.tuples(*[st.floats(allow_nan=True, allow_infinity=False)] * 2), max_size=5))
def test_losses_invert_and_keep_nan(rows: list[tuple[float, float]]) -> None:
    goals = (Goal(True, "accuracy@a"), Goal(False, "latency_ms@b"))
    objectives = np.array(rows, dtype=np.float64).reshape(-1, 2)
    losses = to_losses(goals, objectives)
    np.testing.assert_array_equal(losses, objectives * [-1, 1])
    np.testing.assert_array_equal(from_losses(goals, losses), objectives)


def test_a_maximised_zero_has_no_sign() -> None:
    assert not np.signbit(to_losses([Goal(True, "accuracy@a")], np.zeros((1, 1)))).any()


@pytest.mark.parametrize(
    ("maximise", "name", "message"),
    [
        ("min", "params", "goal: expected maximise to be True or False, got 'min'."),
        (None, "params", "goal: expected maximise to be True or False, got None."),
        (True, "latency [ms]", "objective: expected metric_unit@context, got 'latency [ms]'."),
        (True, None, "objective: expected metric_unit@context, got None."),
    ],
)
def test_a_goal_made_without_parsing_is_checked(maximise: Any, name: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Goal(maximise, name)


def test_losses_need_a_column_for_each_goal() -> None:
    with pytest.raises(ValueError, match=r"losses: expected \(N, 1\) values.*got shape \(3, 2\).*max:accuracy@a"):
        to_losses([Goal(True, "accuracy@a")], np.zeros((3, 2)))


def test_predictions_name_their_quantiles() -> None:
    values = np.arange(12.0).reshape(2, 2, 3)
    prediction = Prediction(("accuracy@a", "latency_ms@b"), (0.1, 0.5, 0.9), values)
    assert len(prediction) == 2
    assert prediction.low.tolist() == [[0, 3], [6, 9]]
    assert prediction.median.tolist() == [[1, 4], [7, 10]]
    assert prediction.high.tolist() == [[2, 5], [8, 11]]
    assert prediction.interval == 0.8
    assert Prediction(("a",), (0.5,), np.zeros((0, 1, 1))).interval is None


def test_levels_are_spelled_as_people_read_them_and_apart() -> None:
    assert columns_of(["a"], np.linspace(0.1, 0.9, 9).tolist()) == [
        *("a.q0.1", "a.q0.2", "a.q0.3", "a.q0.4", "a", "a.q0.6", "a.q0.7", "a.q0.8", "a.q0.9")
    ]
    assert columns_of(["a", "b"], [0.001, 1 / 3]) == ["a.q0.001", "a.q0.333333333333", "b.q0.001", "b.q0.333333333333"]
    assert columns_of(["a"], [0.3, 0.1 + 0.2]) == ["a.q0.3", "a.q0.30000000000000004"]


def test_a_median_must_have_been_asked_for() -> None:
    with pytest.raises(ValueError, match=r"expected 0.5 among the quantiles, got \(0.1, 0.9\)"):
        _ = Prediction(("a",), (0.1, 0.9), np.zeros((1, 1, 2))).median


@pytest.mark.parametrize("quantiles", [(), (0.5, 0.1), (0.5, 0.5), (0.0, 0.5), (0.5, 1.0)])
def test_quantiles_ascend(quantiles: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="expected quantiles ascending"):
        Prediction(("a",), quantiles, np.zeros((1, 1, len(quantiles))))


def test_values_have_three_axes() -> None:
    with pytest.raises(ValueError, match=r"expected values of shape \(N, 1, 1\), got \(2, 1\)"):
        Prediction(("a",), (0.5,), np.zeros((2, 1)))


@pytest.mark.parametrize("value", [0.0, 5.3, -0.1, 1e12])
def test_equal_labels_have_no_deviation_of_their_own(value: float) -> None:
    assert deviation_of(np.full(7, value)) == 1.0
    assert deviation_of(np.full(7, value), of_equal=2.0) == 2.0
    assert deviation_of(np.array([value - 1e6, value + 1e6])) == 1e6
    assert deviation_of(np.array([0.0, 1e-9])) == 5e-10


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_labels_are_equal_in_every_unit_or_in_none(unit: float) -> None:
    assert deviation_of(np.log(unit * np.array([1.0, 1.0 + 1e-8])), logarithmic=True) == 1.0
    assert deviation_of(np.log(unit * np.array([1.0, 1.0 + 1e-6])), logarithmic=True) == pytest.approx(5e-7, rel=1e-3)


def test_a_prediction_may_be_made_of_lists() -> None:
    made = Prediction(["a@b"], [0.1, 0.5, 0.9], [[[1, 2, 3]], [[4, None, 6]]])  # type: ignore[arg-type]
    assert (made.objectives, made.quantiles) == (("a@b",), (0.1, 0.5, 0.9))
    np.testing.assert_array_equal(made.median, [[2.0], [np.nan]])


@pytest.mark.parametrize(
    ("objectives", "values", "message"),
    [
        ("a", [[[1.0]]], r"objectives: expected a list of names, got 'a'\. Put it in a list\."),
        (["a"], [[["fast"]]], r"prediction: expected numbers as values, got \[\[\['fast'\]\]\]\."),
        (["a"], None, r"prediction: expected values of shape \(N, 1, 1\), got \(\)\."),
        (["a"], [1.0], r"prediction: expected values of shape \(N, 1, 1\), got \(1,\)\."),
    ],
)
def test_what_is_no_prediction_is_refused(objectives: Any, values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Prediction(objectives, (0.5,), values)
