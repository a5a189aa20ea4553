"""Results in another unit than their objective's are told once, and nothing that a network or device may have."""

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nasrlm.objective import Objective
from studies.evaluators import FunctionEvaluator
from studies.ledger import Entry
from studies.surrogates.learning import LearningModel
from studies.surrogates.memory import TextMemory
from studies.surrogates.other_units import likely_unit
from tests.studies import optuna_scenes
from tests.studies.guided import guided_config, run
from tests.studies.optuna_scenes import make_gate, make_study, objective
from tests.studies.pymoo_scenes import SPACE_ROWS, Bench, make_gated
from tests.studies.scenes import SPACE, ToyPredictor, toy_results, true_values

LATENCY, ACCURACY = Objective.parse("latency_ms@a"), Objective.parse("accuracy@a")
GOALS = ["accuracy@toy", "latency_ms@toy"]
COSTS = np.array([4.0, 5.0, 7.0, 9.0, 12.0, 30.0])
ACCURACIES = np.array([94.0, 93.0, 92.0, 90.0, 70.0, 45.0])
OFF = np.array([1.0, 1.3, 0.8, 1.1, 0.6, 1.7])  # how far off predictions may be
IN_SECONDS = r"^results: expected latency_ms@toy in ms, got what seems to be s: their median is 0\.00"


@pytest.mark.parametrize(
    ("name", "factor", "unit"),
    [
        ("latency_ms@a", 1e-3, "s"),
        ("latency_ms@a", 1e3, "µs"),
        ("energy_mj@a", 1e-3, "J"),
        ("memory_mb@a", 1e6, "bytes"),
        ("error_percent@a", 0.01, "fractions"),
        ("params@onnx", 1e-6, "millions"),
        ("throughput_ips@a", 1e-3, "thousands of images/s"),
    ],
)
def test_units_are_told_by_their_factor(name: str, factor: float, unit: str) -> None:
    assert likely_unit(Objective.parse(name), COSTS, factor * OFF * COSTS) == unit


@pytest.mark.parametrize("times", [1 / 50, 1 / 3, 1.0, 3.0, 50.0])
def test_a_slower_device_is_no_other_unit(times: float) -> None:
    for name in ("latency_ms@a", "latency_s@a", "energy_mj@a", "memory_kb@a", "params@onnx", "throughput_ips@a"):
        assert likely_unit(Objective.parse(name), COSTS, times * OFF * COSTS) is None


def test_one_result_of_five_may_have_failed() -> None:
    seconds = COSTS / 1000
    assert likely_unit(LATENCY, COSTS, np.where(np.arange(6) == 2, 0.0, seconds)) == "s"
    assert likely_unit(LATENCY, COSTS, np.where(np.arange(6) < 2, COSTS, seconds)) is None


def test_errors_are_no_accuracies() -> None:
    real = ACCURACIES + np.array([0.5, -0.5, 0.3, -2.0, 5.0, -6.0])
    assert likely_unit(ACCURACY, ACCURACIES, 100 - real) == "errors in percent"
    assert likely_unit(ACCURACY, ACCURACIES, 1 - real / 100) == "errors as fractions"
    good, errors = np.array([93.8, 93.9, 94.0, 94.1, 93.7]), np.array([6.0, 6.4, 5.9, 6.3, 6.2])  # they rise a little
    assert 0 < np.corrcoef(good, errors)[0, 1] < 0.5
    assert likely_unit(ACCURACY, good, errors) == "errors in percent"
    assert likely_unit(ACCURACY, good, 0.94 + errors / 1000) is None  # fractions
    for other in (real, real / 100, real - 30, np.full(6, 10.0), ACCURACIES / 9):  # the last as of training that failed
        assert likely_unit(ACCURACY, ACCURACIES, other) is None


def test_a_guided_search_tells_of_seconds_once(tmp_path: Path, without_figures: None) -> None:
    def seconds(notation: str) -> dict[str, float]:
        return {name: value / 1000 if "_ms" in name else value for name, value in toy_results(notation).items()}

    config = guided_config()
    evaluator = FunctionEvaluator(SPACE, seconds, objectives=config.objectives)
    with pytest.warns(UserWarning, match=rf"{IN_SECONDS}.* for {2 * 4} networks") as told:
        run(config, tmp_path, evaluator)
    assert len(told) == 1


@pytest.mark.parametrize("learns", [True, False])
def test_a_gate_tells_the_user_of_seconds_once(learns: bool) -> None:
    gate, study = make_gate(predictor=ToyPredictor(sigma=0.5)), make_study("RandomSampler")
    evaluate = objective(gate, [])

    def seconds(trial: Any) -> tuple[float, float]:
        accuracy, latency = evaluate(trial)
        return accuracy, latency / 1000

    callbacks = [gate.adapt_callback(every=5, adapt=lambda _: ToyPredictor())] if learns else []
    with pytest.warns(UserWarning, match=IN_SECONDS) as told:
        study.optimize(seconds, n_trials=30, callbacks=callbacks)
    calls = __file__ if learns else optuna_scenes.__file__  # the callback's study.optimize, or gate.check
    assert [warning.filename for warning in told] == [calls]


def test_a_gate_that_begins_to_learn_does_not_tell_again() -> None:
    predictor = ToyPredictor(sigma=0.5)
    vars(predictor)["checkpoint"] = SimpleNamespace(guessed_of=lambda space: frozenset(GOALS[:1]))
    gate, study = make_gate(predictor=predictor), make_study("RandomSampler")
    evaluate = objective(gate, [])

    def seconds(trial: Any) -> tuple[float, float]:
        accuracy, latency = evaluate(trial)
        return accuracy, latency / 1000

    with pytest.warns(UserWarning, match=IN_SECONDS):
        study.optimize(seconds, n_trials=10)
    with warnings.catch_warnings(action="error"):
        study.optimize(seconds, n_trials=10, callbacks=[gate.adapt_callback(every=50)])


def test_a_gated_problem_tells_the_user_of_seconds_once() -> None:
    class Seconds(Bench):
        def _evaluate(self, X: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
            super()._evaluate(X, out)
            out["F"] = out["F"] * [1, 1e-3]

    gated = make_gated(Seconds(), ToyPredictor(sigma=0.5))
    gated.evaluate(np.array(SPACE_ROWS[:4]))
    with pytest.warns(UserWarning, match=IN_SECONDS) as told:
        gated.evaluate(np.array(SPACE_ROWS[4:20]))
    assert [warning.filename for warning in told] == [__file__]
    gated.evaluate(np.array(SPACE_ROWS[20:60]))


@pytest.mark.parametrize(
    ("objectives", "guessed", "modelled", "told"),
    [
        (GOALS, (), (), 1),
        (GOALS[:1], (), (), 0),
        (GOALS, GOALS[1:], (), 0),
        (GOALS, (), GOALS[1:], 0),
    ],
)
@pytest.mark.parametrize("counted", [[], ["params@onnx"]])
def test_only_what_the_model_knows_is_compared(
    objectives: list[str], guessed: list[str], modelled: list[str], told: int, counted: list[str]
) -> None:
    predictor = ToyPredictor(objectives=objectives)
    vars(predictor)["checkpoint"] = SimpleNamespace(guessed_of=lambda space: frozenset(guessed))
    learning = LearningModel(SPACE, predictor, TextMemory(SPACE.format), [*GOALS, *counted], modelled)
    rows = [SPACE.decode(genes) for genes in SPACE_ROWS[:6]]
    real = [np.array([*true_values(row)[:2], np.nan]) * [1, 1e-3, 1] for row in rows]
    entries = [Entry.of(SPACE, row, 3, real=results) for row, results in zip(rows, real, strict=True)]
    assert learning.odd_units(entries[:4]) == []
    assert len(learning.odd_units(entries)) == told
    assert learning.odd_units(entries) == []
