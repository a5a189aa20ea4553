"""Train a regression language model on labelled texts: seeded, resumable at any step, watched on valid rows."""

from __future__ import annotations

import io
import json
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from nasrlm.batches import Batches
from nasrlm.calibration import fit_calibration
from nasrlm.checkpoint import Checkpoint, torch_device
from nasrlm.examples import Examples
from nasrlm.files import to_json, write_atomically
from nasrlm.loss import number_loss, smoothing_kernel
from nasrlm.metrics import kendall_tau
from nasrlm.model import RegressionLanguageModel
from nasrlm.number import NumberCode
from nasrlm.objective import Objective
from nasrlm.predictor import Predictor
from nasrlm.tokenizer import TextTokenizer
from nasrlm.train_config import TrainConfig


@dataclass(frozen=True)
class TrainResult:
    """A finished run: the best checkpoint, calibrated, and its mean τ on the monitored objectives of valid rows."""

    checkpoint: Checkpoint
    valid_tau: float
    steps: int
    seconds: float


def train(config: TrainConfig, examples: Examples, progress: bool = True) -> TrainResult:
    """Train on the train split, stop by the valid split, calibrate on the valid split.

    The run's folder ``config.out`` holds its state, its log (one JSON line an evaluation) and, when done, the
    checkpoint. A run that was stopped at any moment goes on from its last saved state and ends as if it had not
    been stopped.

    Args:
        config: see TrainConfig.
        examples: rows of all splits; test rows are not looked at, nor rows without a label to learn.
        progress: show a bar on stderr.

    Raises:
        ValueError: no labelled train rows, names of objectives that are not there, a text too long for the model, a
            loss that is not finite, or a state in ``config.out`` of another run.
        OSError: ``config.out`` cannot be written.
    """
    return _Run(config, examples).finish(progress)


class _Run:
    def __init__(self, config: TrainConfig, examples: Examples) -> None:
        self.config = config
        torch_device(config.device)
        self.objectives = _learned(config, examples.objectives)
        labelled = examples.labelled(self.objectives)
        train_rows, self.valid_rows = labelled.split("train"), labelled.split("valid")
        if not len(train_rows):
            raise ValueError("train: expected labelled rows with split 'train', got none. See the column `split`.")
        depends_on = config.model_dump(mode="json", exclude={"out", "resume", "save_every_seconds"})
        self.identity = {"config": depends_on, "data": examples.digest()}
        initial = Checkpoint.from_pretrained(config.initial_checkpoint) if config.initial_checkpoint else None
        self.tokenizer = initial.tokenizer if initial else TextTokenizer.train(train_rows.texts, config.vocabulary_size)
        self.code = initial.model.code if initial else NumberCode(config.num_digits)
        self.sizes = replace(initial.model.config, dropout=config.model.dropout) if initial else config.model
        torch.manual_seed(config.seed)
        self.model, self.average = self._new_model(), self._new_model().eval()
        if initial:
            _copy_weights(initial, self.model, self.objectives)
        self.average.load_state_dict(self.model.state_dict())
        self.optimizers = _optimizers(self.model, config)
        self.predictor = Predictor(Checkpoint(self.average, self.tokenizer, self.objectives))
        self.predictor.to_ids(self.valid_rows.texts)  # a text that is too long is refused now, not after two epochs
        self.batches = Batches(
            self.predictor.to_ids(train_rows.texts),
            train_rows.labels,
            np.array([config.objective_weights.get(name, 1.0) for name in self.objectives]),
            self.code,
            batch_size=config.batch_size,
            objectives_per_row=config.objectives_per_row,
            alone_probability=config.alone_probability,
            seed=config.seed,
        )
        self.total_steps = self.batches.steps_per_epoch * config.epochs
        self.evaluate_every = max(1, round(config.evaluate_every_epochs * self.batches.steps_per_epoch))
        self.kernel = smoothing_kernel(self.code, config.smoothing_digits).to(config.device)
        self.step, self.seconds = 0, 0.0
        self.losses: list[float] = []  # since the last evaluation
        self.log: list[dict[str, Any]] = []
        self.best_tau, self.best_step, self.best_weights = float("-inf"), 0, self.average.state_dict()

    def finish(self, progress: bool) -> TrainResult:
        """Train from the last saved state to the end, then calibrate and save."""
        self._load_state()
        self._write_log()
        started, saved = time.monotonic() - self.seconds, time.monotonic()
        with tqdm(total=self.total_steps, initial=self.step, desc="train", unit="step", disable=not progress) as bar:
            while self.step < self.total_steps and not self._out_of_patience():
                self.losses.append(self._train_step())
                self.step += 1
                self.seconds = time.monotonic() - started
                bar.update()
                if self.step % self.evaluate_every == 0 or self.step == self.total_steps:
                    tau = self._evaluate()
                    bar.set_postfix(loss=f"{self.losses[-1]:.3f}", valid_tau=f"{tau:.4f}")
                    self.losses.clear()
                if time.monotonic() - saved > self.config.save_every_seconds:
                    self._save_state()
                    saved = time.monotonic()
        self._save_state()
        return self._checkpoint()

    def _new_model(self) -> RegressionLanguageModel:
        size = self.tokenizer.vocabulary_size
        model = RegressionLanguageModel(self.sizes, size, len(self.objectives), self.code)
        return model.to(self.config.device)

    def _train_step(self) -> float:
        """One step; all that is random in it depends on the seed and the step alone."""
        batch = self.batches[self.step].to(self.config.device)
        torch.manual_seed(self.config.seed * 1_000_003 + self.step)  # dropout
        for optimizer, rate in zip(self.optimizers, _learning_rates(self.config), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * self._schedule()
        self.model.train()
        device_type = torch.device(self.config.device).type
        with torch.autocast(device_type, dtype=torch.bfloat16, enabled=self.config.bf16):
            log_probabilities = self.model(batch.text_ids, batch.objectives, batch.numbers, batch.visible)
        loss = number_loss(log_probabilities, batch.numbers, batch.present, self.kernel)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise ValueError(f"train: expected a finite loss, got {value} at step {self.step}. Lower learning_rate.")
        self.model.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        for optimizer in self.optimizers:
            optimizer.step()
        self._update_average()
        return value

    def _schedule(self) -> float:
        """Linear warm-up, then a cosine down to 2 % of the learning rate."""
        warmup = self.config.warmup_epochs * self.batches.steps_per_epoch
        if self.step < warmup:
            return (self.step + 1) / warmup
        done = (self.step - warmup) / max(1.0, self.total_steps - warmup)
        return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done))

    def _update_average(self) -> None:
        decay = min(self.config.average_decay, (1 + self.step) / (10 + self.step))
        with torch.no_grad():
            average: list[Tensor] = list(self.average.parameters())
            model: list[Tensor] = list(self.model.parameters())
            torch._foreach_lerp_(average, model, 1 - decay)

    def _evaluate(self) -> float:
        """Mean τ of the monitored objectives on valid rows, by the averaged weights; keeps the best."""
        names = self.config.monitor or self.objectives
        prediction = self.predictor.predict(self.valid_rows.texts, names, quantiles=(0.5,))
        columns = [self.objectives.index(name) for name in names]
        taus = kendall_tau(prediction.median, self.valid_rows.labels[:, columns])
        known = taus[np.isfinite(taus)]
        tau = float(known.mean()) if len(known) else float("nan")
        loss = sum(self.losses) / len(self.losses)
        self._note({"step": self.step, "loss": loss, "valid_tau": tau, **dict(zip(names, taus.tolist(), strict=True))})
        if tau > self.best_tau or not math.isfinite(self.best_tau):
            self.best_tau, self.best_step = tau, self.step
            self.best_weights = {name: x.clone() for name, x in self.average.state_dict().items()}
        return tau

    def _out_of_patience(self) -> bool:
        return self.best_step > 0 and self.step - self.best_step >= self.config.patience * self.evaluate_every

    def _note(self, values: dict[str, Any]) -> None:
        self.log.append({**values, "seconds": round(self.seconds, 1)})
        self._write_log()

    def _write_log(self) -> None:
        lines = "".join(f"{to_json(entry)}\n" for entry in self.log)
        write_atomically(self.config.out / "log.jsonl", lines.encode())

    @property
    def _state_path(self) -> Path:
        return self.config.out / "state.pt"

    def _save_state(self) -> None:
        state = {
            "identity": json.dumps(self.identity, sort_keys=True),
            "step": self.step,
            "seconds": self.seconds,
            "losses": self.losses,
            "log": self.log,
            "best": (self.best_tau, self.best_step, self.best_weights),
            "model": self.model.state_dict(),
            "average": self.average.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_atomically(self._state_path, buffer.getvalue())

    def _load_state(self) -> None:
        if not self.config.resume or not self._state_path.exists():
            return
        try:
            state = torch.load(self._state_path, map_location=self.config.device, weights_only=True)
        except Exception as e:  # a broken file fails in many ways
            raise ValueError(
                f"{self._state_path}: expected a training state, got {type(e).__name__}. Delete it."
            ) from e
        if state["identity"] != json.dumps(self.identity, sort_keys=True):
            raise ValueError(
                f"{self._state_path}: expected the state of this run, got one with another config or other data. "
                "Choose another `out`, or set `resume: false` to start again."
            )
        self.step, self.seconds = state["step"], state["seconds"]
        self.losses, self.log = state["losses"], state["log"]
        self.best_tau, self.best_step, self.best_weights = state["best"]
        self.model.load_state_dict(state["model"])
        self.average.load_state_dict(state["average"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)

    def _checkpoint(self) -> TrainResult:
        self.average.load_state_dict(self.best_weights)
        card = {
            "training": self.identity["config"],
            "data_sha256": self.identity["data"],
            "steps": self.step,
            "best_step": self.best_step,
            "seconds": round(self.seconds),
            "valid_tau": self.best_tau,
        }
        valid = self.valid_rows
        scores = self.predictor.cumulative_probabilities(valid.texts, self.objectives, valid.labels)
        calibration = fit_calibration(self.objectives, scores)
        checkpoint = Checkpoint(self.average, self.tokenizer, self.objectives, calibration, card)
        checkpoint.save_pretrained(self.config.out / "checkpoint")
        return TrainResult(checkpoint, self.best_tau, self.step, self.seconds)


def _learned(config: TrainConfig, labelled: tuple[str, ...]) -> tuple[str, ...]:
    """Objectives in decoding order: accuracies first, as what is known of them is what prunes; the rest as given."""
    names = config.objectives or labelled
    for key, listed, known in (
        ("objectives", names, labelled),
        ("monitor", config.monitor, names),
        ("objective_weights", config.objective_weights, names),
    ):
        if unknown := [name for name in listed if name not in known]:
            raise ValueError(f"train: {key}: expected names among {', '.join(known)}, got {', '.join(unknown)}.")
    return tuple(sorted(names, key=lambda name: "accuracy" not in Objective.parse(name).metric))


def _copy_weights(initial: Checkpoint, model: RegressionLanguageModel, objectives: tuple[str, ...]) -> None:
    """Start from another model; the prompts of objectives that it does not know stay as they are."""
    weights = initial.model.state_dict()
    prompts = model.decoder.objectives.weight.detach().clone()
    for row, name in enumerate(objectives):
        if name in initial.objectives:
            prompts[row] = initial.model.decoder.objectives.weight[initial.objectives.index(name)]
    model.load_state_dict({**weights, "decoder.objectives.weight": prompts})


def _optimizers(model: RegressionLanguageModel, config: TrainConfig) -> tuple[torch.optim.Optimizer, ...]:
    """Muon for the matrices of the layers; AdamW for embeddings, norms and the head, which do not decay.

    Source:
        Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks". Beside AdamW alone it learned
        in half the steps, see docs/log.md.
    """
    matrices = {name: p for name, p in model.named_parameters() if p.ndim == 2 and ".layers." in name}
    others = [p for name, p in model.named_parameters() if name not in matrices]
    return (
        torch.optim.Muon(list(matrices.values()), lr=config.learning_rate, weight_decay=config.weight_decay),
        torch.optim.AdamW(others, lr=config.embedding_learning_rate, betas=(0.9, 0.98), weight_decay=0.0),
    )


def _learning_rates(config: TrainConfig) -> tuple[float, float]:
    return config.learning_rate, config.embedding_learning_rate
