"""Compare predictions with the labels of a table."""

from __future__ import annotations

import time
from dataclasses import dataclass

from nasrlm.examples import Examples
from nasrlm.metrics import Quality, quality
from nasrlm.predictor import Predictor
from nasrlm.unreadable_texts import naming_rows


@dataclass(frozen=True)
class Evaluation:
    """Metrics by space and objective, and the speed of predicting.

    Attributes:
        quality: metrics by space, then by objective; coverage is NaN for a head without intervals.
        predictions_per_second: texts per second, each with all objectives of its space and three quantiles, including
            tokenisation.
    """

    quality: dict[str, dict[str, Quality]]
    predictions_per_second: float


def evaluate(predictor: Predictor, examples: Examples, progress: bool = False) -> Evaluation:
    """Predict all examples and compare them with their labels.

    Raises:
        ValueError: the checkpoint does not know an objective, no row has a label, or a text cannot be read; the message
            names its file and row.
    """
    if not examples.any_label:
        raise ValueError("evaluate: expected labelled rows, got none. Check the split and the space.")
    result: dict[str, dict[str, Quality]] = {}
    seconds, rows = 0.0, 0
    for space, part in examples.by_space():
        started = time.perf_counter()
        with naming_rows(part.number, part.file):
            prediction = predictor.of_space(space).predict(part.texts, part.objectives, progress=progress)
        seconds += time.perf_counter() - started
        rows += len(part)
        result[space] = quality(prediction, part.labels)
        if predictor.checkpoint.model.config.head == "mse":  # a point has no interval
            for metrics in result[space].values():
                metrics["coverage_80"] = float("nan")
    return Evaluation(result, rows / seconds)
