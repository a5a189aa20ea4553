"""The config of a training run, which can be read from a YAML file; unknown keys are errors."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from nasrlm.model.config import COMPACT, OF_READOUTS, ModelConfig
from nasrlm.model.number import MAX_EXPONENT
from nasrlm.text.tokenizer import Pieces
from nasrlm.training.config_file import LIKE, file_setting, values_of

MOST_TOKENS = 1 << 20  # with far more, the tokenizer's trainer aborts the process for lack of memory
UNKNOWN = {"extra_forbidden", "unexpected_keyword_argument"}  # pydantic's error types for unknown keys


class TrainConfig(BaseModel):
    """The config of a training run.

    Attributes:
        table: one file or a list of files with the columns ``architecture`` (or ``text``), labels and ``split``.
            Required in a YAML file, but not for ``train`` with examples from elsewhere.
        out: folder of the run: state, log and the finished checkpoint.
        space: the space of tables without a column ``space``; of other tables, only rows of this space are used.
        text: the text of a row's architecture: "canonical" ONNX text, or "measured" text, which ends with the executed
            blocks if networks of the space run operations with unused results.
        initial_checkpoint: folder of a checkpoint to fine-tune. Its tokenizer, sizes, head and number code are kept;
            other values of these are errors, except a longer context.
        encoder_steps: by space, the number of steps in which an encoder of its own is trained from its own rows,
            starting from the encoder of ``initial_checkpoint``. All other weights stay the same.
        only_encoder: whether only the layers of a compact encoder are trained.
        initial_tokenizer: folder of a checkpoint whose tokenizer is used, with random initial weights.
        extend_tokenizer: whether more tokens are learned from the train texts, up to ``vocabulary_size``; old tokens
            keep their meaning. If spaces are named, only from their texts; texts of other spaces have the same tokens
            as before.
        objectives: labels to learn; if empty, all columns ``metric_unit@context`` with a label in a train row.
        monitor: objectives whose mean τ on valid rows selects the saved weights and stops the run; all if empty.
        objective_weights: relative frequency with which an objective is drawn, 1 by default.
        space_weights: relative frequency with which a row of a space is drawn, 1 by default.
        objectives_per_row: number of labels of a row that a step learns, drawn each time by ``objective_weights``.
        alone_probability: share of the rows whose numbers are decoded independently of each other.
        learning_rate: peak rate of the layers' matrices (Muon).
        weight_decay: share of these matrices that is subtracted in a step, times the learning rate.
        embedding_learning_rate: peak rate of all other weights (AdamW).
        clip_norm: largest norm of the gradient; a larger one is scaled down to it.
        smoothing_digits: σ of the probability given to neighbouring digits.
        initial_share: share of the initial weights in the saved ones, which are a weighted mean of initial and learned.
        weight_bits: precision of the saved weights; with 16 bits files are half as large.
        rank_loss_weight: weight of an additional loss on the order of every two labels of an objective in a batch.
        tokenizer: pieces of text that a token lies within: lines of ONNX, chains of lines, or pieces of source code.
        vocabulary_size: number of text tokens.
        augment: ``module:function`` that changes texts of train rows; see ``nasrlm.training.augmentation``.
        model: sizes, head and backbone, see ``ModelConfig``.
        num_digits, min_exponent, max_exponent: precision and range of predicted numbers, see ``NumberCode``.
        epochs: number of passes over all train rows.
        max_steps: largest number of steps, if ``epochs`` would take more.
        warmup_epochs: epochs in which the learning rates rise; then they fall along a cosine.
        average_decay: decay of the moving average of the weights, which is evaluated and saved.
        evaluate_every_epochs: epochs between evaluations on valid rows.
        save_every_seconds: seconds between saved states in ``out``.
        patience: number of evaluations without improvement on valid rows after which the run ends.
        batch_size: rows of a step, over all processes and accumulated parts.
        accumulation_steps: number of parts of a batch that a process computes one after another, to save memory.
        backbone_learning_rate: peak rate of a pretrained backbone, or of its LoRA (AdamW).
        bf16: whether to multiply in bfloat16, if the device has instructions for it.
        shard: whether to split weights and optimiser states over several processes (FSDP).
        compile: whether to compile the model with ``torch.compile``.
        tensorboard: whether to write the log for TensorBoard too.
        device: torch's name of the device.
        seed: seed of all random draws.
        resume: whether to continue from a state in ``out``.
        sources: authors and licences of the labels, for the card.

    Raises:
        ValidationError: pydantic's ValueError; a key is unknown, a value is impossible, or two contradict each other.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    table: tuple[Path, ...] = ()
    out: Path
    space: str | None = None
    text: Literal["measured", "canonical"] = "measured"
    initial_checkpoint: Path | None = None
    encoder_steps: dict[str, PositiveInt] = Field(default_factory=dict)
    only_encoder: bool = False
    initial_tokenizer: Path | None = None
    extend_tokenizer: bool | tuple[str, ...] = False
    objectives: tuple[str, ...] = ()
    monitor: tuple[str, ...] = ()
    objective_weights: dict[str, PositiveFloat] = Field(default_factory=dict)
    space_weights: dict[str, PositiveFloat] = Field(default_factory=dict)
    objectives_per_row: int = Field(default=6, ge=1)
    alone_probability: float = Field(default=0.7, ge=0, le=1)
    smoothing_digits: float = Field(default=0.3, ge=0)
    rank_loss_weight: float = Field(default=0.0, ge=0)
    model: ModelConfig = ModelConfig()
    num_digits: int = Field(default=4, ge=1, le=15)
    min_exponent: int = Field(default=-8, ge=-MAX_EXPONENT)
    max_exponent: int = Field(default=15, le=MAX_EXPONENT)
    tokenizer: Pieces = "onnx"
    vocabulary_size: int = Field(default=1024, ge=257, le=MOST_TOKENS)
    augment: str = Field(default="", pattern=r"^(\w[\w.]*:\w+)?$")
    epochs: int = Field(default=40, ge=1)
    max_steps: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=64, ge=1)
    accumulation_steps: int = Field(default=1, ge=1)
    learning_rate: float = Field(default=0.02, gt=0)
    embedding_learning_rate: float = Field(default=1e-3, gt=0)
    backbone_learning_rate: float = Field(default=5e-5, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    warmup_epochs: float = Field(default=1.0, ge=0)
    average_decay: float = Field(default=0.998, ge=0, lt=1)
    initial_share: float = Field(default=0.0, ge=0, le=1)
    weight_bits: Literal[16, 32] = 32
    clip_norm: float = Field(default=1.0, gt=0)
    evaluate_every_epochs: float = Field(default=2.0, gt=0)
    save_every_seconds: float = Field(default=60.0, ge=0)
    patience: int = Field(default=6, ge=1)
    bf16: bool = False
    shard: bool = False
    compile: bool = False
    tensorboard: bool = False
    device: str = "cpu"
    seed: int = Field(default=0, ge=0, lt=2**32)
    resume: bool = True
    sources: tuple[str, ...] = ()

    @field_validator("table", mode="before")
    @classmethod
    def _one_table_is_a_list_of_one(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | Path) else value

    @model_validator(mode="after")
    def _keys_do_not_contradict_each_other(self) -> TrainConfig:
        starts_anew, is_compact = self.initial_checkpoint is None, self.model.backbone == COMPACT
        if len(set(self.objectives)) < len(self.objectives):
            raise ValueError(f"objectives: expected different names, got {', '.join(self.objectives)}.")
        if unknown := [name for name in self.monitor if self.objectives and name not in self.objectives]:
            raise ValueError(f"monitor: expected objectives that are learned, got {unknown}.")
        if self.extend_tokenizer and (starts_anew or not is_compact):
            raise ValueError("extend_tokenizer: expected an initial_checkpoint of a compact model.")
        if self.initial_tokenizer is not None and not (starts_anew and is_compact):
            raise ValueError("initial_tokenizer: expected a compact model and no initial_checkpoint.")
        if self.encoder_steps and (starts_anew or self.extend_tokenizer or self.space_weights):
            raise ValueError("encoder_steps: expected an initial_checkpoint, and no extend_tokenizer or space_weights.")
        if (self.encoder_steps or self.only_encoder) and not is_compact:
            raise ValueError(f"encoder_steps, only_encoder: expected a compact model, got {self.model.backbone}.")
        if self.initial_share and starts_anew:
            raise ValueError("initial_share: expected an initial_checkpoint, got none.")
        for name in OF_READOUTS:
            if value := getattr(self.model, name):
                raise ValueError(f"model.{name}: expected 0, got {value}. `nasrlm adapt` sets it.")
        if self.min_exponent >= self.max_exponent:
            raise ValueError(f"max_exponent: expected more than min_exponent ({self.min_exponent}).")
        return self

    def num_steps(self, num_rows: int) -> int:
        """Return the number of steps of a run that trains on ``num_rows`` rows and does not stop early."""
        steps = self.epochs * math.ceil(num_rows / self.batch_size)
        return steps if self.max_steps is None else min(steps, self.max_steps)

    def row_weights(self, spaces: NDArray[np.str_]) -> NDArray[np.float64]:
        """Return the (N,) relative frequencies with which rows are drawn, given their (N,) spaces."""
        names, which = np.unique(spaces, return_inverse=True)
        return np.array([self.space_weights.get(str(space), 1.0) for space in names])[which]

    def of_objectives(self, names: Sequence[str]) -> TrainConfig:
        """Return a copy of the config for rows that only have labels of these objectives."""
        changes = {
            "objectives": tuple(name for name in self.objectives if name in names),
            "monitor": tuple(name for name in self.monitor if name in names),
            "objective_weights": {name: x for name, x in self.objective_weights.items() if name in names},
        }
        return self.model_copy(update=changes)

    def of_steps(
        self, steps: int, num_rows: int, *, evaluations: int, warmup_share: float | None = None
    ) -> TrainConfig:
        """Return a copy of the config for a run of ``steps`` steps without early stopping.

        Args:
            steps: number of steps of the run.
            num_rows: number of rows to train on.
            evaluations: number of evaluations on valid rows, at equal distances.
            warmup_share: share of the steps with a rising learning rate; if None, the config's ``warmup_epochs``.
        """
        steps_per_epoch = math.ceil(num_rows / self.batch_size)
        changes: dict[str, Any] = {
            "epochs": math.ceil(steps / steps_per_epoch),
            "max_steps": steps,
            "patience": evaluations + 1,
            "evaluate_every_epochs": steps / evaluations / steps_per_epoch,
        }
        if warmup_share is not None:
            changes["warmup_epochs"] = warmup_share * steps / steps_per_epoch
        return self.model_copy(update=changes)

    @classmethod
    def load(cls, path: Path | str, **overrides: Any) -> TrainConfig:
        """Read the config from a YAML file; paths in it are relative to the working directory.

        Keys that are missing are taken from the file named by the key ``like``, if any. Its path may also be relative
        to the folder of the file.

        Args:
            path: the YAML file.
            overrides: values of fields that replace those in the file.

        Raises:
            ValueError: the file is missing or is not YAML, has unknown keys or wrong values, or names no table. The
                message is one line with the file and the key, or only the key if its value is one of ``overrides``.
        """
        path = Path(path)
        values = {**values_of(path), **overrides}
        try:
            config = cls(**values)
        except ValidationError as e:
            raise ValueError(_problem(e, path, overrides)) from e
        if not config.table:
            raise ValueError(f"{path}: table: expected a file or a list of files, got none.")
        return config


def _problem(error: ValidationError, path: Path, overrides: Collection[str]) -> str:
    """Return the first problem of a config in one line, with its key and the file that sets the key."""
    first = error.errors()[0]
    key, problem = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    if not key:  # keys contradict each other, and the message names them
        return f"{path}: {problem}"
    setting = str(first["loc"][0])
    where = "" if setting in overrides else f"{file_setting(path, setting)}: "
    if first["type"] in UNKNOWN:
        return f"{where}expected a known key, got {key}. {_nearest(first['loc'])}"
    if first["type"] == "value_error":  # the message includes the value
        return f"{where}{key}: {problem}"
    return f"{where}{key}: {'expected a list' if first['type'] == 'tuple_type' else problem}, got {first['input']!r}."


def _nearest(place: Sequence[int | str]) -> str:
    """Return advice about an unknown key of a config or of its model."""
    known = [*TrainConfig.model_fields, LIKE] if len(place) == 1 else [field.name for field in fields(ModelConfig)]
    close = get_close_matches(str(place[-1]), known, n=1)
    return f"Did you mean {close[0]}?" if close else "docs/training.md lists all."
