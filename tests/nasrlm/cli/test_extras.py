"""A package that is missing is told in one line if an extra has it."""

import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from nasrlm.cli import training
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.workplace import assert_one_line


def test_a_package_of_an_extra_that_is_missing_is_one_line(
    nasrlm: CommandLine, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    finished = nasrlm("convert", "--table", "table.csv", "--out", "x.parquet", "--engine", "ray")
    assert (finished.status, finished.stderr.splitlines()[-1]) == (
        2,
        "nasrlm: engine ray: expected the package ray, got none. Install nasrlm[ray].",
    )
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    Path("logged.yaml").write_text("table: table.csv\nout: run\ntensorboard: true\n")
    finished = nasrlm("train", "--config", "logged.yaml")
    assert_one_line(finished, "train: expected the package tensorboard, got none. Install nasrlm[tensorboard].")


def test_any_other_that_is_missing_shows_a_traceback(
    nasrlm: CommandLine, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        training, "train", Mock(side_effect=ImportError("libcudart.so: cannot open shared object file"))
    )
    Path("good.yaml").write_text("table: table.csv\nout: run\n")
    with pytest.raises(ImportError, match="libcudart"):
        nasrlm("train", "--config", "good.yaml")
