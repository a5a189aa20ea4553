"""Histories survive their file, and are not written too often."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from studies.history import History, HistoryWriter


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


def test_writing_costs_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write takes 0.01 s, the first 1 s; batches come every 0.1 s."""
    clock = [0.0]
    writes: list[float] = []

    def save(history: History, path: Path) -> None:
        clock[0] += 0.01 if writes else 1.0
        writes.append(clock[0])

    monkeypatch.setattr(History, "save", save)
    monkeypatch.setattr("studies.history.time.monotonic", lambda: clock[0])
    writer = HistoryWriter(tmp_path / "history.parquet", share=0.05)
    for _ in range(1_000):
        writer.offer(History(()))
        clock[0] += 0.1
    assert 0.03 < sum(np.diff(writes) > 0) * 0.01 / 100 < 0.05


def test_slow_batches_are_always_written(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history.parquet", share=np.inf)
    for num_rows in range(3):
        writer.offer(make_history(num_rows))
        assert len(pd.read_parquet(tmp_path / "history.parquet")) == num_rows
