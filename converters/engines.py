"""Run a function over many tasks, results in order: in this process, in worker processes, or on a Ray cluster."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.util import find_spec
from multiprocessing import parent_process
from multiprocessing.connection import wait
from multiprocessing.synchronize import Event
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")
H = TypeVar("H")

ENGINES = ("process", "ray")
AHEAD = 4  # tasks handed out per worker: enough to keep it busy, few enough to bound memory
WORTH_A_PROCESS = 512  # starting a worker costs about as much as so many texts


def num_workers(asked: int | None, num_texts: int, sent: object = None) -> int:
    """``asked``, or as many as there are cores for this process, if there is work for them.

    Args:
        asked: by the user.
        num_texts: to be written, or as much other work.
        sent: what workers are sent; what cannot be pickled, as a lambda, is worked on in this process alone.
    """
    if asked is not None:
        return asked
    count = max(1, min(_num_cores(), num_texts // WORTH_A_PROCESS))
    return count if count > 1 and _can_be_pickled(sent) else 1


def _can_be_pickled(what: object) -> bool:
    try:
        pickle.dumps(what)
    except Exception:  # of any kind, where somebody's own class is asked
        return False
    return True


def _num_cores() -> int:
    """Number of cores that a scheduler, or taskset, leaves to this process, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_engine(engine: str, workers: int | None) -> None:
    """Refuse, before any work is done, what ``map_in_order`` could not do.

    Raises:
        ValueError: no such engine, or no worker.
        ImportError: ray is not installed.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine: expected one of {', '.join(ENGINES)}, got {engine!r}.")
    if workers is not None and workers < 1:
        raise ValueError(f"workers: expected 1 or more, got {workers}.")
    if engine == "ray":
        _import_ray()


def map_in_order(
    function: Callable[[T], R], tasks: Iterable[T], *, workers: int, engine: str = "process"
) -> Iterator[R]:
    """``function`` of every task, in the order of the tasks, which are taken only as workers become free.

    Args:
        function: of the top level of a module, so that workers can import it.
        tasks: any number of them.
        workers: processes; with one, everything happens in this process.
        engine: "process"; or "ray", on the running cluster if there is one, else on one of this machine.

    Raises:
        ValueError: no such engine, or no worker.
        ImportError: ray is not installed.
        RuntimeError: a worker was killed, or could not start.
    """
    check_engine(engine, workers)
    if engine == "ray":
        return _on_ray(function, tasks, workers)
    return map(function, tasks) if workers == 1 else _in_processes(function, tasks, workers)


def with_answers(
    function: Callable[[T], R], chunks: Iterable[H], to_task: Callable[[H], T], *, workers: int, engine: str = "process"
) -> Iterator[tuple[H, R]]:
    """Each chunk with ``function`` of its task, as ``map_in_order`` gives it; workers are sent the task alone."""
    waiting: deque[H] = deque()

    def tasks() -> Iterator[T]:
        for chunk in chunks:
            waiting.append(chunk)
            yield to_task(chunk)

    for answer in map_in_order(function, tasks(), workers=workers, engine=engine):
        yield waiting.popleft(), answer


def _in_processes(function: Callable[[T], R], tasks: Iterable[T], workers: int) -> Iterator[R]:
    started = multiprocessing.Event()
    pool = ProcessPoolExecutor(workers, initializer=_begin, initargs=(started,))
    try:
        yield from _windowed(lambda task: pool.submit(function, task), Future.result, tasks, AHEAD * workers)
    except BrokenProcessPool as e:
        if not started.is_set() and (method := multiprocessing.get_start_method()) != "fork":
            raise RuntimeError(
                "workers: expected one that started, got one that ended before. Put what your program does below "
                f'`if __name__ == "__main__":`, since workers import its file (start method {method}).'
            ) from e
        raise RuntimeError("workers: expected them to live, got one killed. Was there too little memory?") from e
    except BaseException:
        # What they are at is of no use, and a second Ctrl-C while it is waited for would leave them waiting for ever.
        # Killed: where a handler of SIGTERM is inherited, the signal may reach a thread that does not wake the worker.
        for worker in list((pool._processes or {}).values()):
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


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
    if find_spec("ray") is None:  # in the words of nasrlm/extras.py, which is not for converters
        raise ImportError("engine ray: expected the package ray, got none. Install nasrlm[ray].")
    import ray

    return ray


def _connect(ray: Any, workers: int) -> None:
    """Join the cluster that RAY_ADDRESS or this machine knows, or start one here."""
    try:
        ray.init(address="auto", log_to_driver=False)
    except ConnectionError:
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)


def _windowed(submit: Callable[[T], H], result: Callable[[H], R], tasks: Iterable[T], window: int) -> Iterator[R]:
    """Results in order, with at most ``window`` tasks handed out and not yet answered."""
    pending: deque[H] = deque()
    for task in tasks:
        pending.append(submit(task))
        if len(pending) >= window:
            yield result(pending.popleft())
    while pending:
        yield result(pending.popleft())


def _begin(started: Event) -> None:
    """What a worker does first."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # whatever the parent makes of it
    started.set()
    _end_with_parent()


def _end_with_parent() -> None:
    """End this worker when its parent is killed, as it would wait for tasks for ever."""
    parent = parent_process()
    assert parent is not None, "a worker has a parent"

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
