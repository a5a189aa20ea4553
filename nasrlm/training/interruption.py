"""Delay Ctrl-C until the current work is finished."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_wait(do_wait: bool = True) -> Iterator[Callable[[], bool]]:
    """Delay Ctrl-C to the end of this context; a second one is raised at once.

    SIGTERM is delayed too if it has Ctrl-C's default handler, as on the command line. Signals with another handler are
    left alone, and so are all signals outside the main thread, where handlers cannot be set.

    Args:
        do_wait: whether to delay signals; if False, nothing changes.

    Yields:
        A function that returns whether a signal has arrived.

    Raises:
        KeyboardInterrupt: a signal arrived, and nothing else was raised.
    """
    usual, noted = signal.default_int_handler, threading.Event()
    do_wait &= threading.current_thread() is threading.main_thread()
    handled = [x for x in (signal.SIGINT, signal.SIGTERM) if do_wait and signal.getsignal(x) is usual]

    def handle_by(handler: Callable[[int, FrameType | None], object]) -> None:
        for number in handled:
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        noted.set()
        handle_by(usual)

    handle_by(note)
    try:
        yield noted.is_set
    finally:
        handle_by(usual)
    if noted.is_set():
        raise KeyboardInterrupt
