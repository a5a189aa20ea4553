"""Evaluators: a predictor's and a table's."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from nasrlm.objective import Goal
from nasrlm.prediction import Prediction
from studies.surrogate import Surrogate, TableEvaluator
from tests.studies.scenes import OBJECTIVES, Row, ToySpace, columns_of, toy_table, true_values

SPACE = ToySpace()


class TextPredictor:
    """Predicts from the toy notation; remembers the texts it has read."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Prediction:
        self.calls.append(list(texts))
        names = tuple(objectives or OBJECTIVES)
        medians = np.array([true_values(SPACE.parse(text)) for text in texts])[:, columns_of(names)]
        values = medians[:, :, None] + np.array(quantiles) - 0.5
        return Prediction(names, tuple(quantiles), values)


def one_text(row: Row) -> str:
    """The same text for all twins."""
    *first, last = SPACE.encode(row)
    return SPACE.format(SPACE.decode((*sorted(first), last)))


def make_surrogate(predictor: TextPredictor) -> Surrogate[Row]:
    return Surrogate(SPACE, predictor, objectives=OBJECTIVES[:2], to_text=one_text)


def test_surrogate_predicts_each_text_once_in_one_call_a_batch() -> None:
    predictor = TextPredictor()
    surrogate = make_surrogate(predictor)
    first = surrogate.predict([(0, 1, 2, 0), (2, 1, 0, 0), (3, 1, 0, 2)])
    assert predictor.calls == [["0-1-2-0", "0-1-3-2"]]
    again = surrogate.predict([(3, 1, 0, 2), (4, 4, 0, 1), (1, 2, 0, 0)])
    assert predictor.calls[1:] == [["0-4-4-1"]]
    np.testing.assert_array_equal(first.values[[2, 0, 1]], again.values[[0, 2, 2]])
    np.testing.assert_allclose(again.median[1], true_values(Row((4, 4, 0, 1)))[:2])
    assert again.quantiles == (0.1, 0.5, 0.9)
    assert surrogate.evaluate([]).values.shape == (0, 2, 3)
    assert len(predictor.calls) == 2


def test_surrogate_losses_follow_the_goals() -> None:
    goals = (Goal.parse("min:latency_ms@toy"), Goal.parse("max:accuracy@toy"))
    accuracy, latency, _ = true_values(Row((0, 1, 2, 3)))
    losses = make_surrogate(TextPredictor()).losses([(0, 1, 2, 3)], goals)
    np.testing.assert_allclose(losses, [[latency, -accuracy]])


def test_table_answers_twins_with_their_mean_and_strangers_with_nan() -> None:
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
    np.testing.assert_array_equal(answer.median, [[1.0, 55.0], [3.0, np.nan], [np.nan, np.nan]])
    np.testing.assert_array_equal(answer.low, answer.high)
    assert evaluator.evaluate([]).values.shape == (0, 2, 1)
    assert len(evaluator.keys) == 2


def test_table_errors_name_the_place() -> None:
    table = toy_table()
    with pytest.raises(ValueError, match=r"got no latency_ms@moon\. It has accuracy@toy"):
        TableEvaluator(SPACE, table, objectives=("accuracy@toy", "latency_ms@moon"))
    with pytest.raises(ValueError, match="expected rows of space toy, got none in 480 rows"):
        TableEvaluator(SPACE, table.assign(space="else"), objectives=OBJECTIVES)
    table.loc[7, "architecture"] = "what"
    with pytest.raises(ValueError, match=r"table row 7, column architecture: toy: expected digits, got 'what'"):
        TableEvaluator(SPACE, table, objectives=OBJECTIVES)
