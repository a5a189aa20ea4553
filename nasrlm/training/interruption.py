"""Ctrl-C that waits for what is begun."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_wait(do_wait: bool = True) -> Iterator[Callable[[], bool]]:
    """Within this, Ctrl-C is noted, and raised at the end; a second one is raised at once.

    So is any signal that is handled as Ctrl-C, as SIGTERM on the command line. What a program handles otherwise stays
    as it is, and so do all signals outside of the main thread, where handlers cannot be set.

    Args:
        do_wait: or leave all as it is.

    Yields:
        Whether there was one.

    Raises:
        KeyboardInterrupt: there was one, and nothing else was raised.
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
