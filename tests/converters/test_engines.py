"""Mapping over workers: order, laziness, and workers that do not outlive their parent."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from converters import engines
from converters.engines import AHEAD, map_in_order, num_workers
from tests.converters.tasks import double, end, sleep

ROOT = Path(__file__).resolve().parents[2]


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
from tests.converters.tasks import double, end

def own(number):
    return 3 * number

print("program runs")
{guard}
    print(list(map_in_order({function}, [0, 1], workers=2)))
"""


def run_program(folder: Path, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    called, environment = [sys.executable, "program.py", *words], os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(called, cwd=folder, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize(
    ("guard", "function", "told"),
    [
        ("if True:", "own", r'starts, got one that exited .*`if __name__ == "__main__":`.*\(start method {method}'),
        ('if __name__ == "__main__":', "own", ""),
        ('if __name__ == "__main__":', "end", "expected all to keep running, got one that was killed"),
    ],
)
def test_a_program_that_workers_cannot_import_is_told(tmp_path, method, guard, function, told):
    done = run_program(tmp_path, SCRIPT.format(guard=guard, function=function), method)
    last = [line for line in done.stderr.splitlines() if line.startswith("RuntimeError: workers: ")]
    assert re.search(told.format(method=method), last[-1]) if told else done.stdout.endswith("\n[0, 3]\n")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_do_not_run_a_program_that_defines_nothing_for_them(tmp_path, method):
    """Else they would evaluate once more, for hours, what a program without the guard evaluates."""
    done = run_program(tmp_path, SCRIPT.format(guard="if True:", function="double"), method)
    assert (done.stdout, done.stderr) == ("program runs\n[0, 2]\n", "")


SPACE = """
from converters.builder import GraphBuilder
from spaces import GenotypeSpace

class Plain(GenotypeSpace):
    name = "plain"
    choices = {"width": tuple(range(1, 21)), "depth": tuple(range(60))}

    def build(self, architecture):
        g = GraphBuilder((1, 3, 8, 8))
        return g.build(g.conv(g.input, architecture["width"], kernel=3))
"""

OWN_SPACE = """
import multiprocessing, os
multiprocessing.set_start_method("forkserver", force=True)
os.sched_getaffinity = lambda _: {0, 1}  # enough cores for workers
from converters.bulk import to_onnx_texts
from spaces import get_space

print("program runs")
space = SPACE
print(len(set(to_onnx_texts(space, list(space.enumerate())))))
"""


@pytest.mark.parametrize("is_file", [True, False])
def test_a_space_of_ones_own_is_converted_without_running_the_program_again(tmp_path, is_file):
    """Its file is imported by workers; a space that the program defines itself is left to the program's process."""
    (tmp_path / "plain.py").write_text(SPACE)
    program = OWN_SPACE.replace("SPACE", 'get_space("plain.py:Plain")' if is_file else "Plain()")
    done = run_program(tmp_path, program if is_file else SPACE + program)
    assert (done.stdout, done.stderr) == ("program runs\n20\n", "")


def test_few_texts_need_no_workers(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert [num_workers(None, texts) for texts in (0, 600, 2_000, 10**6)] == [1, 1, 3, 8]
    assert num_workers(5, 0) == 5


def test_windows_has_no_pools_for_all_cores_of_large_machines(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(engines, "MOST_WORKERS", 61)
    assert num_workers(None, 10**6) == 61
