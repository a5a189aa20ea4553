"""Mapping over workers: order, laziness, and workers that do not outlive their parent."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from converters.engines import AHEAD, map_in_order, num_workers

ROOT = Path(__file__).resolve().parents[2]


def double(number: int) -> int:
    return 2 * number


def sleep(seconds: int) -> int:
    time.sleep(seconds)
    return seconds


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
    with pytest.raises(RuntimeError, match="expected all to keep running, got one that was killed"):
        list(map_in_order(end, [0, 1], workers=2))


def test_workers_are_not_waited_for_when_nobody_asks_for_more():
    """Nor after Ctrl-C: a second one during the wait left workers and program to wait for each other."""
    results = map_in_order(sleep, [0, 600, 600], workers=2)
    assert next(results) == 0
    started = time.monotonic()
    results.close()
    assert time.monotonic() - started < 60


SCRIPT = """
import multiprocessing, sys
multiprocessing.set_start_method(sys.argv[1], force=True)
from converters.engines import map_in_order
from tests.converters.test_engines import double, end

{guard}
    print(list(map_in_order({function}, [0, 1], workers=2)))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize(
    ("guard", "function", "told"),
    [
        ("if True:", "double", r'starts, got one that exited .*`if __name__ == "__main__":`.*\(start method {method}'),
        ('if __name__ == "__main__":', "double", ""),
        ('if __name__ == "__main__":', "end", "expected all to keep running, got one that was killed"),
    ],
)
def test_a_program_that_workers_cannot_import_is_told(tmp_path, method, guard, function, told):
    (tmp_path / "program.py").write_text(SCRIPT.format(guard=guard, function=function))
    words, environment = [sys.executable, tmp_path / "program.py", method], os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    last = [line for line in done.stderr.splitlines() if line.startswith("RuntimeError: workers: ")]
    assert re.search(told.format(method=method), last[-1]) if told else done.stdout == "[0, 2]\n"


def test_what_cannot_be_done_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="engine: expected one of process, ray, got 'dask'"):
        map_in_order(double, [1], workers=1, engine="dask")
    with pytest.raises(ValueError, match="workers: expected 1 or more, got 0"):
        map_in_order(double, [1], workers=0)
    with pytest.raises(ValueError, match=r"workers: expected a whole number, got 1\.5"):
        map_in_order(double, [1], workers=1.5)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"engine ray: expected the package ray, got none\. Install nasrlm\[ray\]\.$"):
        map_in_order(double, [1], workers=1, engine="ray")


def test_few_texts_need_no_workers(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert [num_workers(None, texts) for texts in (0, 600, 2_000, 10**6)] == [1, 1, 3, 8]
    assert num_workers(5, 0) == 5
