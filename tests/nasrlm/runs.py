"""Short runs of a tiny model, and how they are killed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from nasrlm.model.config import COMPACT
from nasrlm.training.config import TrainConfig
from nasrlm.training.run import TrainingRun, TrainResult
from tests.nasrlm.scenes import SIZES, layer_examples


def config(out: Path, **changes: Any) -> TrainConfig:
    """Three short epochs of a tiny model."""
    values: dict[str, Any] = {
        "table": "layers.parquet",
        "out": out,
        "model": SIZES,
        "epochs": 3,
        "batch_size": 16,
        "learning_rate": 3e-3,
        "evaluate_every_epochs": 1,
    }
    if not changes.get("initial_checkpoint"):  # which has digits of its own
        values["num_digits"] = 3
    given = changes.get("initial_checkpoint") or changes.get("initial_tokenizer")
    if not given and changes.get("model", SIZES).backbone == COMPACT:  # else tokens are not learned
        values["vocabulary_size"] = 270
    return TrainConfig(**values | changes)


def log_of(out: Path) -> list[dict[str, Any]]:
    entries = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in entry.items() if key != "seconds"} for entry in entries]


def weights_of(result: TrainResult) -> list[torch.Tensor]:
    return list(result.checkpoint.model.state_dict().values())


class Killed(BaseException):
    pass


def killed_in(method: str, step: int) -> Callable[..., Any]:
    """The method of a run, killed at a step before it does anything."""
    original = getattr(TrainingRun, method)

    def dying(self: TrainingRun, *args: Any) -> Any:
        if self.step == step:
            raise Killed
        return original(self, *args)

    return dying


def first_losses(out: Path, steps: int = 4, **changes: Any) -> list[float]:
    run = TrainingRun(config(out, **changes), layer_examples())
    losses = []
    for run.step in range(steps):
        losses.append(run._train_step())
    return losses
