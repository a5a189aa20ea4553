"""Runs a function on many tasks, with results in order: in this process, in worker processes, or on a Ray cluster."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from itertools import chain
from multiprocessing import parent_process
from multiprocessing.connection import wait
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from converters.arguments import checked_whole
from spaces.registry import import_user_file, user_files

T = TypeVar("T")
R = TypeVar("R")
H = TypeVar("H")

ENGINES = ("process", "ray")
CHUNK = 64  # items that a worker takes at a time
AHEAD = 4  # tasks submitted per worker: enough to keep it busy, few enough to bound memory
MOST_WORKERS = 61 if sys.platform == "win32" else sys.maxsize  # as a pool of processes allows
WORTH_A_PROCESS = 512  # starting a worker takes about as long as writing this many texts


def num_workers(asked: int | None, num_texts: int, sent: object = None) -> int:
    """Return the number of workers: ``asked`` if given, else one per available core as far as there is enough work.

    Args:
        asked: the number that the user wants, or None.
        num_texts: number of texts to write, or the equivalent in other work.
        sent: the objects that workers would receive; if they cannot be pickled, as a lambda, or only by importing the
            program's file, as what it defines itself where workers are not forked, the answer is 1.
    """
    if asked is not None:
        return asked
    count = max(1, min(_num_cores(), MOST_WORKERS, num_texts // WORTH_A_PROCESS))
    return count if count > 1 and _can_be_sent(sent) else 1


def _can_be_sent(what: object) -> bool:
    try:
        return not _needs_program(what) or multiprocessing.get_start_method() == "fork"
    except Exception:  # the pickling methods of a user's class may raise any
        return False


def _needs_program(what: object) -> bool:
    """Return whether a process must import the program's file to receive this, because the program defines it."""
    return b"__main__" in pickle.dumps(what)


def _num_cores() -> int:
    """Return the number of cores that this process may use (as set by ``taskset``), or of all where that is unknown."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_engine(engine: str, workers: int | None) -> None:
    """Check the arguments of ``map_in_order`` before any work is done.

    Raises:
        ValueError: there is no such engine, or ``workers`` is below 1.
        ImportError: ray is not installed.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine: expected one of {', '.join(ENGINES)}, got {engine!r}.")
    if workers is not None:
        checked_whole("workers", workers, 1)
    if engine == "ray":
        _import_ray()


def map_in_order(
    function: Callable[[T], R], tasks: Iterable[T], *, workers: int, engine: str = "process"
) -> Iterator[R]:
    """Yield ``function`` of every task, in the order of the tasks, which are consumed only as workers become free.

    Args:
        function: a function at the top level of a module, so that workers can import it.
        tasks: any number of tasks.
        workers: number of processes; with 1, everything happens in this process.
        engine: "process"; or "ray", which uses the running cluster or else starts one on this machine.

    Raises:
        ValueError: there is no such engine, or ``workers`` is below 1.
        ImportError: ray is not installed.
        RuntimeError: a worker was killed, or could not start.
    """
    check_engine(engine, workers)
    if engine == "ray":
        return _on_ray(function, tasks, workers)
    return map(function, tasks) if workers == 1 else _in_processes(function, tasks, workers)


def in_chunks(
    function: Callable[[Sequence[T]], Sequence[R]], items: Sequence[T], desc: str, *, unit: str, progress: bool
) -> Iterator[R]:
    """Yield the results of a function of several items, one for each item, in the order given.

    If there is enough work, it is shared by as many processes as there are cores; if the function or an item cannot be
    pickled, as a lambda, no other process is used.

    Args:
        function: computes the results of a chunk of items.
        items: any number of items.
        desc: what is done, for the bar.
        unit: what an item is, for the bar.
        progress: show a bar on stderr.

    Raises:
        RuntimeError: a worker was killed, or could not start.
    """
    chunks = [items[start : start + CHUNK] for start in range(0, len(items), CHUNK)]
    workers = num_workers(None, len(items), (function, items[:1]))
    results = chain.from_iterable(map_in_order(function, chunks, workers=workers))
    return iter(tqdm(results, desc, len(items), unit=unit, disable=not progress))


def with_answers(
    function: Callable[[T], R], chunks: Iterable[H], to_task: Callable[[H], T], *, workers: int, engine: str = "process"
) -> Iterator[tuple[H, R]]:
    """Yield each chunk with ``function(to_task(chunk))``, as ``map_in_order`` does; workers receive only the task."""
    waiting: deque[H] = deque()

    def tasks() -> Iterator[T]:
        for chunk in chunks:
            waiting.append(chunk)
            yield to_task(chunk)

    for answer in map_in_order(function, tasks(), workers=workers, engine=engine):
        yield waiting.popleft(), answer


def _in_processes(function: Callable[[T], R], tasks: Iterable[T], workers: int) -> Iterator[R]:
    started, method = multiprocessing.Event(), multiprocessing.get_start_method()
    pool = ProcessPoolExecutor(workers, initializer=_begin, initargs=(started, user_files()))

    def submit(task: T) -> Future[R]:
        unneeded = method != "fork" and not _needs_program((function, task))
        with _program_hidden() if unneeded else nullcontext():  # submitting starts workers
            return pool.submit(function, task)

    try:
        yield from _windowed(submit, Future.result, tasks, AHEAD * workers)
    except BrokenProcessPool as e:
        if not started.is_set() and method != "fork":
            raise RuntimeError(
                "workers: expected one that starts, got one that exited before. Put the code of your program below "
                f'`if __name__ == "__main__":`, because workers import its file (start method {method}).'
            ) from e
        raise RuntimeError(
            "workers: expected all to keep running, got one that was killed. Was there too little memory?"
        ) from e
    except BaseException:
        # The results are not needed, and a second Ctrl-C while waiting for them would leave the workers hanging.
        # SIGKILL: with an inherited SIGTERM handler, the signal may reach a thread that does not wake the worker.
        for worker in list((pool._processes or {}).values()):
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _program_hidden() -> Iterator[None]:
    """Keep processes that start meanwhile from importing the program's file.

    Without ``if __name__ == "__main__":`` in that file, each of them would run the program once more from its top, and
    evaluate for hours what the program has evaluated already.
    """
    program = vars(sys.modules["__main__"])
    shown = {name: value for name, value in program.items() if name in ("__file__", "__spec__")}
    program.update(dict.fromkeys(shown))
    try:
        yield
    finally:
        program.update(shown)


def _on_ray(function: Callable[[T], R], tasks: Iterable[T], workers: int) -> Iterator[R]:
    ray = _import_ray()
    started = not ray.is_initialized()
    if started:
        _connect(ray, workers)
    try:
        yield from _windowed(ray.remote(function).remote, ray.get, tasks, AHEAD * workers)
    finally:
        if started:
            ray.shutdown()


def _import_ray() -> Any:
    if find_spec("ray") is None:  # the message is that of nasrlm/extras.py, which converters may not import
        raise ImportError("engine ray: expected the package ray, got none. Install nasrlm[ray].")
    import ray

    return ray


def _connect(ray: Any, workers: int) -> None:
    """Connect to the cluster named by RAY_ADDRESS or running on this machine, or else start one here."""
    try:
        ray.init(address="auto", log_to_driver=False)
    except ConnectionError:
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)


def _windowed(submit: Callable[[T], H], result: Callable[[H], R], tasks: Iterable[T], window: int) -> Iterator[R]:
    """Yield results in order, with at most ``window`` tasks submitted whose results have not been yielded."""
    pending: deque[H] = deque()
    for task in tasks:
        pending.append(submit(task))
        if len(pending) >= window:
            yield result(pending.popleft())
    while pending:
        yield result(pending.popleft())


def _begin(started: Event, spaces: Sequence[Path]) -> None:
    """Set up a worker process, which imports the files of users' spaces, as tasks may have objects of their classes."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # do not inherit the parent's handler
    started.set()
    _end_with_parent()
    for path in spaces:
        import_user_file(path)


def _end_with_parent() -> None:
    """Make this worker exit when its parent is killed; otherwise it would wait for tasks for ever."""
    parent = parent_process()
    assert parent is not None, "a worker has a parent"

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
