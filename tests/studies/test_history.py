"""Histories survive their file, and are not written too often."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from studies.history import History
from studies.history_writer import SHARE, HistoryWriter


def make_history(num_rows: int) -> History:
    history = History(("accuracy@toy",), interval=0.8)
    for row in range(num_rows):
        values = np.array([[0.1 + row, np.nan, 1 / 3]])
        history.append(architecture=f"a{row}", key=f"k{row}", genotype=(row, 0), values=values, feasible=row > 0)
    return history


@pytest.mark.parametrize("num_rows", [0, 1, 3])
def test_a_history_is_read_as_written(num_rows: int, tmp_path: Path) -> None:
    history = make_history(num_rows)
    history.save(tmp_path / "history.parquet")
    loaded = History.load(tmp_path / "history.parquet", history.objectives)
    pd.testing.assert_frame_equal(loaded.to_frame(), history.to_frame(), check_exact=True)
    assert loaded.interval == 0.8
    assert [loaded.row_of(key) for key in (*history.keys, "k9")] == [*range(num_rows), None]
    assert list(loaded.to_frame().columns[4:]) == ["accuracy@toy", "accuracy@toy low", "accuracy@toy high", "feasible"]


@pytest.mark.parametrize(("seconds", "writes"), [(0.1, 250), (0.34, 1_000), (5.0, 1_000)])
def test_writing_costs_its_share(seconds: float, writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write takes 0.01 s, the first 1 s; what lasts longer than the wait is always written."""
    clock = [0.0]
    written: list[float] = []

    def save(history: History, path: Path) -> None:
        clock[0] += 0.01 if written else 1.0
        written.append(clock[0])

    monkeypatch.setattr(History, "save", save)
    monkeypatch.setattr("studies.history_writer.time.monotonic", lambda: clock[0])
    writer = HistoryWriter(tmp_path / "history.parquet")
    for _ in range(1_000):
        writer.offer(History(()))
        clock[0] += seconds
    assert len(written) == pytest.approx(writes, abs=10)
    assert 0.01 * len(written) <= SHARE * clock[0]
