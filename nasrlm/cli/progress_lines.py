"""Show progress as lines where there is no terminal, such as in the log of a batch job."""

from __future__ import annotations

from time import monotonic
from typing import Any, TextIO

INTERVAL = 60  # seconds between lines; shorter work prints none
UP = "\x1b[A"  # written by tqdm after a nested bar, which is drawn one line below


class ProgressLines:
    """A stream that turns tqdm's bars into a plain line every ``INTERVAL`` seconds; other text is written as it comes.

    A bar draws each of its states behind a carriage return, over the one before.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._state = ""  # last text of the bar
        self._of_bar = False  # whether the last text written to this stream was a bar
        self._began: float | None = None  # time at which the current bar was first drawn
        self._told = 0.0  # time of the last line
        self._within = False  # whether the last bar is nested in another
        self._starts_line = True  # whether the next text written to the stream begins a line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text to the stream, but a bar only once per ``INTERVAL``; return the length of the text."""
        if text.startswith("\r"):
            self._of_bar, self._within = True, False
            self._follow(text.strip())
        elif text and not text.replace(UP, ""):
            self._within = True
        elif self._of_bar and text and not text.strip("\n"):
            if self._state and not self._within:  # a nested bar is drawn again
                self._close()
        elif text and not self._moves_down(text):
            self._of_bar = False
            self._stream.write(text)
            self._starts_line = text.endswith("\n")
        return len(text)

    def _moves_down(self, text: str) -> bool:
        """Return whether line breaks, after other text than a bar, are tqdm's way down to a nested bar."""
        return self._began is not None and self._starts_line and not text.strip("\n")

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
        self._starts_line = True
        self._told = monotonic()
