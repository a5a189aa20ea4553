"""Wherever a predictor is given for a space, that of the space predicts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from converters.runtime import Latency
from studies.evaluators import MeasuringEvaluator, TableEvaluator
from studies.surrogates.process_adapter import ProcessAdapter
from studies.surrogates.surrogate import Surrogate
from tests.studies.guided import guided_config, run
from tests.studies.scenes import OBJECTIVES, SPACE, Row, ToyPredictor, toy_table

NAMES = OBJECTIVES[:2]
ROWS = [Row((0, 1, 2, 3)), Row((4, 4, 0, 1))]


class OfAllSpaces(ToyPredictor):
    """Predicts for no space before one is named."""

    def of_space(self, space: str) -> ToyPredictor:
        assert space == "toy"
        return ToyPredictor()

    def predict(self, *asked: Any, **options: Any) -> Any:
        pytest.fail("asked for no space")

    sample = predict


def predicted(predictor: ToyPredictor, tmp_path: Path) -> Any:
    return Surrogate(SPACE, predictor, objectives=NAMES, to_text=SPACE.format).evaluate(ROWS).values


def measured(predictor: ToyPredictor, tmp_path: Path) -> Any:
    names = ["accuracy@toy", "latency_ms@here"]
    evaluator = MeasuringEvaluator(SPACE, objectives=names, predictor=predictor, to_text=SPACE.format)
    return evaluator.evaluate(ROWS).values


def learned(predictor: ToyPredictor, tmp_path: Path) -> Any:
    adapt = ProcessAdapter(SPACE, predictor, NAMES, to_text=SPACE.format, pool_size=20)
    return adapt(toy_table()[:25]).predict([*map(SPACE.format, ROWS)], OBJECTIVES, (0.5,)).values


def searched(predictor: ToyPredictor, tmp_path: Path) -> Any:
    table = TableEvaluator(SPACE, toy_table(), objectives=NAMES)
    return run(guided_config(trials=6), tmp_path, table, predictor=predictor, figures=False).front


@pytest.mark.parametrize("ask", [predicted, measured, learned, searched])
def test_a_predictor_of_all_spaces_predicts_as_that_of_the_space(
    ask: Callable[[ToyPredictor, Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "studies.evaluators.measure_latencies", lambda texts, repeats: [Latency(1.0, (1, 1), repeats) for _ in texts]
    )
    answers = [ask(each, tmp_path / type(each).__name__) for each in (OfAllSpaces(), ToyPredictor())]
    assert str(answers[0]) == str(answers[1])
