"""All importers have one shape, and the command writes what they read."""

import importlib
import inspect
import json
import sys
from pathlib import Path

import pytest

from converters.importers import IMPORTERS, read_benchmark
from nasrlm.cli import main
from studies.tables.files import objective_columns, read_table
from tests.converters.importers.scenes import write_tfrecord
from tests.converters.importers.test_nasbench101 import run


@pytest.mark.parametrize("name", IMPORTERS)
def test_one_shape(name: str) -> None:
    parameters = inspect.signature(importlib.import_module(IMPORTERS[name]).read).parameters
    assert list(parameters)[:2] == ["path", "progress"]
    assert all(parameter.default is not parameter.empty for parameter in list(parameters.values())[1:])


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"import: expected one of code-regression, .* got 'nb201'\."):
        read_benchmark("nb201", tmp_path)
    with pytest.raises(ValueError, match="got no such file or folder"):
        read_benchmark("nasbench201", tmp_path / "none.pth")


def command(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["nasrlm", "import", *map(str, words)])
    with pytest.raises(SystemExit) as exit_:
        main()
    return int(exit_.value.code or 0)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    write_tfrecord(tmp_path / "a.tfrecord", [run(12, 0.5), run(108, 0.9)])
    out = tmp_path / f"table.{ending}"
    assert command(monkeypatch, "nasbench101", tmp_path / "a.tfrecord", "--out", out, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    frame = read_table(out)
    assert printed == {"rows": 1, "columns": list(frame.columns)}
    assert "accuracy@cifar10" in objective_columns(frame, out)


def test_bad_input_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"x" * 100)
    assert command(monkeypatch, "nasbench101", tmp_path / "a.tfrecord", "--out", tmp_path / "t.csv") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "record 0: expected a length with its checksum" in printed.err
    assert not (tmp_path / "t.csv").exists()
