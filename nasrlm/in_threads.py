"""Map a function over items in several threads, with results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

AHEAD = 4  # items queued per worker

T = TypeVar("T")
R = TypeVar("R")


def in_threads(work: Callable[[T], R], things: Iterable[T], num_workers: int) -> Iterator[R]:
    """Yield the result of ``work`` for every item, in order; items are taken from the iterable as workers become free.

    After an error, or if the iterator is closed, queued items are cancelled.
    """
    if num_workers == 1:
        yield from map(work, things)
        return
    pool, pending = ThreadPoolExecutor(num_workers), deque[Future[R]]()
    try:
        for thing in things:
            pending.append(pool.submit(work, thing))
            if len(pending) >= AHEAD * num_workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
