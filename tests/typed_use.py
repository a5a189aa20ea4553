"""What a user's script may write without an annotation; mypy reads it, nothing runs it."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pandas as pd
from pymoo.core.problem import Problem

import nasrlm
from converters import Graph
from spaces import Choices, GenotypeSpace


def gates_of_a_named_space(problem: Problem) -> None:
    goals = ["max:accuracy@cifar10", "min:latency_ms@pixel3"]
    gate = nasrlm.optuna.ParetoGate("nasbench201", goals)
    assert_type(gate, nasrlm.optuna.ParetoGate[Any])
    gated = nasrlm.pymoo.GatedProblem(problem, "nasbench201", goals)
    assert_type(gated, nasrlm.pymoo.GatedProblem[Any])


def a_run_from_python(examples: nasrlm.Examples) -> None:
    sizes = nasrlm.ModelConfig(width=64, num_heads=2, truncation="head")
    config = nasrlm.TrainConfig(out=Path("runs/mine"), tokenizer="code", model=sizes)
    assert_type(nasrlm.Predictor(nasrlm.train(config, examples).checkpoint), nasrlm.Predictor)


def a_device_from_tables(checkpoint: nasrlm.Checkpoint) -> None:
    config = nasrlm.AdaptConfig(["measured.csv", Path("more.parquet")], ["latency_ms@mine"], samples=None)
    assert_type(nasrlm.adapt_to_tables(checkpoint, config).checkpoint, nasrlm.Checkpoint)


class OwnSpace(GenotypeSpace):
    name = "own"
    objectives = ("accuracy@cifar10", "latency_ms@here")
    choices = {"width": (16, 24), "kernel": (3, 5)}  # noqa: RUF012 - as docs/new-space.md writes it

    def build(self, architecture: Choices) -> Graph:
        raise NotImplementedError


def labels_in_memory(checkpoint: nasrlm.Checkpoint, table: pd.DataFrame) -> None:
    space, texts = OwnSpace(), table["text"]
    pool = nasrlm.make_pool(checkpoint, texts, space=space)
    predictor = nasrlm.Predictor(nasrlm.adapt(checkpoint, pool, "latency_ms@mine", table["label"]))
    known = {"accuracy@cifar10": np.full(len(texts), 93.0)}
    predictor.joint_samples(texts, predictor.objectives_of(space), samples=100, known=known)
    assert_type(predictor.predict(texts, quantiles=np.linspace(0.1, 0.9, 9)), nasrlm.Prediction)


def a_search(predictor: nasrlm.Predictor) -> None:
    goals = ["max:accuracy@cifar10", "min:latency_ms@pixel3"]
    config = nasrlm.SearchConfig("nasbench201", goals, trials=64, constraints=["latency_ms@pixel3<=20"])
    assert_type(config.goals, tuple[nasrlm.Goal, ...])
    nasrlm.search(config, "nasbench201", predictor, "on_predictions", figures=False)
