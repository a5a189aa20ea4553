"""Training learns, and complains early."""

import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from nasrlm.calibration import MIN_TEXTS
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.examples import Examples
from nasrlm.files import only_one_in
from nasrlm.model.config import Head, ModelConfig
from nasrlm.training.run import TrainingRun
from nasrlm.training.train import calibration_caveats, run_folder, train
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.runs import config, first_losses, log_of
from tests.nasrlm.scenes import OBJECTIVES, SIZES, layer_examples, layer_table


def test_a_small_model_learns_a_rule(tmp_path: Path) -> None:
    size = ModelConfig(width=32, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, hidden=64, dropout=0.0)
    chosen = config(tmp_path, model=size, epochs=14, learning_rate=6e-3, average_decay=0.95, patience=99)
    result = train(chosen, layer_examples(480), progress=False)
    assert result.valid_tau > 0.8
    assert set(result.checkpoint.calibration) == set(OBJECTIVES)
    assert Checkpoint.from_pretrained(tmp_path / "checkpoint").card["valid_tau"] == result.valid_tau
    assert log_of(tmp_path)[-1]["loss"] < log_of(tmp_path)[0]["loss"]


def test_the_first_losses_of_a_seeded_run_stay_the_same(tmp_path: Path) -> None:
    run = TrainingRun(config(tmp_path, smoothing_digits=0.7), layer_examples())
    losses = []
    for run.step in range(4):
        losses.append(run._train_step())
    assert losses == pytest.approx([2.46196, 2.51314, 2.46989, 2.40595], rel=5e-3)


def test_what_valid_rows_do_not_tell_is_said() -> None:
    rows = layer_examples(96)
    apart = rows.rows(np.unique(rows.texts, return_index=True)[1])
    assert calibration_caveats(apart, OBJECTIVES) == []
    labels = apart.labels.copy()
    labels[np.flatnonzero(apart.splits == "valid")[MIN_TEXTS - 1 :], 1] = np.nan
    copied = np.flatnonzero(apart.splits == "train")[:2]
    splits = np.concatenate([apart.splits, ["valid", "valid"]])
    index = np.concatenate([np.arange(len(apart)), copied])
    labels = np.concatenate([labels, np.full((2, 2), 5.0) * [1, np.nan]])
    told = f"Fewer than 9 different texts of valid rows have labels of {OBJECTIVES[1]}: intervals are not calibrated"
    few, seen = calibration_caveats(replace(apart.rows(index), labels=labels, splits=splits), OBJECTIVES)
    assert few == told
    assert re.match(r"2 of \d+ texts of valid rows are also in train rows: intervals are too narrow", seen)
    assert calibration_caveats(apart.split("train"), OBJECTIVES) == []


def test_repeated_valid_rows_do_not_calibrate(tmp_path: Path) -> None:
    rows = layer_examples(96)
    apart = rows.rows(np.unique(rows.texts, return_index=True)[1])
    train_rows, valid = (np.flatnonzero(apart.splits == split) for split in ("train", "valid"))
    twice = apart.rows(np.concatenate([train_rows, np.repeat(valid[: MIN_TEXTS - 1], 2)]))
    few = f"Fewer than 9 different texts of valid rows have labels of {', '.join(OBJECTIVES)}: "
    assert calibration_caveats(twice, OBJECTIVES)[0].startswith(few)
    assert train(config(tmp_path / "few", epochs=1), twice).checkpoint.calibration == {}
    of_two = apart.rows(np.concatenate([np.arange(len(apart)), valid[: MIN_TEXTS - 1]]))
    spaces = np.where(np.isin(of_two.texts, np.array(apart.texts)[valid[: MIN_TEXTS - 1]]), "few", "many")
    spaces[train_rows[:9]] = "few"
    learned = train(config(tmp_path / "enough", epochs=1), replace(of_two, spaces=spaces)).checkpoint
    assert set(learned.calibration) == set(OBJECTIVES)
    counted = {space: [len(levels) for levels in x.values()] for space, x in learned.calibration_by_space.items()}
    assert counted == {"few": [0, 0], "many": [99, 99]}


def with_labels(examples: Examples, missing: tuple[slice, slice]) -> Examples:
    labels = examples.labels.copy()
    labels[missing] = np.nan
    return Examples(examples.texts, examples.objectives, labels, examples.splits, examples.spaces)


def test_missing_labels_are_not_learned(tmp_path: Path) -> None:
    rows = with_labels(layer_examples(), (slice(0, 120), slice(1, 2)))  # half of the rows have no latency
    result = train(config(tmp_path), with_labels(rows, (slice(0, 64), slice(None))), progress=False)
    assert result.steps == 3 * 9  # 132 of the 180 train rows have a label
    assert np.isfinite([entry["loss"] for entry in log_of(tmp_path)]).all()


def test_without_valid_rows_the_last_weights_are_kept_uncalibrated(tmp_path: Path) -> None:
    examples = layer_examples(40)
    only_train = examples.rows(np.flatnonzero(examples.splits == "train"))
    with pytest.warns(UserWarning, match=r"no row of split valid has a label: the last weights are kept, intervals"):
        result = train(config(tmp_path), only_train, progress=False)
    assert np.isnan(result.valid_tau)
    assert result.checkpoint.calibration == {}
    assert result.checkpoint.card["best_step"] == result.steps == 6
    assert [entry["valid_tau"] for entry in log_of(tmp_path)] == [None] * 3


@pytest.mark.parametrize("label", [np.nan, 5.0])
def test_valid_rows_that_do_not_differ_in_what_is_monitored_do_not_decide(tmp_path: Path, label: float) -> None:
    rows = layer_examples(40)
    labels = rows.labels.copy()
    labels[rows.splits == "valid", 0] = label
    judging_nothing = config(tmp_path, monitor=OBJECTIVES[:1], patience=1)
    what = rf"no two rows of split valid have different labels of {OBJECTIVES[0]}: the last weights are kept\."
    with pytest.warns(UserWarning, match=what):
        result = train(judging_nothing, replace(rows, labels=labels))
    assert np.isnan(result.valid_tau)
    assert result.checkpoint.card["best_step"] == result.steps == 6


def test_training_stops_when_patience_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taus = iter([np.nan, 0.2, 0.5, 0.4, np.nan, 0.5, 0.9])
    monkeypatch.setattr("nasrlm.training.run.judged_tau", lambda *_: np.array([next(taus), np.nan]))
    result = train(config(tmp_path, epochs=50, patience=3), layer_examples(40), progress=False)
    assert result.out_of_patience
    assert [entry["valid_tau"] for entry in log_of(tmp_path)] == [None, 0.2, 0.5, 0.4, None, 0.5]
    assert result.valid_tau == 0.5
    assert result.checkpoint.card["best_step"] == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objectives": ("speed@x",)}, r"train: objectives: expected names among accuracy@cifar10, .*, got speed@x"),
        ({"monitor": ("speed@x",)}, r"train: monitor: expected names among .*, got speed@x"),
        ({"objective_weights": {"speed@x": 2}}, r"train: objective_weights: expected names among .*, got speed@x"),
        ({"device": "abacus"}, r"device: expected one that torch can use here, got 'abacus'"),
        ({"learning_rate": 1e30}, r"train: expected a finite loss, got nan at step \d+\. Lower learning_rate"),
        ({"model": ModelConfig(max_text_tokens=3)}, r"text: expected 1 to 3 tokens, got \d+ in row 0"),
    ],
)
def test_what_cannot_be_trained_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train(config(tmp_path, **changes), layer_examples(), progress=False)


def test_labelled_train_rows_are_needed(tmp_path: Path) -> None:
    examples = layer_examples(40)
    unlabelled = with_labels(examples, (slice(None), slice(None)))
    only_valid = examples.rows(np.flatnonzero(examples.splits == "valid"))
    for rows in (unlabelled, only_valid):
        with pytest.raises(ValueError, match="train: expected labelled rows with split 'train', got none"):
            train(config(tmp_path), rows, progress=False)


def test_a_folder_that_cannot_be_written_is_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(TrainingRun, "_train_step", lambda _: pytest.fail("trained"))
    with pytest.raises(OSError, match=r"run: expected a folder that can be created, got Not a directory"):
        train(config(tmp_path / "file" / "run"), layer_examples(40), progress=False)


def test_two_runs_do_not_work_in_one_folder(tmp_path: Path) -> None:
    with (
        only_one_in(tmp_path, "training run"),
        pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path))}: expected a folder that no other training run"),
    ):
        train(config(tmp_path, epochs=1), layer_examples(40), progress=False)
    train(config(tmp_path, epochs=1), layer_examples(40), progress=False)
    assert not (tmp_path / ".lock").exists()


def test_processes_of_one_run_share_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with run_folder(tmp_path):
        monkeypatch.setenv("RANK", "1")
        with run_folder(tmp_path):
            assert (tmp_path / ".lock").exists()
        assert (tmp_path / ".lock").exists()


def test_a_named_objective_needs_labels_and_others_are_left_out(tmp_path: Path) -> None:
    half = with_labels(layer_examples(40), (slice(None), slice(1, 2)))  # no latency
    with pytest.warns(
        UserWarning, match=f"train: expected train rows with labels of {OBJECTIVES[1]}, got none: they are not learned."
    ):
        assert TrainingRun(config(tmp_path), half).objectives == OBJECTIVES[:1]
    with pytest.raises(
        ValueError, match=r"train: objectives: expected labels in rows .*, got none of latency_ms@raspi4"
    ):
        train(config(tmp_path, objectives=OBJECTIVES), half, progress=False)


@pytest.mark.parametrize("parts", [2, 5, 20])  # of 16 rows
def test_a_batch_in_parts_is_the_same_batch(tmp_path: Path, parts: int) -> None:
    assert first_losses(tmp_path, accumulation_steps=parts) == pytest.approx(first_losses(tmp_path), abs=1e-5)


@pytest.mark.parametrize("head", ["digits", "mse"])
def test_a_rank_loss_adds_to_the_loss(tmp_path: Path, head: Head) -> None:
    sizes = replace(SIZES, head=head)
    plain, ranked = (first_losses(tmp_path, model=sizes, rank_loss_weight=weight)[0] for weight in (0.0, 2.0))
    assert ranked - plain == pytest.approx(2 * math.log(2), abs=0.4)  # no better than a coin at the start


def test_a_run_ends_after_its_steps(tmp_path: Path) -> None:
    result = train(config(tmp_path, max_steps=5), layer_examples(), progress=False)
    assert (result.steps, [entry["step"] for entry in log_of(tmp_path)]) == (5, [5])


def test_compiling_without_a_compiler_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ValueError, match="compile expects a C\\+\\+ compiler, got no 'no-such-compiler' on PATH"):
        first_losses(tmp_path, compile=True)


@pytest.mark.slow
def test_compiled_it_learns_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_ = torch.compile
    monkeypatch.setattr(torch, "compile", lambda module, **options: compile_(module, backend="eager", **options))
    monkeypatch.setenv("CXX", sys.executable)  # which is not called
    assert first_losses(tmp_path, compile=True) == pytest.approx(first_losses(tmp_path), abs=1e-5)


@pytest.mark.slow
def test_joined_tokens_compile_for_texts_of_any_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", (None, "g++"))  # read once, maybe while a test named another
    sizes = replace(SIZES, num_encoder_layers=2, tokens_per_state=3)
    result = train(config(tmp_path, model=sizes, compile=True, epochs=1), layer_examples(), progress=False)
    assert result.steps > 2  # two steps compile what a third one may not


def test_weights_of_spaces_are_those_of_their_rows(tmp_path: Path) -> None:
    rows = layer_examples()
    spaces = np.where(np.arange(len(rows)) % 4 == 1, "rare", "common")
    labels = np.where(spaces == "rare", 1.0, 0.0)[:, None].repeat(2, axis=1)
    examples = Examples(rows.texts, rows.objectives, labels, rows.splits, spaces)
    batches = TrainingRun(config(tmp_path, space_weights={"rare": 4.0}), examples).batches
    epoch = [bool(values[0]) for step in range(batches.steps_per_epoch) for values in batches[step].values]
    assert (sum(epoch), len(epoch)) == (120, 180)  # a third of the rows, drawn four times as often as the others
    with pytest.raises(ValueError, match=r"train: space_weights: expected names among common, rare, got moon"):
        TrainingRun(config(tmp_path, space_weights={"moon": 2.0}), examples)


def test_accuracies_are_decoded_first(tmp_path: Path) -> None:
    rows = layer_examples(40)
    swapped = Examples(rows.texts, rows.objectives[::-1], rows.labels[:, ::-1], rows.splits, rows.spaces)
    assert TrainingRun(config(tmp_path), swapped).objectives == OBJECTIVES


def test_few_valid_rows_do_not_decide_which_weights_are_kept(tmp_path: Path) -> None:
    examples = layer_examples(120)
    labels = examples.labels.copy()
    labels[np.flatnonzero(examples.splits == "valid")[3:], 1] = np.nan
    train(config(tmp_path, epochs=2), replace(examples, labels=labels), progress=False)
    entry = log_of(tmp_path)[-1]
    assert entry["valid_tau"] == entry[OBJECTIVES[0]]
    assert np.isfinite(entry[OBJECTIVES[1]])


def test_spaces_of_train_rows_are_known_whatever_the_valid_rows_are(tmp_path: Path) -> None:
    examples = layer_examples()
    odd = np.arange(len(examples.texts)) % 2 == 1
    spaces = np.where(examples.splits == "train", np.where(odd, "a", "b"), np.where(odd, "a", "c"))
    result = train(config(tmp_path, max_steps=2), replace(examples, spaces=spaces), progress=False)
    assert result.checkpoint.spaces == ("a", "b")


def test_labels_that_only_test_rows_have_are_not_asked_for(tmp_path: Path, nasrlm: CommandLine) -> None:
    table = layer_table(240)
    table["latency_ms@b"] = np.where(table["split"] == "test", 1.5, np.nan)
    table.to_parquet(tmp_path / "table.parquet")
    (tmp_path / "train.yaml").write_text(
        f"table: {tmp_path}/table.parquet\nout: {tmp_path}/run\nmax_steps: 2\nvocabulary_size: 270\nbatch_size: 16\n"
        "model: {width: 32, num_heads: 2, num_encoder_layers: 1, num_decoder_layers: 1, hidden: 64}\n"
    )
    with pytest.warns(
        UserWarning, match="train: expected train rows with labels of latency_ms@b, got none: they are not learned"
    ):
        assert nasrlm("train", "--config", tmp_path / "train.yaml").status == 0
    assert (tmp_path / "run" / "checkpoint" / "README.md").is_file()


def test_texts_of_a_shuffled_series_keep_their_labels() -> None:
    rows = pd.DataFrame({"text": [f"depth {n}\n" for n in range(6)], "y": np.arange(6.0)}).iloc[[3, 0, 5, 1, 4, 2]]
    splits, spaces = np.array(["train", "valid"] * 3), np.full(6, "mine")
    part = Examples(rows["text"], OBJECTIVES[:1], rows[["y"]].to_numpy(), splits, spaces).split("train")
    assert part.texts == [f"depth {n:.0f}\n" for n in part.labels[:, 0]] == ["depth 3\n", "depth 5\n", "depth 4\n"]
