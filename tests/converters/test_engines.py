"""Mapping over workers: order, laziness, and workers that do not outlive their parent."""

import os
import signal
import sys

import pytest

from converters.engines import AHEAD, map_in_order, num_workers


def double(number: int) -> int:
    return 2 * number


def end(number: int) -> int:
    if number:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order_and_tasks_are_taken_as_needed(workers):
    taken = []

    def tasks():
        for number in range(100):
            taken.append(number)
            yield number

    results = map_in_order(double, tasks(), workers=workers)
    assert next(results) == 0
    assert len(taken) <= AHEAD * workers
    assert list(results) == [2 * number for number in range(1, 100)]


def test_a_killed_worker_is_told():
    with pytest.raises(RuntimeError, match="expected them to live, got one killed"):
        list(map_in_order(end, [0, 1], workers=2))


def test_what_cannot_be_done_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="engine: expected one of process, ray, got 'dask'"):
        map_in_order(double, [1], workers=1, engine="dask")
    with pytest.raises(ValueError, match="workers: expected 1 or more, got 0"):
        map_in_order(double, [1], workers=0)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install \"nasrlm\[ray\]\""):
        map_in_order(double, [1], workers=1, engine="ray")


def test_few_texts_need_no_workers(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert [num_workers(None, texts) for texts in (0, 600, 2_000, 10**6)] == [1, 1, 3, 8]
    assert num_workers(5, 0) == 5
