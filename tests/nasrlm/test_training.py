"""Training learns, resumes exactly, and complains early."""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nasrlm.checkpoint import Checkpoint
from nasrlm.examples import Examples
from nasrlm.model import ModelConfig
from nasrlm.model_config import Head
from nasrlm.predictor import Predictor
from nasrlm.stored_ids import key_of, store_ids, stored_ids
from nasrlm.tokenizer import TextTokenizer
from nasrlm.train_config import TrainConfig
from nasrlm.training import TrainResult, train
from nasrlm.training_run import TrainingRun
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.scenes import OBJECTIVES, SIZES, layer_examples, layer_table


def config(out: Path, **changes: Any) -> TrainConfig:
    """Three short epochs of a tiny model."""
    values: dict[str, Any] = {
        "table": "layers.parquet",
        "out": out,
        "model": SIZES,
        "vocabulary_size": 270,
        "epochs": 3,
        "batch_size": 16,
        "learning_rate": 3e-3,
        "evaluate_every_epochs": 1,
        "num_digits": 3,
    }
    return TrainConfig(**values | changes)


def log_of(out: Path) -> list[dict[str, Any]]:
    entries = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in entry.items() if key != "seconds"} for entry in entries]


def weights_of(result: TrainResult) -> list[torch.Tensor]:
    return list(result.checkpoint.model.state_dict().values())


def test_a_small_model_learns_a_rule(tmp_path: Path) -> None:
    size = ModelConfig(width=32, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, hidden=64, dropout=0.0)
    chosen = config(tmp_path, model=size, epochs=25, learning_rate=6e-3, average_decay=0.95, patience=99)
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


@pytest.fixture(scope="module")
def unharmed_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainResult, Path]:
    out = tmp_path_factory.mktemp("unharmed")
    return train(config(out), layer_examples(), progress=False), out


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


@pytest.mark.parametrize(
    ("method", "step", "save_every_seconds"),
    [
        ("_train_step", 0, 0),
        ("_train_step", 7, 0),
        ("_save_state", 12, 0),  # the evaluation of step 12 is logged, the state is that of step 11
        ("_save_state", 13, 0),
        ("_train_step", 20, 3600),  # no state at all
        ("_checkpoint", 36, 0),
    ],
)
def test_a_killed_run_ends_as_if_it_had_not_been(
    unharmed_run: tuple[TrainResult, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    step: int,
    save_every_seconds: float,
) -> None:
    unharmed, unharmed_out = unharmed_run
    killed = config(tmp_path, save_every_seconds=save_every_seconds)
    with monkeypatch.context() as patched:
        patched.setattr(TrainingRun, method, killed_in(method, step))
        with pytest.raises(Killed):
            train(killed, layer_examples(), progress=False)
    resumed = train(killed, layer_examples(), progress=False)
    assert unharmed.steps == resumed.steps == 36
    assert log_of(tmp_path) == log_of(unharmed_out)
    for a, b in zip(weights_of(resumed), weights_of(unharmed), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    assert resumed.checkpoint.calibration == unharmed.checkpoint.calibration


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    first = train(config(tmp_path), layer_examples(), progress=False)
    again = train(config(tmp_path), layer_examples(), progress=False)
    assert again.steps == first.steps
    assert again.seconds == first.seconds
    assert len(log_of(tmp_path)) == 3


def test_a_run_that_shall_not_resume_starts_again(tmp_path: Path) -> None:
    train(config(tmp_path), layer_examples(), progress=False)
    train(config(tmp_path, resume=False, epochs=1), layer_examples(), progress=False)
    assert [entry["step"] for entry in log_of(tmp_path)] == [12]


@pytest.mark.parametrize(("change", "rows"), [({"seed": 1}, 240), ({"epochs": 4}, 240), ({}, 236)])
def test_the_state_of_another_run_is_refused(tmp_path: Path, change: dict[str, Any], rows: int) -> None:
    train(config(tmp_path, epochs=1), layer_examples(), progress=False)
    with pytest.raises(ValueError, match=r"state\.pt: expected the state of this run, got one with another config, "):
        train(config(tmp_path, **{"epochs": 1} | change), layer_examples(rows), progress=False)


def test_a_state_of_other_spaces_or_another_beginning_is_refused(tmp_path: Path) -> None:
    message = (
        r"state\.pt: expected the state of this run, got one with another config, other data or another checkpoint"
    )
    first, second = config(tmp_path / "first", epochs=1), config(tmp_path / "second", epochs=1)
    second = second.model_copy(update={"initial_checkpoint": tmp_path / "first" / "checkpoint"})
    train(first, layer_examples(), progress=False)
    train(second, layer_examples(), progress=False)
    with pytest.raises(ValueError, match=message):
        train(second, replace(layer_examples(), spaces=np.full(240, "moved")), progress=False)
    train(first.model_copy(update={"seed": 5, "resume": False}), layer_examples(), progress=False)
    with pytest.raises(ValueError, match=message):
        train(second, layer_examples(), progress=False)


def test_texts_are_read_once_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(config(tmp_path, epochs=1), layer_examples(), progress=False)
    (tmp_path / "state.pt").unlink()
    first, read = log_of(tmp_path), Predictor.to_ids
    seen: list[int] = []
    monkeypatch.setattr(Predictor, "to_ids", lambda self, texts, *rest: seen.append(len(texts)) or read(self, texts))
    train(config(tmp_path, epochs=1), layer_examples(), progress=False)
    assert 180 not in seen  # train rows
    assert [entry["loss"] for entry in log_of(tmp_path)] == [entry["loss"] for entry in first]


def test_other_or_broken_ids_are_not_taken(tmp_path: Path) -> None:
    path, ids = tmp_path / "ids", [np.array(x, dtype=np.int32) for x in ([1, 2], [3], [4, 5, 6])]
    tokenizer, sizes = TextTokenizer.train(["Conv3\n"]), ModelConfig()
    key = key_of("rows", tokenizer, sizes)
    assert stored_ids(path, key) is None
    store_ids(path, key, ids)
    assert [x.tolist() for x in stored_ids(path, key) or ()] == [[1, 2], [3], [4, 5, 6]]
    others = [key_of("others", tokenizer, sizes), key_of("rows", TextTokenizer.train(["Pool\n"]), sizes)]
    others += [key_of("rows", tokenizer, replace(sizes, truncation=x)) for x in ("head", "tail")]
    assert len({key, *others}) == 5
    assert stored_ids(path, others[0]) is None
    path.write_bytes(path.read_bytes()[:-3])
    assert stored_ids(path, key) is None


def test_a_broken_state_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.pt").write_bytes(b"half")
    with pytest.raises(ValueError, match=r"state\.pt: expected a training state, got \w+\. Delete it"):
        train(config(tmp_path), layer_examples(), progress=False)


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
    result = train(config(tmp_path), only_train, progress=False)
    assert np.isnan(result.valid_tau)
    assert result.checkpoint.calibration == {}
    assert result.checkpoint.card["best_step"] == result.steps == 6
    assert [entry["valid_tau"] for entry in log_of(tmp_path)] == [None] * 3


def test_training_stops_when_patience_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taus = iter([np.nan, 0.2, 0.5, 0.4, np.nan, 0.5, 0.9])
    monkeypatch.setattr("nasrlm.training_run.kendall_tau", lambda *_: np.array([next(taus), np.nan]))
    result = train(config(tmp_path, epochs=50, patience=3), layer_examples(40), progress=False)
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
    with pytest.raises(OSError, match=r"log\.jsonl: expected to write this file, got Not a directory"):
        train(config(tmp_path / "file" / "run"), layer_examples(40), progress=False)


def test_a_named_objective_needs_labels_and_others_are_left_out(tmp_path: Path) -> None:
    half = with_labels(layer_examples(40), (slice(None), slice(1, 2)))  # no latency
    assert TrainingRun(config(tmp_path), half).objectives == OBJECTIVES[:1]
    with pytest.raises(
        ValueError, match=r"train: objectives: expected labels in rows .*, got none of latency_ms@raspi4"
    ):
        train(config(tmp_path, objectives=OBJECTIVES), half, progress=False)


def test_a_state_of_before_a_key_was_added_is_taken_up(tmp_path: Path) -> None:
    train(config(tmp_path), layer_examples(40), progress=False)
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    identity = json.loads(state["identity"])
    del identity["config"]["space_weights"], identity["config"]["model"]["head"]
    torch.save(state | {"identity": json.dumps(identity)}, tmp_path / "state.pt")
    assert train(config(tmp_path), layer_examples(40), progress=False).steps == 6
    identity["config"]["girth"] = 3
    torch.save(state | {"identity": json.dumps(identity)}, tmp_path / "state.pt")
    with pytest.raises(ValueError, match=r"got one with another config"):
        train(config(tmp_path), layer_examples(40), progress=False)


def test_a_stopped_run_reads_with_the_tokenizer_it_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = train(config(tmp_path), layer_examples(40), progress=False)
    monkeypatch.delattr(TextTokenizer, "train")
    again = train(config(tmp_path), layer_examples(40), progress=False)
    assert again.checkpoint.tokenizer.tokens == first.checkpoint.tokenizer.tokens


def test_what_is_saved_may_lie_between_the_initial_weights_and_the_learned(
    checkpoint: Checkpoint, checkpoint_folder: Path, tmp_path: Path
) -> None:
    def weights(share: float) -> dict[str, torch.Tensor]:
        chosen = config(tmp_path, initial_checkpoint=checkpoint_folder, initial_share=share)  # one run, calibrated anew
        return train(chosen, layer_examples(40), progress=False).checkpoint.model.state_dict()

    initial, learned = checkpoint.model.state_dict(), weights(0.0)
    for name, between in weights(0.25).items():
        torch.testing.assert_close(between, 0.25 * initial[name] + 0.75 * learned[name])
    assert any((initial[name] != x).any() for name, x in learned.items())


def first_losses(out: Path, steps: int = 4, **changes: Any) -> list[float]:
    run = TrainingRun(config(out, **changes), layer_examples())
    losses = []
    for run.step in range(steps):
        losses.append(run._train_step())
    return losses


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


def test_fine_tuning_starts_from_the_weights_it_is_given(checkpoint: Checkpoint, checkpoint_folder: Path) -> None:
    rows = layer_examples(40)
    new = Examples(rows.texts, (OBJECTIVES[1], "energy_mj@new"), rows.labels, rows.splits, rows.spaces)
    run = TrainingRun(config(Path("unused"), initial_checkpoint=checkpoint_folder), new)
    given, start = checkpoint.model.state_dict(), run.model.state_dict()
    assert run.model.code == checkpoint.model.code
    torch.testing.assert_close(start.pop("decoder.objectives.weight")[0], given["decoder.objectives.weight"][1])
    for name, weights in start.items():
        torch.testing.assert_close(weights, given[name], rtol=0, atol=0)


def test_an_extended_tokenizer_keeps_what_tokens_mean(checkpoint: Checkpoint, checkpoint_folder: Path) -> None:
    rows = layer_examples(40)
    other = Examples([f"{text}Relu\nDense\n" for text in rows.texts], OBJECTIVES, rows.labels, rows.splits, rows.spaces)
    size = checkpoint.tokenizer.vocabulary_size + 20
    chosen = config(Path("unused"), initial_checkpoint=checkpoint_folder, extend_tokenizer=True, vocabulary_size=size)
    run = TrainingRun(chosen, other)
    given, start = (model.state_dict()["encoder.embedding.weight"] for model in (checkpoint.model, run.model))
    old, new = checkpoint.tokenizer.tokens, run.predictor.checkpoint.tokenizer.tokens
    assert new[: len(old)] == old
    torch.testing.assert_close(start[: len(old)], given, rtol=0, atol=0)
    spelled = given[checkpoint.tokenizer.to_ids(["Dense\n"])[0]].mean(dim=0)
    torch.testing.assert_close(start[new.index("DenseĊ")], spelled)


def test_a_tokenizer_extended_for_a_space_reads_the_others_as_before(
    checkpoint: Checkpoint, checkpoint_folder: Path
) -> None:
    rows = layer_examples(40)
    spaces = np.array(["new", "known"] * 20)
    texts = [f"{text}Dense\n" if space == "new" else text for text, space in zip(rows.texts, spaces, strict=True)]
    examples = Examples(texts, OBJECTIVES, rows.labels, rows.splits, spaces)
    size = checkpoint.tokenizer.vocabulary_size + 20
    chosen = config(
        Path("unused"), initial_checkpoint=checkpoint_folder, extend_tokenizer=("new",), vocabulary_size=size
    )
    tokenizer = TrainingRun(chosen, examples).predictor.checkpoint.tokenizer
    train_rows = examples.split("train")
    for text, space in zip(train_rows.texts, train_rows.spaces, strict=True):
        (before,), (after,) = checkpoint.tokenizer.to_ids([text]), tokenizer.to_ids([text])
        assert after == before if space == "known" else len(after) < len(before)
    with pytest.raises(ValueError, match=r"extend_tokenizer: expected spaces with train rows, got other"):
        TrainingRun(chosen.model_copy(update={"extend_tokenizer": ("new", "other")}), examples)


def test_random_weights_can_read_the_tokens_of_a_checkpoint(checkpoint: Checkpoint, checkpoint_folder: Path) -> None:
    rows = layer_examples(40)
    run = TrainingRun(config(Path("unused"), initial_tokenizer=checkpoint_folder), rows)
    assert run.predictor.checkpoint.tokenizer.to_json() == checkpoint.tokenizer.to_json()
    given, start = (model.state_dict()["encoder.embedding.weight"] for model in (checkpoint.model, run.model))
    assert given.shape == start.shape
    assert not torch.allclose(given, start)


def test_fine_tuning_needs_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere: expected a checkpoint folder"):
        train(config(tmp_path, initial_checkpoint=tmp_path / "nowhere"), layer_examples(40), progress=False)


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
    assert nasrlm("train", "--config", tmp_path / "train.yaml").status == 0
    assert (tmp_path / "run" / "checkpoint" / "README.md").is_file()


def test_stored_ids_are_those_of_the_rows_that_are_learned(tmp_path: Path) -> None:
    train(config(tmp_path / "first", max_steps=1), layer_examples(), progress=False)
    examples = layer_examples()
    odd = np.arange(len(examples.texts)) % 2 == 1
    labels = examples.labels.copy()
    labels[odd, 0], labels[~odd, 1] = np.nan, np.nan
    tokenizer = tmp_path / "first" / "checkpoint"
    runs = [
        TrainingRun(
            config(tmp_path / "run", initial_tokenizer=tokenizer, objectives=(name,)), replace(examples, labels=labels)
        )
        for name in OBJECTIVES[:2]
    ]
    assert runs[0].ids_to_store.keys().isdisjoint(runs[1].ids_to_store)
