"""Evaluators: a table's labels, a user's function, measurements."""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from converters import Latency
from nasrlm.arrays import FloatArray
from nasrlm.named_function import named_function
from spaces import get_space
from studies.evaluators import FunctionEvaluator, MeasuringEvaluator, TableEvaluator
from studies.surrogates.medians_only import MediansOnly
from tests.studies.scenes import OBJECTIVES, SPACE, Row, ToyPredictor, ToySpace, toy_results, toy_table, true_values


def test_table_answers_unlisted_twins_with_the_simplest_row_and_strangers_with_nan() -> None:
    table = pd.DataFrame(
        {
            "architecture": ["0-1-2-0", "2-1-0-0", "1-1-0-3", "9-9"],
            "space": ["toy", "toy", "toy", "another"],
            "accuracy@toy": [50.0, 60.0, np.nan, 1.0],
            "latency_ms@toy": [1.0, np.nan, 3.0, 1.0],
        }
    )
    evaluator = TableEvaluator(SPACE, table, objectives=("latency_ms@toy", "accuracy@toy"))
    answer = evaluator.evaluate([Row((1, 0, 2, 0)), Row((0, 1, 1, 3)), Row((4, 4, 0, 0))])
    np.testing.assert_array_equal(answer.median, [[1.0, 50.0], [3.0, np.nan], [np.nan, np.nan]])
    np.testing.assert_array_equal(answer.low, answer.high)
    assert evaluator.evaluate([]).values.shape == (0, 2, 1)
    assert len(evaluator.keys) == 2
    assert evaluator.known == [Row((0, 1, 2, 0)), Row((2, 1, 0, 0))]
    assert evaluator.modelled == ()


def test_rows_of_a_table_have_the_labels_that_it_is_asked_for() -> None:
    notations = ["0-1-2-0", "2-1-0-0", "0-1-2-0", None]
    accuracies, latencies = [90.0, 50.0, 80.0, 99.0], [np.nan, 1.0, 9.0, 0.0]
    table = pd.DataFrame({"architecture": notations, "accuracy@toy": accuracies, "latency_ms@toy": latencies})
    evaluator = TableEvaluator(SPACE, table, objectives=OBJECTIVES[:2])
    np.testing.assert_array_equal(evaluator.row_labels, [[90.0, 9.0], [50.0, 1.0], [90.0, 9.0]])
    assert evaluator.num_overruled == 1
    np.testing.assert_array_equal(evaluator.evaluate([Row((0, 1, 2, 0))]).median, [[90.0, 9.0]])


def test_notations_of_a_table_may_be_lists() -> None:
    space = get_space("mnasnet")
    architecture = space.decode((0,) * len(space.gene_sizes))
    rows = [json.loads(space.format(architecture))]
    assert isinstance(rows[0], list | dict)
    table = pd.DataFrame({"architecture": rows, "accuracy@toy": [90.0]})
    assert TableEvaluator(space, table, objectives=("accuracy@toy",)).evaluate([architecture]).median == 90.0


def test_table_errors_name_the_place() -> None:
    table = toy_table()
    with pytest.raises(ValueError, match=r"^labels\.csv: expected .* got no latency_ms@moon\. It has accuracy@toy"):
        TableEvaluator(SPACE, table, objectives=("accuracy@toy", "latency_ms@moon"), name="labels.csv")
    with pytest.raises(ValueError, match=r"^labels\.csv: expected architectures of space toy, got none in 480 rows"):
        TableEvaluator(SPACE, table.assign(space="else"), objectives=OBJECTIVES, name="labels.csv")
    table.loc[7, "architecture"] = "what"
    with pytest.raises(ValueError, match=r"table, row 7: toy: expected digits, got 'what'"):
        TableEvaluator(SPACE, table, objectives=OBJECTIVES)
    rows = table.assign(architecture=list(SPACE.enumerate()))
    with pytest.raises(ValueError, match=r"table, row 0: notation: expected a string or list, got Row\(.*`format`\."):
        TableEvaluator(SPACE, rows, objectives=OBJECTIVES)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (-1.0, "got -1 in row 7"),
        (math.inf, "got inf in row 7"),
        (1e31, r"got 1e\+31 in row 7"),
        ("failed", "got 'failed' in"),
    ],
)
def test_labels_that_cannot_be_are_refused_in_memory_as_in_files(label: object, expected: str) -> None:
    table = toy_table().astype({"latency_ms@toy": object})
    table.loc[7, "latency_ms@toy"] = label
    with pytest.raises(ValueError, match=f"^labels: expected .* in column latency_ms@toy, {expected}"):
        TableEvaluator(SPACE, table, objectives=OBJECTIVES, name="labels")


def test_a_function_answers_the_notation() -> None:
    evaluator = FunctionEvaluator(SPACE, toy_results, objectives=OBJECTIVES[1:])
    answer = evaluator.evaluate([Row((0, 1, 2, 3)), Row((4, 4, 0, 1))])
    np.testing.assert_array_equal(
        answer.median, [true_values(Row((0, 1, 2, 3)))[1:], true_values(Row((4, 4, 0, 1)))[1:]]
    )
    assert evaluator.evaluate([]).values.shape == (0, 2, 1)
    assert (evaluator.known, evaluator.modelled) == (None, ())
    failed = FunctionEvaluator(SPACE, lambda notation: {"accuracy@toy": float("nan")}, objectives=OBJECTIVES[:1])
    assert np.isnan(failed.evaluate([Row((0, 1, 2, 3))]).values).all()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"accuracy@toy": 93, "latency_ms@toy": -1}, "numbers of 0 or more for latency_ms@toy, got -1"),
        ({"accuracy@toy": 930, "latency_ms@toy": 1}, "percent, 0 to 100, for accuracy@toy, got 930"),
    ],
)
def test_what_a_metric_cannot_be_is_no_result(answer: dict[str, float], message: str) -> None:
    evaluator = FunctionEvaluator(SPACE, lambda notation: answer, objectives=OBJECTIVES[:2])
    with pytest.raises(ValueError, match=f"^evaluator: expected {message} for 0-1-2-3. Return NaN where there is no"):
        evaluator.evaluate([Row((0, 1, 2, 3))])


def test_an_accuracy_that_looks_like_a_fraction_is_told_once() -> None:
    def results(notation: str) -> dict[str, float]:
        return {"accuracy@toy": 0.93, "latency_ms@toy": 0.5}

    evaluator = FunctionEvaluator(SPACE, results, objectives=OBJECTIVES[:2])
    with pytest.warns(UserWarning, match=r"in percent, 0 to 100, got 0\.93 for accuracy@toy of 0-1-2-3\. .* 93\.$"):
        evaluator.evaluate([Row((0, 1, 2, 3))])
    assert evaluator.evaluate([Row((4, 4, 0, 1))]).median.tolist() == [[0.93, 0.5]]  # any further warning is an error


@pytest.mark.parametrize("value", [90, np.float32(90), np.array([90.0]), torch.tensor([90.0], requires_grad=True)])
def test_numbers_of_any_library_are_results(value: float) -> None:
    evaluator = FunctionEvaluator(SPACE, lambda notation: {"accuracy@toy": value}, objectives=OBJECTIVES[:1])
    assert evaluator.evaluate([Row((0, 1, 2, 3))]).median.tolist() == [[90.0]]


@pytest.mark.parametrize("value", [np.ma.masked, np.ma.array([90.0], mask=[True]), np.ma.mean(np.ma.masked_all(2))])
def test_a_masked_value_is_no_result(value: float) -> None:
    evaluator = FunctionEvaluator(SPACE, lambda notation: {"accuracy@toy": value}, objectives=OBJECTIVES[:1])
    assert np.isnan(evaluator.evaluate([Row((0, 1, 2, 3))]).median).all()


@pytest.mark.parametrize(
    "answer",
    [
        {"accuracy@toy": "high"},
        {"accuracy@toy": float("inf")},
        {"accuracy@toy": 10**400},
        {"accuracy@toy": -1.1e30},
        {"accuracy@toy": True},
        {"accuracy@toy": "7"},
        {"accuracy@toy": np.array(["7"])},
        {"accuracy@toy": torch.tensor(True)},
        {"accuracy@toy": torch.zeros(2)},
        {"accuracy@toy": [90.0] * 5000},
        np.zeros(1),
        None,
        3.0,
    ],
)
def test_a_function_that_answers_something_else_is_named(answer: object) -> None:
    evaluator = FunctionEvaluator(SPACE, lambda notation: answer, objectives=OBJECTIVES[:1])  # type: ignore[arg-type, return-value]
    with pytest.raises(
        ValueError, match=r"expected a dict with a finite number, or NaN, for each of accuracy@toy, got .* for 0-1-2-3"
    ) as caught:
        evaluator.evaluate([Row((0, 1, 2, 3))])
    assert len(str(caught.value)) < 400


def test_objectives_that_a_function_does_not_answer_are_named() -> None:
    evaluator = FunctionEvaluator(SPACE, lambda notation: {OBJECTIVES[0]: 90.0}, objectives=OBJECTIVES)
    with pytest.raises(ValueError, match=f"got none for {OBJECTIVES[1]}, .* of 0-1-2-3: "):
        evaluator.evaluate([Row((0, 1, 2, 3))])


def test_functions_are_loaded_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_users_bench.py").write_text("def train(notation):\n    return {'a': 1.0}\n\nseven = 7\n")
    (tmp_path / "a_users_broken_bench.py").write_text("import a_module_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert named_function("a_users_bench:train", "evaluator")("0-1-2-3") == {"a": 1.0}
    with pytest.raises(ValueError, match="evaluator no_such_bench:train: expected a module no_such_bench, got none"):
        named_function("no_such_bench:train", "evaluator")
    with pytest.raises(ValueError, match=r"expected a module a_users_bench\.more, got none"):
        named_function("a_users_bench.more:f", "evaluator")
    for name, got in (("test", "None"), ("seven", "7")):
        with pytest.raises(ValueError, match=rf"expected a function {name} in .*a_users_bench\.py, got {got}"):
            named_function(f"a_users_bench:{name}", "evaluator")
    with pytest.raises(ValueError, match="expected a function train in time, got None"):
        named_function("time:train", "evaluator")  # a module without a file
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        named_function("a_users_broken_bench:train", "evaluator")
    del sys.modules["a_users_bench"]


def test_latencies_are_measured_and_the_rest_is_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[tuple[list[str], int]] = []

    def measure(texts: Sequence[str], *, repeats: int) -> list[Latency]:
        measured.append((list(texts), repeats))
        return [Latency(median_ms=2.0 + index, iqr_ms=(1, 3), repeats=repeats) for index in range(len(texts))]

    monkeypatch.setattr("studies.evaluators.measure_latencies", measure)
    predictor = ToyPredictor(objectives=OBJECTIVES[:1])
    objectives = ("latency_ms@here", "accuracy@toy", "latency_us@here")
    evaluator = MeasuringEvaluator(SPACE, objectives=objectives, predictor=predictor, to_text=SPACE.format, repeats=7)
    answer = evaluator.evaluate([Row((0, 1, 2, 3)), Row((4, 4, 0, 1))])
    assert measured == [(["0-1-2-3", "4-4-0-1"], 7)]
    accuracies = predictor.predict(["0-1-2-3", "4-4-0-1"], OBJECTIVES[:1], (0.5,)).median[:, 0]
    np.testing.assert_allclose(answer.median.T, [[2.0, 3.0], accuracies, [2000.0, 3000.0]])
    assert (evaluator.known, evaluator.modelled) == (None, ("accuracy@toy",))
    alone = MeasuringEvaluator(SPACE, objectives=["latency_ms@here"], predictor=predictor, to_text=SPACE.format)
    assert alone.evaluate([Row((0, 1, 2, 3))]).values.tolist() == [[[2.0]]]
    for wrong in (["accuracy@toy"], ["latency_ms@here", "energy_mj@moon"]):
        with pytest.raises(ValueError, match=rf"evaluator measure: expected a latency, .* got {wrong[-1]}"):
            MeasuringEvaluator(SPACE, objectives=wrong, predictor=predictor, to_text=SPACE.format)


def test_counts_are_counted_and_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    space = get_space("nasbench201")
    monkeypatch.setattr(
        "studies.evaluators.measure_latencies", lambda texts, repeats: [Latency(1.0, iqr_ms=(1, 1), repeats=1)]
    )
    objectives = ("params@onnx", "latency_ms@here", "live_macs@onnx")
    evaluator = MeasuringEvaluator(space, objectives=objectives, predictor=ToyPredictor(), to_text=str)
    answer = evaluator.evaluate([space.decode((3, 0, 0, 0, 0, 0))])  # nothing reaches the output
    assert answer.values.tolist() == [[[316346.0], [1.0], [640.0]]]
    assert evaluator.modelled == ()


def test_counts_that_a_table_lacks_are_counted() -> None:
    space = get_space("nasbench201")
    architectures = [space.decode((3, 0, 0, 0, 0, 0)), space.decode((0, 0, 0, 0, 0, 1))]
    table = pd.DataFrame({"architecture": map(space.format, architectures), "accuracy@toy": [10.0, 90.0]})
    evaluator = TableEvaluator(space, table, objectives=("params@onnx", "accuracy@toy"))
    assert evaluator.evaluate(architectures[:1]).median.tolist() == [[316346.0, 10.0]]
    assert "params@onnx" not in table


def test_certain_answers_have_no_spread() -> None:
    texts, levels = ["0-1-2-3", "4-4-0-1"], (0.1, 0.5, 0.9)
    predictor = ToyPredictor()
    certain = MediansOnly(predictor, ["latency_ms@toy"])
    given = predictor.predict(texts, OBJECTIVES, levels)
    answer = certain.predict(texts, OBJECTIVES, levels)
    np.testing.assert_array_equal(answer.values[:, [0, 2]], given.values[:, [0, 2]])
    np.testing.assert_array_equal(answer.values[:, 1], np.repeat(given.median[:, [1]], 3, axis=1))
    samples: FloatArray = certain.sample(texts, OBJECTIVES, 4, 0)
    np.testing.assert_array_equal(samples[:, [0, 2]], predictor.sample(texts, OBJECTIVES, 4, 0)[:, [0, 2]])
    np.testing.assert_array_equal(samples[:, 1], np.repeat(given.median[:, [1]], 4, axis=1))
    assert certain.sample(texts, OBJECTIVES[:1], 4, 0).shape == (2, 1, 4)
    assert certain.objectives == OBJECTIVES


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"table": "table.parquet"}, r"table: expected a DataFrame, got str\."),
        ({"objectives": "params"}, r"objectives: expected a list of names, got 'params'\. Put it in a list\."),
        ({"objectives": []}, r"table: expected one or more objectives, got none\."),
        ({"space": None}, r"space: expected a name, or path/to/file\.py:ClassName, got None\."),
    ],
)
def test_arguments_of_other_kinds_are_no_table(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TableEvaluator(**{"space": ToySpace(), "table": toy_table(), "objectives": OBJECTIVES, **given})


def test_the_space_of_a_table_may_be_named() -> None:
    table = pd.DataFrame({"architecture": [get_space("nasbench201").format(get_space("nasbench201").decode((0,) * 6))]})
    named = TableEvaluator("nasbench201", table.assign(params=1.0), objectives=["params"])  # type: ignore[var-annotated]
    assert named.space.name == "nasbench201"
