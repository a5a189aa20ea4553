"""Evaluation by space: each with its own objectives."""

import numpy as np
import pytest

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.evaluation import evaluate
from nasrlm.examples import Examples
from nasrlm.metrics import quality
from nasrlm.predictor import Predictor
from nasrlm.text.tokenizer import TextTokenizer
from tests.nasrlm.scenes import OBJECTIVES, layer_examples, tiny_model

PREDICTOR = Predictor(Checkpoint(tiny_model(vocabulary_size=300), TextTokenizer.train(["x"], 300), OBJECTIVES))


def test_spaces_are_judged_apart() -> None:
    examples = layer_examples(8)
    examples.spaces[:] = ["b"] * 3 + ["a"] * 5
    found = evaluate(PREDICTOR, examples).quality
    assert list(found) == ["a", "b"]
    expected = quality(PREDICTOR.predict(examples.texts[:3], OBJECTIVES), examples.labels[:3])
    for name in OBJECTIVES:
        assert found["b"][name] == pytest.approx(expected[name], nan_ok=True)


def test_a_space_is_judged_by_the_objectives_it_has() -> None:
    rows = layer_examples(8)
    spaces = np.array(["b"] * 3 + ["a"] * 5)
    labels = np.where((spaces == "b")[:, None] & np.array([True, False]), np.nan, rows.labels)
    examples = Examples(rows.texts, OBJECTIVES, labels, rows.splits, spaces)
    found = evaluate(PREDICTOR, examples).quality
    assert {space: list(objectives) for space, objectives in found.items()} == {
        "a": list(OBJECTIVES),
        "b": [OBJECTIVES[1]],
    }


def test_nothing_to_evaluate_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected labelled rows, got none"):
        evaluate(PREDICTOR, layer_examples(8).rows(np.arange(0)))
