"""How many threads linear algebra and trees use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def one_thread(applies: bool = True) -> Iterator[None]:
    """Limit what is imported of NumPy, SciPy, scikit-learn and torch to one thread, for work in many small pieces.

    On busy cores, threads wait for each other after each piece. With one other program on two cores, a process on 200
    labels took 5 seconds with two threads, and 0.3 with one (docs/log.md, 2026-12-01).

    Args:
        applies: whether there is a limit at all.

    Cost: a millisecond.
    """
    with threadpool_limits(1 if applies else None):
        yield
