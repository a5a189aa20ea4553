"""Costs of rows from labels of their sums."""

import numpy as np
import pytest

from nasrlm.model import row_sum
from nasrlm.model.row_sum import RowSum
from nasrlm.text.row_counts import OTHER, WHOLE, RowCounts

COSTS = {WHOLE: 5.0, 7: 1.0, 3: 0.5, 90: 0.01}
OF_PIXELS = {WHOLE: 0.0, 7: 0.002, 3: 0.0, 90: 0.003}


def drawn(texts: int, seed: int = 0, sizes: tuple[int, ...] = (1,)) -> list[RowCounts]:
    rng = np.random.default_rng(seed)
    by_row = [{WHOLE: 1.0} | {row: float(rng.integers(1, 9)) for row in (7, 3, 90)} for _ in range(texts)]
    return [RowCounts(rows, float(rng.choice(sizes)) ** 2) for rows in by_row]


def summed(counts: list[RowCounts]) -> np.ndarray:
    return np.array(
        [
            sum((COSTS[row] + OF_PIXELS[row] * text.num_pixels) * count for row, count in text.by_row.items())
            for text in counts
        ]
    )


@pytest.mark.parametrize("sizes", [(1,), (8, 16, 32)])
def test_costs_are_found_and_labels_left_out_expected(sizes: tuple[int, ...]) -> None:
    counts = drawn(60, sizes=sizes)
    found = RowSum.fit(counts, summed(counts))
    assert found is not None
    np.testing.assert_allclose(found[1], summed(counts), rtol=1e-4)
    others = drawn(9, seed=1, sizes=sizes)
    np.testing.assert_allclose(found[0].of(others), summed(others), rtol=1e-4)
    known = np.array([[COSTS[row], OF_PIXELS[row]] for row in found[0].rows.tolist()])
    if len(sizes) == 1:  # nobody can tell what is a pixel's
        known = np.stack([known.sum(axis=1), np.zeros(len(known))], axis=1)
    np.testing.assert_allclose(found[0].costs, known, rtol=1e-3, atol=1e-4)


def test_reciprocals_of_rates_add_up() -> None:
    counts, others = drawn(60), drawn(9, seed=1)
    found = RowSum.fit(counts, 1000 / summed(counts), is_rate=True)
    assert found is not None
    np.testing.assert_allclose(found[1], 1000 / summed(counts), rtol=1e-3)
    np.testing.assert_allclose(found[0].of(others), 1000 / summed(others), rtol=1e-3)


def test_what_is_not_above_0_is_no_cost() -> None:
    counts = drawn(60)
    found = RowSum.fit(counts, np.array([text.by_row[7] for text in counts]))
    assert found is not None
    assert np.isnan(found[0].of([RowCounts({**counts[0].by_row, 7: -1.0})])).all()


def test_what_has_another_row_has_no_sum() -> None:
    found = RowSum.fit(drawn(40), summed(drawn(40)))
    assert found is not None
    known = drawn(1)[0].by_row
    for by_row in ({**known, 8: 1.0}, {WHOLE: 1, OTHER: 1}):
        assert np.isnan(found[0].of([RowCounts(by_row)])).all()


def test_labels_left_out_are_those_of_fits_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sum, "STRENGTHS", np.array([1e-9]))
    counts, rng = drawn(30), np.random.default_rng(1)
    labels = summed(counts) + rng.normal(size=30)
    found = RowSum.fit(counts, labels)
    assert found is not None
    for left in (0, 13):
        without = RowSum.fit([*counts[:left], *counts[left + 1 :]], np.delete(labels, left))
        assert without is not None
        assert without[0].of([counts[left]])[0] == pytest.approx(found[1][left])


def test_what_labels_do_not_tell_is_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = drawn(40)
    assert RowSum.fit(counts[:4], summed(counts)[:4]) is None  # three rows, and what all cost besides
    assert RowSum.fit([counts[0]] * 9, np.arange(9.0)) is None
    monkeypatch.setattr(row_sum, "MOST_ROWS", 4)
    assert RowSum.fit(counts, summed(counts)) is not None
    of_two_sizes = drawn(40, sizes=(8, 16))
    assert RowSum.fit(of_two_sizes, summed(of_two_sizes)) is None
    monkeypatch.setattr(row_sum, "MOST_ROWS", 3)
    assert RowSum.fit(counts, summed(counts)) is None
