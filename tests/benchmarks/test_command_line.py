"""What is wrong with the words of a benchmark, or with what they name, is told in one line."""

import importlib
from pathlib import Path

import pytest

ABSENT = "absent.parquet"
GOALS = "max:accuracy@cifar10,min:latency_ms@raspi4"
COMMANDS = {
    "ablation": ([ABSENT, "--steps", "1", "--out", "out"], f"{ABSENT}: expected a table, got no such file."),
    "ablation, minutes": (
        ["--minutes-per-run", "0", "--peer", "absent"],
        "--minutes-per-run: expected more than 0, got 0.",
    ),
    "ablation, steps": (["--steps", "0"], "--steps: expected 1 or more, got 0."),
    "ablation, rows": (["--rows", "0"], "--rows: expected 1 or more, got 0."),
    "code_memory": (["--programs", "0"], "--programs: expected 1 or more, got 0."),
    "code_memory, few": (["--programs", "3"], "expected two or more to learn from and to test, got 3 in all."),
    "code_memory, epochs": (["--epochs", "0"], "--epochs: expected 1 or more, got 0."),
    "engine": (["--space", "moon"], "space: expected one of "),
    "engine, tokens": (["--tokens-per-state", "0"], "ModelConfig: expected sizes of 1 or more"),
    "engine, contexts": (["--contexts", "0"], "or a number of tokens, got '0'."),
    "engine, texts": (["--texts", "0"], "--texts: expected 1 or more, got 0."),
    "engine, threads": (["--threads", "0"], "--threads: expected 1 or more, got 0."),
    "engine, repeats": (["--repeats", "0"], "--repeats: expected 1 or more, got 0."),
    "scale": (["--device", "nowhere"], "device: expected one that torch can use here, got 'nowhere'"),
    "scale, batch": (["--batch", "0"], "--batch: expected 1 or more, got 0."),
    "scale, length": (["--length", "0"], "--length: expected 1 or more, got 0."),
    "search": (
        ["--tables", "absent", "--methods", "random"],
        "nasbench201.parquet: expected a table, got no such file.",
    ),
    "search, objectives": (
        ["--spaces", "nasbench201", "mnasnet", "--objectives", GOALS],
        "--objectives: expected one space beside it, got nasbench201, mnasnet. Name it.",
    ),
    "simulation": (["--table", ABSENT, "--objectives", GOALS], f"{ABSENT}: expected a table, got no such file."),
    "specialists": (["--recipes", "absent.yaml"], "absent.yaml: expected a YAML file, got No such file"),
    "unseen_cells": ([ABSENT], f"{ABSENT}: expected a table, got no such file."),
    "weak_spots": ([ABSENT], f"{ABSENT}: expected a table, got no such file."),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_not_there_is_told_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words, message = COMMANDS[name]
    with pytest.raises(SystemExit) as exit_:
        importlib.import_module(f"benchmarks.{name.partition(',')[0]}").main(words)
    told = capsys.readouterr().err
    assert exit_.value.code == 2
    assert message in told
    assert told.count("\n") == 1
