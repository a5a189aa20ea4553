"""How a command ends that did not finish: too little memory, an interrupt, a closed pipe, or mistakes of our own."""

import json
import os
import sys
from pathlib import Path

import pytest
import torch

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.cli.verbs import convert
from nasrlm.training.config import TrainConfig
from studies.config import SearchConfig
from tests.nasrlm.cli.test_cli import ARCHITECTURE, GOALS, SPACE
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.workplace import assert_one_line


def test_our_own_mistakes_show_a_traceback(nasrlm: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkpoint, "from_pretrained", None)
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        nasrlm("info")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 3.64 TiB"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nand more"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_too_little_memory_is_one_line(nasrlm: CommandLine, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def asking(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Checkpoint, "from_pretrained", asking)
    said = str(error).partition("\n")[0]
    assert_one_line(nasrlm("info"), f"expected enough memory, got too little ({said}). Process less at a time")


def test_code_that_ends_itself_does_not_end_a_command_as_done(
    nasrlm: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leaving(*_: object, **__: object) -> None:
        sys.exit()

    monkeypatch.setattr(Checkpoint, "from_pretrained", leaving)
    assert_one_line(nasrlm("info"), "SystemExit")


def test_a_reader_that_has_had_enough_is_no_error(nasrlm: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.setattr(sys, "stderr", sys.stderr)  # typer puts others in their places
    monkeypatch.setattr(sys, "stdout", os.fdopen(writing, "w"))
    finished = nasrlm("sample", *SPACE)
    assert (finished.status, finished.stderr) == (1, "")


def test_a_closed_stderr_costs_no_results(
    nasrlm: CommandLine, monkeypatch: pytest.MonkeyPatch, checkpoint_folder: Path
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    words = ("predict", *SPACE, ARCHITECTURE, "--checkpoint", checkpoint_folder, "--json")
    finished = nasrlm(*words, "--objectives", "latency_ms@unheard")
    assert (finished.status, finished.stdout) == (2, "")
    monkeypatch.setattr(sys, "stderr", None)
    finished = nasrlm(*words)
    assert (finished.status, len(json.loads(finished.stdout))) == (0, 1)


def test_an_interrupt_ends_with_its_own_status(
    nasrlm: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "from_pretrained", interrupted)
    finished = nasrlm("info")
    assert (finished.status, finished.stderr) == (130, "nasrlm: interrupted.\n")

    def importing(*_: object, **__: object) -> None:
        raise ImportError("initialization failed") from KeyboardInterrupt()

    monkeypatch.setattr(Checkpoint, "from_pretrained", importing)
    finished = nasrlm("info")
    assert (finished.status, finished.stderr) == (130, "nasrlm: interrupted.\n")
    monkeypatch.setattr(TrainConfig, "load", interrupted)
    assert nasrlm("train", "--config", "c.yaml").stderr == "nasrlm: interrupted. Run the same command to continue.\n"
    monkeypatch.setattr(SearchConfig, "__post_init__", interrupted)
    for words in (("--out", tmp_path / "study"), (f"--out={tmp_path / 'study'}",)):
        asked = ("search", *SPACE, "--objectives", GOALS, *words)
        assert nasrlm(*asked).stderr == "nasrlm: interrupted. Nothing was stored yet.\n"
        (tmp_path / "study").mkdir(exist_ok=True)
        (tmp_path / "study" / "study.json").touch()
        assert nasrlm(*asked).stderr == "nasrlm: interrupted. Run the same command with --resume to continue.\n"
        (tmp_path / "study" / "study.json").unlink()
    monkeypatch.setattr(convert, "convert_whole_table", interrupted)
    monkeypatch.setattr(convert, "convert_listed", interrupted)
    for column, advice in (
        ("architecture", " Run the same command with --resume to continue."),
        ("file", ""),  # converted at once
    ):
        (tmp_path / "t.csv").write_text(f"{column}\nx\n")
        finished = nasrlm("convert", "--table", tmp_path / "t.csv", "--out", "texts.parquet")
        assert finished.stderr == f"nasrlm: interrupted.{advice}\n"
    monkeypatch.setitem(sys.modules, "studies.folder", None)  # as if its import had been interrupted
    finished = nasrlm("search", *SPACE, "--objectives", GOALS, "--out", tmp_path / "study")
    assert (finished.status, finished.stderr) == (130, "nasrlm: interrupted.\n")
