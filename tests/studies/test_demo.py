"""The demo replaces an earlier demo, and nothing else."""

import sys
from pathlib import Path

import pytest

from studies.demo import MEASURED_FILE, main, run_demo
from studies.folder import StudyError
from studies.search import search
from tests.studies.scenes import SPACE, ToyEvaluator, toy_config

pytestmark = pytest.mark.usefixtures("without_figures")


def test_an_earlier_demo_is_replaced_and_other_files_stay(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    for trials in (30, 40):
        assert run_demo(tmp_path, trials=trials, repeats=1, progress=False).evaluations == trials
    assert (tmp_path / MEASURED_FILE).exists()
    assert (tmp_path / "mine.txt").read_text() == "keep me"


def test_an_out_that_is_a_file_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "argv", ["demo", "--out", str(tmp_path / "file")])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert capsys.readouterr().err.endswith("expected a folder that can be created, got File exists. Choose another.\n")


def test_another_study_is_not_replaced(tmp_path: Path) -> None:
    search(toy_config(trials=10), SPACE, ToyEvaluator(), tmp_path)
    before = (tmp_path / "history.parquet").read_bytes()
    with pytest.raises(StudyError, match=r"expected no study, or that of an earlier demo, got another\."):
        run_demo(tmp_path, trials=10, repeats=1, progress=False)
    assert (tmp_path / "history.parquet").read_bytes() == before
