"""What is wrong with the words of a benchmark, or with what they name, is told in one line."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from benchmarks import unknown_spaces
from benchmarks.judged import Config
from benchmarks.unseen_networks import measure
from benchmarks.weak_spots import tables
from nasrlm.files import write_table
from nasrlm.predictor import Predictor
from tests.nasrlm.scenes import architecture_table, network_checkpoint

ABSENT = "absent.parquet"
GOALS = "max:accuracy@cifar10,min:latency_ms@raspi4"
ACCURACIES = [name for name in Predictor.from_pretrained().of_space("nasbench201").objectives if "accuracy" in name]
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
    "engine, tokens": (
        ["--tokens-per-state", "0"],
        "ModelConfig: tokens_per_state: expected an int of 1 or more, got 0.",
    ),
    "engine, contexts": (["--contexts", "0"], "or a number of tokens, got '0'."),
    "engine, texts": (["--texts", "0"], "--texts: expected 1 or more, got 0."),
    "engine, threads": (["--threads", "0"], "--threads: expected 1 or more, got 0."),
    "engine, repeats": (["--repeats", "0"], "--repeats: expected 1 or more, got 0."),
    "scale": (["--device", "nowhere"], "device: expected one that torch can use here, got 'nowhere'"),
    "scale, no peak": (["--peak-tflops", "nan"], "--peak-tflops: expected more than 0, got nan."),
    "scale, batch": (["--batch", "0"], "--batch: expected 1 or more, got 0."),
    "scale, length": (["--length", "0"], "--length: expected 1 or more, got 0."),
    "scale, peak": (["--peak-tflops", "-1"], "--peak-tflops: expected more than 0, got -1."),
    "search": (
        ["--tables", "absent", "--methods", "random"],
        "nasbench201.parquet: expected a table, got no such file.",
    ),
    "search, objectives": (
        ["--spaces", "nasbench201", "mnasnet", "--objectives", GOALS],
        "--objectives: expected a single space in --spaces, got nasbench201, mnasnet. Give one.",
    ),
    "search, counts": (["--counts", "25", "0"], "--counts: expected 1 or more, got 0."),
    "simulation, counts": (
        ["--table", ABSENT, "--objectives", GOALS, "--counts", "0"],
        "--counts: expected 1 or more, got 0.",
    ),
    "simulation": (["--table", ABSENT, "--objectives", GOALS], f"{ABSENT}: expected a table, got no such file."),
    "specialists": (["--recipes", "absent.yaml"], "absent.yaml: expected a YAML file, got No such file"),
    "unknown_spaces": ([ABSENT], f"{ABSENT}: expected a table, got no such file."),
    "unseen_networks": ([ABSENT], f"{ABSENT}: expected a table, got no such file."),
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


@pytest.mark.parametrize("name", ["unseen_networks", "weak_spots"])
def test_a_table_without_test_rows_is_told_in_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = architecture_table(8).assign(split="train", **dict.fromkeys(ACCURACIES, 90.0))
    write_table(frame, tmp_path / "train.parquet")
    write_table(frame.drop(columns="split"), tmp_path / "none.parquet")
    main = importlib.import_module(f"benchmarks.{name}").main
    for table, message in (("train", "expected two test rows or more with accuracy@cifar10, got 0"), ("none", "split")):
        with pytest.raises(SystemExit):
            main([str(tmp_path / f"{table}.parquet")])
        told = capsys.readouterr().err
        assert message in told
        assert told.count("\n") == 1


def test_networks_that_train_rows_have_are_told_from_others(tmp_path: Path) -> None:
    path, frame = tmp_path / "table.parquet", architecture_table(12)
    frame["split"] = ["train"] * 4 + ["test"] * 8
    frame.loc[4:6, "architecture"] = frame.loc[0:2, "architecture"].to_numpy()
    frame = frame.assign(**dict.fromkeys(ACCURACIES, np.linspace(80, 90, 12)))
    write_table(frame, path)
    found = measure(Config(path))
    assert {name: {x["n"] for x in part.values()} for name, part in found.items()} == {
        "test": {8},
        "not in train": {5},
        "in train": {3},
    }
    first, *others = ACCURACIES
    frame.loc[8:, first], frame.loc[4:7, others] = np.nan, np.nan  # no row has them all
    write_table(frame, path)
    assert {name: x["n"] for name, x in measure(Config(path))["test"].items()} == dict.fromkeys(ACCURACIES, 4)
    write_table(frame.assign(space="fbnet"), path)
    with pytest.raises(ValueError, match="expected a space whose accuracy the checkpoint knows, got fbnet"):
        measure(Config(path))
    write_table(frame.assign(space=["nasbench201"] * 11 + ["fbnet"]), path)
    with pytest.raises(ValueError, match="expected rows of one space, got several or none"):
        measure(Config(path))


def test_costs_of_an_unknown_space_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder = tmp_path / "table.parquet", tmp_path / "checkpoint"
    frame = architecture_table(40)
    write_table(frame, path)
    network_checkpoint().save_pretrained(folder)
    for name, value in (("LABELS", (4, 8)), ("DRAWS", 2), ("POOL", 12)):
        monkeypatch.setattr(unknown_spaces, name, value)
    found = unknown_spaces.measure(Config(path, folder))
    assert list(found) == ["latency_ms@raspi4", "latency_ms@unheard"]
    for of_cost in found.values():
        assert list(of_cost) == ["macs", "activations", "operators", "4", "8"]
        assert -1 <= of_cost["8"]["worst"] <= of_cost["8"]["mean"] <= 1
        assert 0 <= of_cost["8"]["coverage_80"] <= 1
    with pytest.raises(ValueError, match=r"expected costs of one space other than .*, got nasbench201"):
        unknown_spaces.measure(Config(path))


def test_parts_without_rows_have_no_ranks(tmp_path: Path) -> None:
    write_table(architecture_table(8), tmp_path / "table.parquet")
    of_parts, _ = tables(Config(tmp_path / "table.parquet"))
    counts, ranks = (list(of_parts.columns[column].cells) for column in (1, 2))
    assert "0" in counts
    assert {ranks[row] for row, count in enumerate(counts) if count == "0"} == {"nan"}
