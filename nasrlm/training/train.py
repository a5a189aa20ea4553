"""Train a regression language model on labelled texts, or one encoder per space for a trained model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import torch

from nasrlm.arguments import check_kind
from nasrlm.calibration import MIN_TEXTS, Calibration, fit_calibration, num_texts
from nasrlm.callers import warn_caller
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.checkpoints.folder import UNTITLED
from nasrlm.examples import Examples
from nasrlm.files import only_one_in
from nasrlm.model.config import COMPACT
from nasrlm.model.devices import torch_device
from nasrlm.model.space_encoders import changes_of
from nasrlm.named_spaces import known_as
from nasrlm.predictor import Predictor
from nasrlm.training.augmentation import load_augmentation
from nasrlm.training.config import TrainConfig
from nasrlm.training.initial_model import check_origin
from nasrlm.training.learned_objectives import check_names, learned_objectives
from nasrlm.training.log import TrainLog
from nasrlm.training.processes import is_first_process
from nasrlm.training.run import TrainingRun, TrainResult, scores_of
from nasrlm.training.run_state import NOT_IDENTITY

EVALUATIONS = 5  # on valid rows while the encoder of a space is trained
WARMUP = 0.05  # share of its steps with a rising learning rate


def train(config: TrainConfig, examples: Examples, progress: bool = False) -> TrainResult:
    """Train on train rows; stop early and calibrate on valid rows.

    The folder ``config.out`` gets the run's state, its log (one JSON line per evaluation) and finally the checkpoint.
    A run that was stopped at any moment is resumed from its last saved state and ends as if it had never been stopped.
    On Ctrl-C a run of one process saves its state first; a second Ctrl-C stops it at once.

    With ``config.encoder_steps``, every space named there has a run of its own, in a folder with its name within
    ``config.out``, that trains an encoder. The checkpoint is the initial one with these encoders.

    Started by torchrun or ``accelerate launch``, every process computes its part of each batch and returns the same
    result; only the first one writes files.

    Warns if valid rows cannot decide which weights are kept, because they have no label to learn, or only equal ones of
    the objectives to monitor.

    Args:
        config: see TrainConfig.
        examples: rows of all splits; test rows and rows without a label to learn are ignored.
        progress: show a bar on stderr.

    Raises:
        ValueError: an argument is of another class, no labelled train rows, unknown names of objectives or spaces, a
            text too long for the model, a device or backbone that cannot be used, a loss that is not finite,
            ``config.out`` has the state of another run, or another run is writing there.
        ImportError: ``config.tensorboard`` without the package.
        OSError: ``config.out`` cannot be written.
    """
    check_kind("train", config, TrainConfig)
    check_kind("train", examples, Examples)
    with run_folder(config.out), torch.random.fork_rng(devices=[]):  # the user's generator stays as it is
        if config.encoder_steps:
            return _train_encoders(config, examples, progress)
        run = TrainingRun(config, examples, progress)
        _warn_unless_judged(run, "")
        return run.finish()


def run_folder(out: Path) -> AbstractContextManager[None]:
    """Return the context in which no other run can use a folder; the first process locks it for all of the run."""
    return only_one_in(out, "training run") if is_first_process() else nullcontext()


def check_config(config: TrainConfig) -> None:
    """Check that a config can be used, before rows are converted, which may take hours.

    Raises:
        ValueError: the device, augmentation, initial checkpoint or backbone cannot be used.
        ImportError: ``config.tensorboard`` without the package.
    """
    torch_device(config.device)
    if config.augment:
        load_augmentation(config.augment)
    TrainLog(config.out, config.tensorboard)
    check_origin(config)


def _train_encoders(config: TrainConfig, examples: Examples, progress: bool) -> TrainResult:
    initial = Checkpoint.from_pretrained(config.initial_checkpoint, config.device)
    parts = _parts(config, examples, initial)
    runs = {space: TrainingRun(_of_space(config, space, rows), rows, progress) for space, rows in parts.items()}
    for space, run in runs.items():
        _warn_unless_judged(run, f" of {space}")
    # A user's own space may be named by another path to its file than the one that the checkpoint knows.
    results = {known_as(space, initial.spaces): run.finish() for space, run in runs.items()}
    parts = {known_as(space, initial.spaces): rows for space, rows in parts.items()}
    checkpoint = _with_encoders(initial, results)
    steps, seconds = (sum(getattr(result, name) for result in results.values()) for name in ("steps", "seconds"))
    tau = float(np.mean([result.valid_tau for result in results.values()]))
    card = {
        **initial.card,
        "training": config.model_dump(mode="json", exclude=set(NOT_IDENTITY)),
        "data_sha256": examples.digest(),
        "steps": steps,
        "seconds": round(seconds),
        "valid_tau": tau,
        "measured_spaces": sorted({*initial.measured_spaces, *examples.measured_spaces()}),
        "encoders": {space: {"steps": x.steps, "valid_tau": x.valid_tau} for space, x in results.items()},
    }
    checkpoint = replace(checkpoint, calibration_by_space=_calibrated(checkpoint, parts), card=card)
    if is_first_process():
        checkpoint.save_pretrained(config.out / "checkpoint", UNTITLED)
    return TrainResult(checkpoint, tau, steps, seconds, any(result.out_of_patience for result in results.values()))


def _with_encoders(initial: Checkpoint, results: Mapping[str, TrainResult]) -> Checkpoint:
    """Return the checkpoint with encoders learned by runs of spaces, without these spaces' sums of costs.

    The sums were chosen by comparison with the old encoders.
    """
    common = initial.model.encoder
    learned = {space: changes_of(result.checkpoint.model.encoder, common) for space, result in results.items()}
    sums = {space: x for space, x in initial.sums_by_space.items() if known_as(space, learned) not in learned}
    return replace(initial, encoders={**initial.encoders, **learned}, sums_by_space=sums)


def _calibrated(checkpoint: Checkpoint, parts: Mapping[str, Examples]) -> Mapping[str, Calibration]:
    """Return calibrations by space, anew for spaces in ``parts``: on their valid rows, with their own encoders."""
    predictor = Predictor(checkpoint)
    of_all = dict.fromkeys(checkpoint.objectives, ())  # calibration of a checkpoint that has learned a single space
    by_space = dict(checkpoint.calibration_by_space) or dict.fromkeys(checkpoint.spaces, of_all)
    for space, rows in parts.items():
        valid = rows.split("valid")
        scores = scores_of(predictor.of_space(space), valid)
        calibration = fit_calibration(scores, dict.fromkeys(scores, valid.texts))
        known = (*by_space.get(space, ()), *rows.objectives)  # levels of the common encoder do not apply to this one
        by_space[space] = {**dict.fromkeys(known, ()), **calibration}
    return by_space


def _warn_unless_judged(run: TrainingRun, of_space: str) -> None:
    if not run.processes.is_first:
        return
    if not len(run.valid_rows):
        what = f"no row{of_space} of split valid has a label"
        warn_caller(f"{what}: the last weights are kept, intervals are not calibrated.")
    elif not _can_be_judged(run.valid_rows.labelled(run.monitored)):
        of_which = f" of {', '.join(run.config.monitor)}" if run.config.monitor else ""
        what = f"no two rows{of_space} of split valid have different labels{of_which}"
        warn_caller(f"{what}: the last weights are kept.")


def _can_be_judged(rows: Examples) -> bool:
    """Return whether two rows of a space differ in a label, as τ needs."""
    labels = [part.labels for _, part in rows.by_space()]
    return any((np.nanmin(x, axis=0) < np.nanmax(x, axis=0)).any() for x in labels)


def calibration_caveats(examples: Examples, objectives: Sequence[str]) -> list[str]:
    """Return caveats, in words, on the intervals of a model that was trained on these rows for these objectives."""
    rows = examples.labelled(objectives)
    train_rows, valid = rows.split("train"), rows.split("valid")
    if not len(valid):
        return []  # ``train`` has warned of this
    columns = zip(valid.objectives, valid.labels.T, strict=True)
    caveats: list[str] = []
    if few := [name for name, labels in columns if num_texts(valid.texts, labels) < MIN_TEXTS]:
        caveats.append(
            f"Fewer than {MIN_TEXTS} different texts of valid rows have labels of {', '.join(few)}: intervals are not "
            "calibrated"
        )
    texts = set(valid.texts)
    if seen := len(texts.intersection(train_rows.texts)):
        what = f"{seen:,} of {len(texts):,} texts of valid rows are also in train rows"
        caveats.append(f"{what}: intervals are too narrow for other networks if labels of the same text are similar")
    return caveats


def _parts(config: TrainConfig, examples: Examples, initial: Checkpoint) -> dict[str, Examples]:
    """Return the rows of every space that learns an encoder, with the labels to learn."""
    kind = initial.model.config
    if kind.head != "digits" or kind.backbone != COMPACT:
        raise ValueError(
            f"train: encoder_steps: expected an initial_checkpoint with head digits and backbone {COMPACT}, "
            f"got head {kind.head}, backbone {kind.backbone}."
        )
    if config.weight_bits < initial.weight_bits:  # rounding the common weights would change other spaces' predictions
        raise ValueError(
            f"train: weight_bits: expected {initial.weight_bits}, as in {config.initial_checkpoint}, with "
            f"encoder_steps, got {config.weight_bits}."
        )
    learned = learned_objectives(config, examples)
    chosen = examples.labelled([name for name in examples.objectives if name in learned])
    if unknown := [name for name in chosen.objectives if name not in initial.objectives]:
        raise ValueError(
            f"train: encoder_steps: expected objectives of {config.initial_checkpoint}, got {', '.join(unknown)}. "
            "Leave them out with the key objectives."
        )
    parts = dict(chosen.split("train").by_space())
    check_names("encoder_steps", tuple(config.encoder_steps), tuple(parts))
    return {
        space: chosen.rows(np.flatnonzero(chosen.spaces == space)).labelled(parts[space].objectives)
        for space in config.encoder_steps
    }


def _of_space(config: TrainConfig, space: str, rows: Examples) -> TrainConfig:
    """Return the config of the run that trains the encoder of one space."""
    folder = quote(space, safe="")  # the name of a user's own space is a path
    # The run keeps 32 bits; what it changes in the encoder is stored in 8 bits afterwards.
    changes = {"out": config.out / folder, "encoder_steps": {}, "only_encoder": True, "weight_bits": 32}
    own = config.of_objectives(rows.objectives).model_copy(update=changes)
    steps, num_rows = config.encoder_steps[space], len(rows.split("train"))
    return own.of_steps(steps, num_rows, evaluations=EVALUATIONS, warmup_share=WARMUP)
