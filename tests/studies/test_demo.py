"""The demo replaces an earlier demo, and nothing else."""

from pathlib import Path

import pytest

from studies.demo import MEASURED_FILE, run_demo
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


def test_another_study_is_not_replaced(tmp_path: Path) -> None:
    search(toy_config(trials=10), SPACE, ToyEvaluator(), tmp_path)
    before = (tmp_path / "history.parquet").read_bytes()
    with pytest.raises(StudyError, match=r"expected no study, or that of an earlier demo, got another\."):
        run_demo(tmp_path, trials=10, repeats=1, progress=False)
    assert (tmp_path / "history.parquet").read_bytes() == before
