"""One training run: seeded, resumable at any step, evaluated on valid rows."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from nasrlm.arrays import FloatArray
from nasrlm.calibration import Calibration, fit_calibration
from nasrlm.checkpoints.checkpoint import Checkpoint, round_weights
from nasrlm.checkpoints.folder import UNTITLED
from nasrlm.examples import Examples
from nasrlm.metrics import judged_tau
from nasrlm.model.devices import autocast
from nasrlm.predictor import Predictor
from nasrlm.reader import TokenIds
from nasrlm.text.truncation import CutTextWarning
from nasrlm.training.augmentation import load_augmentation
from nasrlm.training.batches import Batch, Batches, Redraw
from nasrlm.training.compiled import compiled
from nasrlm.training.config import TrainConfig
from nasrlm.training.denormals import denormals_as_zero
from nasrlm.training.initial_model import initial_model
from nasrlm.training.interruption import interrupts_wait
from nasrlm.training.learned_objectives import check_names, learned_objectives
from nasrlm.training.log import TrainLog
from nasrlm.training.loss import TrainingLoss
from nasrlm.training.moving_average import MovingAverage
from nasrlm.training.optimizers import Schedule, make_optimizers
from nasrlm.training.processes import Processes
from nasrlm.training.run_state import RunIdentity, read_state, reported_as_broken, saved_tokenizer, write_state
from nasrlm.training.sharding import load_optimizer, part_like, whole
from nasrlm.training.stored_ids import FILE, key_of, store_ids, stored_ids
from nasrlm.unreadable_texts import UnreadableTextError, naming_rows

ROWS_TO_JUDGE = 20  # a τ of fewer valid rows is too noisy to decide which weights are kept
SEEDS_A_PROCESS = 1_000_000_007  # distance of the processes' seeds, so that dropout differs between processes


@dataclass(frozen=True)
class TrainResult:
    """A finished run.

    Attributes:
        checkpoint: the best one, calibrated.
        valid_tau: its mean τ on the monitored objectives of valid rows.
        steps: number of steps taken.
        seconds: duration of these steps.
        out_of_patience: whether the run ended early because τ on valid rows stopped improving.
    """

    checkpoint: Checkpoint
    valid_tau: float
    steps: int
    seconds: float
    out_of_patience: bool


class TrainingRun:
    """A training run in progress; see ``nasrlm.training.train.train``."""

    def __init__(self, config: TrainConfig, examples: Examples, progress: bool = False) -> None:
        self.config = config
        self.processes = Processes(config.device, config.shard)
        self.progress = progress and self.processes.is_first
        self.objectives = learned_objectives(config, examples)
        self.monitored = config.monitor or self.objectives
        labelled = examples.labelled(self.objectives)
        train_rows, self.valid_rows = labelled.split("train"), labelled.split("valid")
        self.learned = {space: part.objectives for space, part in train_rows.by_space()}
        self.identity = RunIdentity.of(config, examples)
        self.measured_spaces = examples.measured_spaces()
        self.log = TrainLog(config.out, config.tensorboard and self.processes.is_first)
        self.saved = read_state(self._state_path, self.identity) if config.resume else None
        model, tokenizer = initial_model(config, train_rows, saved_tokenizer(self._state_path, self.saved))
        self.initial = {name: x.clone() for name, x in model.state_dict().items()} if config.initial_share else {}
        self.model = model.to(self.processes.device)
        self.average = MovingAverage(self.model, self.processes)
        self.predictor = Predictor(Checkpoint(self.average.model, tokenizer, self.objectives))
        valid_ids = self._read(self.valid_rows)  # refuses a text that is too long now, not after two epochs
        self.new_ids: tuple[str, Sequence[TokenIds]] | None = None  # key and token ids that are not stored yet
        train_ids = self._token_ids(train_rows)
        self.batches = self._make_batches(train_rows, train_ids)
        read = {"train": (train_rows, train_ids), "valid": (self.valid_rows, valid_ids)}
        self.num_cut = {split: tokenizer.num_cut(rows.texts, ids) for split, (rows, ids) in read.items()}
        self.total_steps = config.num_steps(len(train_rows))
        self.evaluate_every = max(1, round(config.evaluate_every_epochs * self.batches.steps_per_epoch))
        self.loss = self.processes.wrap(self._make_loss())  # may split the model, before optimisers get its weights
        self.average.split()
        self.optimizers = make_optimizers(self.model, config)
        warmup_steps = config.warmup_epochs * self.batches.steps_per_epoch
        self.schedule = Schedule(self.optimizers, warmup_steps, self.total_steps)
        self.step, self.seconds = 0, 0.0
        self.saved_step: int | None = None  # of the state in the folder; None if there is none
        self.losses: list[float] = []  # since the last evaluation
        self.best_tau, self.best_step, self.best_weights = float("-inf"), 0, self.average.model.state_dict()

    def finish(self) -> TrainResult:
        """Train from the last saved state to the end, then calibrate and save.

        Ctrl-C is raised after the current step and its evaluation, once the state is saved. In a run of several
        processes it is raised at once, and progress since the last regular save is lost: not every process may get
        the signal, and none can continue or save without the others.
        """
        self._load_state()
        if self.processes.is_first:
            self.log.start()
            if self.new_ids is not None:
                store_ids(self._ids_path, *self.new_ids)
        with denormals_as_zero(), interrupts_wait(self.processes.count == 1) as interrupted:
            self._take_steps(interrupted)
            if self.processes.saves(self.step != self.saved_step):
                self._save_state()
        if self.processes.is_first:
            self.log.close()
        return self._checkpoint()

    def _take_steps(self, interrupted: Callable[[], bool]) -> None:
        started, saved = time.monotonic() - self.seconds, time.monotonic()
        with tqdm(
            total=self.total_steps, initial=self.step, desc="train", unit="step", disable=not self.progress
        ) as bar:
            while self.step < self.total_steps and not self._out_of_patience() and not interrupted():
                self.losses.append(self._train_step())
                self.step += 1
                self.seconds = time.monotonic() - started
                if self.step % self.evaluate_every == 0 or self.step == self.total_steps:
                    self._evaluate()
                    self.losses.clear()
                else:
                    bar.set_postfix(loss=f"{np.mean(self.losses[-20:]):.3f}", best_tau=f"{self.best_tau:.4f}")
                bar.update()
                if self.processes.saves(time.monotonic() - saved > self.config.save_every_seconds):
                    self._save_state()
                    saved = time.monotonic()

    def _make_batches(self, rows: Examples, token_ids: Sequence[TokenIds]) -> Batches:
        config = self.config
        check_names("space_weights", tuple(config.space_weights), tuple(sorted(set(rows.spaces.tolist()))))
        return Batches(
            token_ids,
            rows.labels,
            np.array([config.objective_weights.get(name, 1.0) for name in self.objectives]),
            self.model.code,
            batch_size=config.batch_size,
            objectives_per_row=config.objectives_per_row,
            alone_probability=config.alone_probability,
            seed=config.seed,
            row_weights=config.row_weights(rows.spaces),
            redraw=self._redraw(rows) if config.augment else None,
        )

    def _token_ids(self, rows: Examples) -> list[NDArray[np.int32]]:
        """Return token ids of the train rows, from the run's folder if they are there; ``finish`` stores new ones."""
        key = key_of(rows.digest(), self.predictor.checkpoint.tokenizer, self.model.config)
        token_ids = stored_ids(self._ids_path, key) if self.config.resume else None
        if token_ids is None:
            token_ids = self._read(rows, self.progress)
            self.new_ids = key, token_ids
        return token_ids

    def _read(self, rows: Examples, progress: bool = False) -> list[NDArray[np.int32]]:
        """Tokenize rows; the error for an unreadable text names its row among all given ones, or in its file."""
        with naming_rows(rows.number, rows.file):
            return self.predictor.to_ids(rows.texts, progress)

    def _make_loss(self) -> nn.Module:
        loss = TrainingLoss(self.model, self.config.smoothing_digits, self.config.rank_loss_weight)
        self.processes.split(loss)
        return compiled(loss, self.processes.device) if self.config.compile else loss

    def _redraw(self, rows: Examples) -> Redraw:
        augment = load_augmentation(self.config.augment)

        def redraw(chosen: Sequence[int], rng: np.random.Generator) -> Sequence[TokenIds]:
            texts = [augment(rows.texts[row], rng) for row in chosen]
            try:
                with _cut_as_before():
                    return self.predictor.to_ids(texts)
            except UnreadableTextError as e:
                raise ValueError(
                    f"augment {self.config.augment}: {e.problem} in its result for {rows.place(chosen[e.row])}. "
                    "Let it return shorter texts, or use a model with a larger max_text_tokens."
                ) from e

        return redraw

    def _train_step(self) -> float:
        """Take one step and return its loss; all randomness depends on the seed, the step and the process alone."""
        batch = self.batches[self.step]
        torch.manual_seed(self.config.seed * 1_000_003 + self.step + SEEDS_A_PROCESS * self.processes.rank)  # dropout
        self.schedule.set_rates(self.step)
        self.model.train()
        self.model.zero_grad(set_to_none=True)
        value = self.processes.sum(self._add_gradients(batch))
        if not math.isfinite(value):
            raise ValueError(f"train: expected a finite loss, got {value} at step {self.step}. Lower learning_rate.")
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        for optimizer in self.optimizers:
            optimizer.step()
        self.average.update(min(self.config.average_decay, (1 + self.step) / (10 + self.step)))
        return value

    def _add_gradients(self, batch: Batch) -> float:
        """Add this process's part of a batch's gradients, part by part; return its part of the mean loss per label."""
        count, processes, device = self.config.accumulation_steps, self.processes, self.processes.device
        num_labels = int(batch.present.sum())
        value = 0.0
        for index in range(count):
            part = batch.part(processes.rank * count + index, processes.count * count).to(device)
            with processes.gradients(self.loss, last=index == count - 1):
                with autocast(torch.device(device), bf16=self.config.bf16):
                    loss = self.loss(part) / num_labels
                (processes.count * loss).backward()
            value += float(loss.detach())
        return value

    def _evaluate(self) -> None:
        """Evaluate the averaged weights by their mean τ on valid rows, log it, and keep the best weights."""
        self.average.gather()
        taus, tau = self.processes.from_first(self._judge)
        if self.processes.is_first:
            loss = sum(self.losses) / len(self.losses)
            values = {"step": self.step, "loss": loss, "valid_tau": tau, **taus}
            self.log.note({**values, "seconds": round(self.seconds, 1)})
        if tau > self.best_tau or not math.isfinite(self.best_tau):
            self.best_tau, self.best_step = tau, self.step
            if self.average.is_here:
                self.best_weights = {name: x.clone() for name, x in self.average.model.state_dict().items()}

    def _judge(self) -> tuple[dict[str, float], float]:
        """Return τ by objective, and the mean of those with ``ROWS_TO_JUDGE`` rows, or of all if none has as many.

        Keys are space/objective if there are several spaces, because labels of two spaces are not comparable.
        """
        result: dict[str, float] = {}
        sure: list[float] = []
        several = len(set(self.valid_rows.spaces)) > 1
        for space, part in self.valid_rows.labelled(self.monitored).by_space():
            with _cut_as_before():
                prediction = self.predictor.predict(part.texts, part.objectives, quantiles=(0.5,))
            taus = judged_tau(prediction.median, part.labels).tolist()
            result |= {f"{space}/{name}" if several else name: t for name, t in zip(part.objectives, taus, strict=True)}
            enough = np.isfinite(part.labels).sum(axis=0) >= ROWS_TO_JUDGE
            sure += [tau for tau, is_sure in zip(taus, enough, strict=True) if is_sure and math.isfinite(tau)]
        known = sure or [tau for tau in result.values() if math.isfinite(tau)]
        return result, float(np.mean(known)) if known else float("nan")

    def _out_of_patience(self) -> bool:
        return self.best_step > 0 and self.step - self.best_step >= self.config.patience * self.evaluate_every

    @property
    def _ids_path(self) -> Path:
        return self.config.out / FILE

    @property
    def _state_path(self) -> Path:
        return self.config.out / "state.pt"

    def _save_state(self) -> None:
        """Save the whole state in the first process; if the model is split, every process must call it."""
        first = self.processes.is_first
        self.average.gather()
        model = whole(self.model.state_dict(), keep=first)
        optimizers = [whole(optimizer.state_dict(), keep=first) for optimizer in self.optimizers]
        if not first:
            return
        state = {
            "identity": self.identity.to_json(),
            "tokenizer": self.predictor.checkpoint.tokenizer.to_json(),
            "step": self.step,
            "seconds": self.seconds,
            "losses": self.losses,
            "log": self.log.entries,
            "best": (self.best_tau, self.best_step, self.best_weights),
            "model": model,
            "average": self.average.model.state_dict(),
            "optimizers": optimizers,
        }
        write_state(self._state_path, state)
        self.saved_step = self.step

    def _load_state(self) -> None:
        if self.saved is not None:
            with reported_as_broken(self._state_path):
                self._restore(self.saved)
            self.saved = None
        if (step := self.processes.from_first(lambda: self.step)) != self.step:
            raise ValueError(
                f"{self._state_path}: expected the state of step {step}, like the first process, got {self.step}. "
                "`out` must be a folder that all processes share."
            )

    def _restore(self, state: dict[str, Any]) -> None:
        self.step = self.saved_step = state["step"]
        self.seconds = state["seconds"]
        self.losses, self.log.entries = list(map(float, state["losses"])), list(map(dict, state["log"]))
        best_tau, best_step, self.best_weights = state["best"]
        self.best_tau, self.best_step = float(best_tau), int(best_step)
        self.average.model.load_state_dict(self.best_weights)  # raises now if they do not fit
        own = self.model.state_dict()
        self.model.load_state_dict({name: part_like(x, own[name]) for name, x in state["model"].items()})
        self.average.load(state["average"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            load_optimizer(optimizer, saved)

    def _checkpoint(self) -> TrainResult:
        if self.processes.shard:
            self.best_weights = self.processes.from_first(lambda: {k: x.cpu() for k, x in self.best_weights.items()})
        model = self.average.model.to(self.processes.device)
        model.load_state_dict(self._with_initial_share(self.best_weights))
        if self.config.weight_bits == 16:
            round_weights(model)
        tau = self.processes.from_first(self._judge)[1] if self.config.initial_share else self.best_tau
        card = {
            "training": self.identity.config,
            "data_sha256": self.identity.data,
            "steps": self.step,
            "best_step": self.best_step,
            "seconds": round(self.seconds),
            "valid_tau": tau,
            "texts_cut": self.num_cut,
            "measured_spaces": self.measured_spaces,
        }
        calibration, by_space = self.processes.from_first(self._calibration)
        tokenizer = self.predictor.checkpoint.tokenizer
        checkpoint = Checkpoint(
            model, tokenizer, self.objectives, calibration, card, by_space, weight_bits=self.config.weight_bits
        )
        if self.processes.is_first:
            checkpoint.save_pretrained(self.config.out / "checkpoint", UNTITLED)
        return TrainResult(checkpoint, tau, self.step, self.seconds, self.step < self.total_steps)

    def _with_initial_share(self, learned: dict[str, Tensor]) -> dict[str, Tensor]:
        """Average learned weights with the initial ones, which helps if the learned ones did not move far.

        Source:
            Wortsman et al. 2022, "Robust fine-tuning of zero-shot models".
        """
        share = self.config.initial_share
        return {
            name: torch.lerp(x, self.initial[name].to(x.device), share) if share and x.is_floating_point() else x
            for name, x in learned.items()
        }

    def _calibration(self) -> tuple[Calibration, dict[str, Calibration]]:
        """Calibrate on all valid rows, and on those of each of several spaces; empty for a head without intervals."""
        if self.model.config.head == "mse":
            return {}, {}
        scores: dict[str, list[FloatArray]] = {}
        texts: dict[str, list[str]] = {}
        by_space: dict[str, Calibration] = {space: dict.fromkeys(names, ()) for space, names in self.learned.items()}
        for space, part in self.valid_rows.by_space():
            with _cut_as_before():
                columns = scores_of(self.predictor, part)
            for name, column in columns.items():
                scores.setdefault(name, []).append(column)
                texts.setdefault(name, []).extend(part.texts)
            if space in by_space:
                by_space[space] = {**by_space[space], **fit_calibration(columns, dict.fromkeys(columns, part.texts))}
        pooled = fit_calibration({name: np.concatenate(columns) for name, columns in scores.items()}, texts)
        return pooled, by_space if len(self.learned) > 1 else {}


def _cut_as_before() -> AbstractContextManager[object]:
    """Silence warnings of truncated texts, which were given when the run began."""
    return warnings.catch_warnings(action="ignore", category=CutTextWarning)


def scores_of(predictor: Predictor, rows: Examples) -> dict[str, FloatArray]:
    """Return (N,) predicted cumulative probabilities of the labels, by objective; NaN where a row has no label."""
    values = predictor.cumulative_probabilities(rows.texts, rows.objectives, rows.labels)
    return dict(zip(rows.objectives, values.T, strict=True))
