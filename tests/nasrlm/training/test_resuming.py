"""A run that was stopped ends as if it had not been."""

import json
import re
import signal
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nasrlm.text.tokenizer import TextTokenizer
from nasrlm.training.interruption import interrupts_wait
from nasrlm.training.run import TrainingRun, TrainResult
from nasrlm.training.run_state import BY_CONTENT, FREE_TO_CHANGE, KINDS, write_state
from nasrlm.training.train import train
from tests.nasrlm.runs import Killed, config, killed_in, log_of, weights_of
from tests.nasrlm.scenes import OBJECTIVES, SIZES, layer_examples


@pytest.fixture(scope="module")
def unharmed_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainResult, Path]:
    out = tmp_path_factory.mktemp("unharmed")
    return train(config(out), layer_examples(), progress=False), out


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


def interrupting_in(step: int, times: int) -> Callable[[TrainingRun], float]:
    """``_train_step`` that is interrupted before it does anything at a step."""
    original = TrainingRun._train_step

    def interrupted(self: TrainingRun) -> float:
        for _ in range(times if self.step == step else 0):
            signal.raise_signal(signal.SIGTERM)
        return original(self)

    return interrupted


@pytest.fixture
def _terminated_as_by_ctrl_c() -> Iterator[None]:
    """As ``nasrlm.cli.main`` has it."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("_terminated_as_by_ctrl_c")
@pytest.mark.parametrize("step", [0, 7, 11, 35])  # of 12 with an evaluation, 36 in all
def test_an_interrupted_run_has_saved_the_step_that_it_was_at(
    unharmed_run: tuple[TrainResult, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(TrainingRun, "_train_step", interrupting_in(step, times=1))
        with pytest.raises(KeyboardInterrupt):
            train(config(tmp_path, save_every_seconds=3600), layer_examples())
    assert torch.load(tmp_path / "state.pt", weights_only=True)["step"] == step + 1
    assert not (tmp_path / "checkpoint").exists()
    monkeypatch.setattr(TrainingRun, "_train_step", killed_in("_train_step", step))  # which is not taken again
    resumed = train(config(tmp_path, save_every_seconds=3600), layer_examples())
    assert log_of(tmp_path) == log_of(unharmed_run[1])
    for a, b in zip(weights_of(resumed), weights_of(unharmed_run[0]), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.usefixtures("_terminated_as_by_ctrl_c")
def test_a_second_interrupt_is_not_waited_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrainingRun, "_train_step", interrupting_in(7, times=2))
    with pytest.raises(KeyboardInterrupt):
        train(config(tmp_path, save_every_seconds=3600), layer_examples())
    assert not (tmp_path / "state.pt").exists()


@pytest.mark.usefixtures("_terminated_as_by_ctrl_c")
def test_of_several_processes_none_waits_for_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = TrainingRun(config(tmp_path, save_every_seconds=3600), layer_examples())
    run.processes.count = 2
    monkeypatch.setattr(TrainingRun, "_train_step", interrupting_in(0, times=1))
    with pytest.raises(KeyboardInterrupt):
        run.finish()
    assert not (tmp_path / "state.pt").exists()


@pytest.mark.usefixtures("_terminated_as_by_ctrl_c")
def test_signals_that_are_not_ours_to_handle_stay_as_they_are() -> None:
    def waiting() -> bool:
        with interrupts_wait():
            return signal.getsignal(signal.SIGTERM) is not signal.default_int_handler

    assert waiting()
    with ThreadPoolExecutor() as threads:
        assert not threads.submit(waiting).result()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with interrupts_wait():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def test_a_state_is_saved_without_a_copy_of_it(tmp_path: Path) -> None:
    weights = torch.zeros(64, 2**16)  # 16 MB
    tracemalloc.start()
    write_state(tmp_path / "state.pt", {**dict.fromkeys(KINDS), "model": dict(enumerate(weights))})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < weights.nbytes / 4


def test_a_state_that_a_full_disk_does_not_hold_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object) -> None:
        raise RuntimeError("unexpected pos 64 vs 0")

    write_state(tmp_path / "state.pt", dict.fromkeys(KINDS))
    before = (tmp_path / "state.pt").read_bytes()
    monkeypatch.setattr(torch, "save", full_disk)
    with pytest.raises(OSError, match=r"state\.pt: expected to write this file, got unexpected pos .* disk full"):
        write_state(tmp_path / "state.pt", dict.fromkeys(KINDS))
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("state.pt", before)]


def test_a_run_that_was_killed_while_it_saved_leaves_no_files_behind(tmp_path: Path) -> None:
    run = config(tmp_path, max_steps=2)
    (tmp_path / ".state.pt.abcd1234").write_bytes(b"half a state")
    train(run, layer_examples(), progress=False)
    assert {path.name for path in tmp_path.iterdir()} == {
        "checkpoint",
        "log.jsonl",
        "state.pt",
        "token_ids.safetensors",
    }


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    first = train(config(tmp_path), layer_examples(), progress=False)
    before = contents()
    again = train(config(tmp_path), layer_examples(), progress=False)
    assert again.steps == first.steps
    assert again.seconds == first.seconds
    assert len(log_of(tmp_path)) == 3
    assert contents() == before


def test_a_run_that_shall_not_resume_starts_again(tmp_path: Path) -> None:
    train(config(tmp_path), layer_examples(), progress=False)
    train(config(tmp_path, resume=False, epochs=1), layer_examples(), progress=False)
    assert [entry["step"] for entry in log_of(tmp_path)] == [12]


@pytest.mark.parametrize(
    ("change", "rows", "told"),
    [
        ({"seed": 1}, 240, "seed 0 instead of 1"),
        ({"epochs": 4, "max_steps": 9}, 240, "epochs 1 instead of 4; max_steps null instead of 9"),
        ({"monitor": OBJECTIVES[:1]}, 240, r"monitor \[\] instead of \[\"accuracy@cifar10\"\]"),
        ({"model": replace(SIZES, hidden=48)}, 240, "model.hidden 32 instead of 48"),
        ({}, 236, "other rows"),
        ({"seed": 1}, 236, "seed 0 instead of 1; other rows"),
    ],
)
def test_the_state_of_another_run_is_refused(tmp_path: Path, change: dict[str, Any], rows: int, told: str) -> None:
    train(config(tmp_path, epochs=1), layer_examples(), progress=False)
    with pytest.raises(ValueError, match=rf"state\.pt: expected the state of this run, got one with {told}\. Choose "):
        train(config(tmp_path, **{"epochs": 1} | change), layer_examples(rows), progress=False)


def test_a_run_goes_on_with_other_values_of_what_is_free_to_change(
    unharmed_run: tuple[TrainResult, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(TrainingRun, "_train_step", killed_in("_train_step", 20))
        with pytest.raises(Killed):
            train(config(tmp_path / "a", save_every_seconds=0), layer_examples(), progress=False)
    (tmp_path / "a").rename(tmp_path / "b")
    others = {"table": "moved/layers.csv", "device": "cpu:0", "patience": 9, "sources": ["mine"], "tensorboard": False}
    untold = {"initial_share", "out", "resume", "save_every_seconds", "shard", "weight_bits"}
    assert set(others) | untold == FREE_TO_CHANGE
    monkeypatch.setattr(TrainingRun, "_train_step", killed_in("_train_step", 0))  # it does not start again
    resumed = train(config(tmp_path / "b", **others), layer_examples(), progress=False)
    for a, b in zip(weights_of(resumed), weights_of(unharmed_run[0]), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    assert resumed.checkpoint.card["training"]["table"] == ["moved/layers.csv"]


def test_a_run_without_patience_goes_on_with_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first evaluation is the best of any run."""
    taus = {2: 0.9, 4: 0.1, 6: 0.2, 8: 0.3}
    monkeypatch.setattr(TrainingRun, "_judge", lambda self: ({}, taus[self.step]))
    rows = layer_examples(40)
    whole = train(config(tmp_path / "whole", epochs=4), rows, progress=False)
    assert train(config(tmp_path / "stopped", epochs=4, patience=1), rows, progress=False).steps == 4
    resumed = train(config(tmp_path / "stopped", epochs=4, patience=6), rows, progress=False)
    assert (resumed.steps, log_of(tmp_path / "stopped")) == (8, log_of(tmp_path / "whole"))
    assert resumed.checkpoint.sha256 == whole.checkpoint.sha256


def test_what_is_free_to_change_is_in_the_docs() -> None:
    docs = (Path(__file__).resolve().parents[3] / "docs" / "training.md").read_text(encoding="utf-8")
    (paragraph,) = [x for x in docs.split("\n\n") if x.startswith("A stopped run continues if")]
    assert set(re.findall(r"`(\w+)`", paragraph)) == {*FREE_TO_CHANGE, *BY_CONTENT, "monitor"}


def test_checkpoints_to_begin_with_may_be_moved_but_not_changed(tmp_path: Path) -> None:
    train(config(tmp_path / "first", epochs=1), layer_examples(), progress=False)
    (tmp_path / "first" / "checkpoint").rename(tmp_path / "here")
    begun = config(tmp_path / "second", epochs=1, initial_checkpoint=tmp_path / "here")
    train(begun, layer_examples(), progress=False)
    (tmp_path / "here").rename(tmp_path / "there")
    moved = begun.model_copy(update={"initial_checkpoint": tmp_path / "there"})
    assert train(moved, layer_examples(), progress=False).steps == 12
    without = begun.model_copy(update={"initial_checkpoint": None, "initial_tokenizer": tmp_path / "there"})
    with pytest.raises(ValueError, match=r"got one with initial_checkpoint true instead of false; initial_tokenizer f"):
        train(without, layer_examples(), progress=False)


def test_a_run_on_an_own_space_is_resumed_from_another_working_directory(tmp_path: Path) -> None:
    rows = layer_examples(40)
    for path in ("own.py:Own", "../here/own.py:Own"):
        run = config(tmp_path, epochs=1).model_copy(update={"space": path, "space_weights": {path: 2.0}})
        assert train(run, replace(rows, spaces=np.full(len(rows), path)), progress=False).steps == 2
    run = run.model_copy(update={"space_weights": {path: 3.0}})
    with pytest.raises(ValueError, match=r'got one with space_weights {"own\.py:Own": 2\.0} instead of'):
        train(run, replace(rows, spaces=np.full(len(rows), path)), progress=False)


def test_a_state_of_other_spaces_or_another_beginning_is_refused(tmp_path: Path) -> None:
    message = r"state\.pt: expected the state of this run, got one with "
    first, second = config(tmp_path / "first", epochs=1), config(tmp_path / "second", epochs=1)
    second = second.model_copy(update={"initial_checkpoint": tmp_path / "first" / "checkpoint"})
    train(first, layer_examples(), progress=False)
    train(second, layer_examples(), progress=False)
    with pytest.raises(ValueError, match=f"{message}other spaces of the rows"):
        train(second, replace(layer_examples(), spaces=np.full(240, "moved")), progress=False)
    train(first.model_copy(update={"seed": 5, "resume": False}), layer_examples(), progress=False)
    with pytest.raises(ValueError, match=f"{message}another initial checkpoint"):
        train(second, layer_examples(), progress=False)


def test_a_broken_state_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.pt").write_bytes(b"half")
    with pytest.raises(ValueError, match=r"state\.pt: expected a training state, got \w+\. Delete it"):
        train(config(tmp_path), layer_examples(), progress=False)
    torch.save([1], tmp_path / "state.pt")
    with pytest.raises(ValueError, match=r"state\.pt: expected a training state, got list\. Delete it"):
        train(config(tmp_path), layer_examples(), progress=False)
    torch.save(dict.fromkeys(KINDS.keys() - {"optimizers", "best"}), tmp_path / "state.pt")
    with pytest.raises(ValueError, match=r"state\.pt: expected a training state, got none of best, optimizers\."):
        train(config(tmp_path), layer_examples(), progress=False)


def test_a_state_with_values_of_another_kind_is_refused(tmp_path: Path) -> None:
    train(config(tmp_path, epochs=1), layer_examples(40), progress=False)
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    message = r"state\.pt: expected a training state, got .*\. Delete it\.$"
    inner: list[tuple[str, Any]] = [
        ("identity", "half"),
        ("identity", '{"own": 1}'),
        ("tokenizer", "half"),
        ("losses", [None]),
        ("log", [3]),
        ("best", (0.5, 3)),
        ("best", ("high", 3, {})),
        ("best", (0.5, 3, {"weight": torch.zeros(3)})),
        ("model", {"weight": torch.zeros(3)}),
        ("average", {"weight": 3}),
        ("optimizers", []),
        ("optimizers", [{}, {}]),
    ]
    for key, value in [*((key, {1, 2}) for key in KINDS), *inner]:
        torch.save(state | {key: value}, tmp_path / "state.pt")
        with pytest.raises(ValueError, match=message):
            train(config(tmp_path, epochs=1), layer_examples(40), progress=False)
    torch.save(state | {"step": "3", "log": None}, tmp_path / "state.pt")
    with pytest.raises(ValueError, match="got str for step, NoneType for log"):
        train(config(tmp_path, epochs=1), layer_examples(40), progress=False)


def test_a_state_of_before_a_key_was_added_is_taken_up(tmp_path: Path) -> None:
    train(config(tmp_path), layer_examples(40), progress=False)
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    identity = json.loads(state["identity"])
    del identity["config"]["space_weights"], identity["config"]["model"]["head"]
    torch.save(state | {"identity": json.dumps(identity)}, tmp_path / "state.pt")
    assert train(config(tmp_path), layer_examples(40), progress=False).steps == 6
    identity["config"]["girth"] = 3
    torch.save(state | {"identity": json.dumps(identity)}, tmp_path / "state.pt")
    with pytest.raises(ValueError, match=r"got one with girth 3, which this version does not accept\."):
        train(config(tmp_path), layer_examples(40), progress=False)


def test_a_stopped_run_reads_with_the_tokenizer_it_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = train(config(tmp_path), layer_examples(40), progress=False)
    monkeypatch.delattr(TextTokenizer, "train")
    again = train(config(tmp_path), layer_examples(40), progress=False)
    assert again.checkpoint.tokenizer.tokens == first.checkpoint.tokenizer.tokens
