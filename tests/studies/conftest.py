"""What the tests of studies share."""

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.exceptions import ExperimentalWarning

from nasrlm.cli import main
from tests.nasrlm.conftest import learning_little  # noqa: F401
from tests.nasrlm.scenes import network_checkpoint
from tests.studies.search_verb import Search


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """No study draws itself, which takes longer than the toy searches."""
    monkeypatch.setattr("studies.figures.plots.plot_study", lambda folder: ())


@pytest.fixture
def quiet_optuna() -> Iterator[None]:
    """Optuna tells errors alone, and nothing of what is experimental."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield
    optuna.logging.set_verbosity(verbosity)


@pytest.fixture
def search(
    tmp_path: Path, without_figures: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Search:
    """``search("--option", value)`` in an empty folder: what it prints with --json, and on stderr.

    ``without`` leaves options out that are given else.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_bench", raising=False)  # of another test's folder
    network_checkpoint().save_pretrained(tmp_path / "checkpoint")
    fixed = {"--space": "nasbench201", "--checkpoint": "checkpoint", "--out": "study"}
    short = {"--trials": "6", "--population": "8", "--generations": "2", "--batch": "3"}

    def run(*words: object, without: Sequence[str] = ()) -> tuple[Any, str]:
        pairs = [pair for pair in (fixed | short).items() if pair[0] not in without]
        monkeypatch.setattr(sys, "argv", ["nasrlm", "search", *chain(*pairs), *map(str, words), "--json"])
        with pytest.raises(SystemExit) as exit_:
            main()
        printed = capsys.readouterr()
        assert not exit_.value.code, printed.err
        return json.loads(printed.out), printed.err

    return run
