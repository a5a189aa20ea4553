"""Progress where no terminal shows it, as in the log of a batch job."""

from __future__ import annotations

from time import monotonic
from typing import Any, TextIO

INTERVAL = 60  # seconds from line to line; what takes less says nothing
UP = "\x1b[A"  # how tqdm goes back from a bar within another, which it draws a line below


class ProgressLines:
    """A stream that turns tqdm's bars into a plain line every ``INTERVAL`` seconds; other text is written as it comes.

    A bar draws each of its states behind a carriage return, over the one before.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._state = ""  # of the bar, as it was drawn last
        self._of_bar = False  # whether the last thing written to this stream was a bar
        self._began: float | None = None  # when the bar that is open was drawn first
        self._told = 0.0  # when a line was written last
        self._within = False  # whether the bar drawn last is within another

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text to the stream, states of a bar only now and then; return its length."""
        if text.startswith("\r"):
            self._of_bar, self._within = True, False
            self._follow(text.strip())
        elif text and not text.replace(UP, ""):
            self._within = True
        elif self._of_bar and text and not text.strip("\n"):
            if self._state and not self._within:  # else it is to be drawn again
                self._close()
        elif text:
            self._of_bar = False
            self._stream.write(text)
        return len(text)

    def _follow(self, state: str) -> None:
        self._state = state
        if self._began is None:
            self._began = self._told = monotonic()
        elif state and monotonic() - self._told >= INTERVAL:
            self._tell()

    def _close(self) -> None:
        if self._told != self._began:
            self._tell()
        self._began, self._state = None, ""

    def _tell(self) -> None:
        self._stream.write(f"{self._state}\n")
        self._told = monotonic()
