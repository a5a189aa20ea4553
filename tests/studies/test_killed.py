"""A search that is killed with SIGKILL at random moments, and resumed, ends like one that never was."""

import random
import signal
from pathlib import Path

import pandas as pd
import pytest

from tests.studies import killed

LONGEST = 0.5  # seconds until a kill; all evaluations together take longer than all of these


def assert_survives(kind: str, kills: int, seed: int, folder: Path) -> None:
    killed.run(kind, folder / "whole", 0.0)
    rng = random.Random(seed)
    for _ in range(kills):
        process = killed.start(killed.run, kind, folder / "killed", kills * LONGEST)
        process.join(rng.uniform(0.02, LONGEST))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    last = killed.start(killed.run, kind, folder / "killed", kills * LONGEST)
    last.join()
    assert last.exitcode == 0

    whole, resumed = (pd.read_parquet(folder / name / "study/history.parquet") for name in ("whole", "killed"))
    pd.testing.assert_frame_equal(resumed, whole)
    if kind == "guided":
        asked = (folder / "killed" / killed.ASKED_FILE).read_text().split()
        assert list(dict.fromkeys(asked)) == whole["architecture"][whole["status"] == "evaluated"].tolist()
        assert len(asked) - len(set(asked)) <= kills  # only what was running when the process was killed


@pytest.mark.parametrize("kind", ["surrogate", "guided"])
def test_three_kills(kind: str, tmp_path: Path) -> None:
    assert_survives(kind, 3, 0, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["surrogate", "guided"])
def test_twenty_kills(kind: str, seed: int, tmp_path: Path) -> None:
    assert_survives(kind, 20, seed, tmp_path)
