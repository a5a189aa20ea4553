"""Costs of rows from labels of their sums."""

import numpy as np
import pytest

from nasrlm import row_sum
from nasrlm.row_sum import RowSum
from nasrlm.text_counts import WHOLE, RowCounts

COSTS = {WHOLE: 5.0, 7: 1.0, 3: 0.5, 90: 0.01}


def drawn(texts: int, seed: int = 0) -> list[RowCounts]:
    rng = np.random.default_rng(seed)
    return [{WHOLE: 1.0} | {row: float(rng.integers(1, 9)) for row in (7, 3, 90)} for _ in range(texts)]


def summed(counts: list[RowCounts]) -> np.ndarray:
    return np.array([sum(COSTS[row] * count for row, count in text.items()) for text in counts])


def test_costs_are_found_and_labels_left_out_expected() -> None:
    counts = drawn(40)
    found = RowSum.fit(counts, summed(counts))
    assert found is not None
    assert dict(zip(found[0].rows.tolist(), found[0].costs, strict=True)) == pytest.approx(COSTS, rel=1e-3)
    np.testing.assert_allclose(found[1], summed(counts), rtol=1e-4)


def test_labels_left_out_are_those_of_fits_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sum, "STRENGTHS", np.array([1e-9]))
    counts, rng = drawn(30), np.random.default_rng(1)
    labels = summed(counts) + rng.normal(size=30)
    found = RowSum.fit(counts, labels)
    assert found is not None
    for left in (0, 13):
        without = RowSum.fit([*counts[:left], *counts[left + 1 :]], np.delete(labels, left))
        assert without is not None
        of_row = dict(zip(without[0].rows.tolist(), without[0].costs, strict=True))
        assert sum(of_row[row] * count for row, count in counts[left].items()) == pytest.approx(found[1][left])


def test_what_labels_do_not_tell_is_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = drawn(40)
    assert RowSum.fit(counts[:4], summed(counts)[:4]) is None  # three rows, and what all cost besides
    assert RowSum.fit([counts[0]] * 9, np.arange(9.0)) is None
    monkeypatch.setattr(row_sum, "MOST_ROWS", 3)
    assert RowSum.fit(counts, summed(counts)) is None
