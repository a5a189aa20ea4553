"""What a user's script may write without an annotation; mypy reads it, nothing runs it."""

from pathlib import Path
from typing import Any, assert_type

from pymoo.core.problem import Problem

import nasrlm


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
