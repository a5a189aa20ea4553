"""Limits on threads: while a context lasts, and no longer."""

import numpy as np
import pytest
from scipy.linalg import cholesky
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_info, threadpool_limits

from nasrlm.adaptation import boosted_trees, group_process
from nasrlm.adaptation.boosted_trees import MANY_LABELS, expected_by_trees
from nasrlm.adaptation.group_process import ROWS_TO_FIT_SCALES, GroupProcess
from nasrlm.threads import one_thread


def num_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info()}


def test_a_context_limits_threads_while_it_lasts() -> None:
    with threadpool_limits(3):
        with one_thread():
            assert num_threads() == {1}
            with one_thread(), one_thread(False):
                assert num_threads() == {1}
            assert num_threads() == {1}
        with one_thread(False):
            assert num_threads() == {3}
        with pytest.raises(RuntimeError), one_thread():
            raise RuntimeError
        assert num_threads() == {3}


@pytest.mark.parametrize("rows", [40, ROWS_TO_FIT_SCALES + 1])
def test_processes_learn_few_rows_in_one_thread(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    by_size: dict[int, set[int]] = {}

    def watched(matrix: np.ndarray, lower: bool) -> np.ndarray:
        by_size.setdefault(len(matrix), set()).update(num_threads())
        return cholesky(matrix, lower=lower)

    monkeypatch.setattr(group_process, "cholesky", watched)
    features = np.random.default_rng(0).normal(size=(rows, 3))
    with threadpool_limits(3):
        GroupProcess([features]).fit(np.arange(rows), features[:, 0])
    assert by_size.pop(min(rows, ROWS_TO_FIT_SCALES)) == {1}
    assert by_size in ({}, {rows: {3}})


@pytest.mark.parametrize(("rows", "threads"), [(40, 1), (MANY_LABELS, 3)])
def test_trees_learn_few_rows_in_one_thread(rows: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[set[int]] = []
    fit = HistGradientBoostingRegressor.fit
    monkeypatch.setattr(
        HistGradientBoostingRegressor, "fit", lambda *given: (used.append(num_threads()), fit(*given))[1]
    )
    monkeypatch.setattr(boosted_trees, "NUM_TREES", 2)
    features = np.random.default_rng(0).normal(size=(rows, 3))
    with threadpool_limits(3):
        expected_by_trees(features, np.arange(rows), features[:, 0])
    assert used == [{threads}]
