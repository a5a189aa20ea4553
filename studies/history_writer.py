"""A growing history, written now and then."""

import math
import time
from pathlib import Path

from studies.history import History

SHARE = 0.03  # of a run, which writing takes at most


class HistoryWriter:
    """Writes a growing history after batches, now and then, so that it costs ``SHARE`` of the run or less.

    It waits 33 times as long as a write takes, a third of a second for 5,000 rows. A batch that takes longer is always
    written at once; of faster ones, those since the last write are lost when the process is killed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cost = 0.05  # seconds; a guess until the second write
        self._next_write = -math.inf

    def offer(self, history: History) -> None:
        """Write, unless the last write is too recent for its cost."""
        started = time.monotonic()
        if started < self._next_write:
            return
        history.save(self.path)
        finished = time.monotonic()
        # The lesser of the last two, for any one may load libraries or meet a busy disk.
        cost, self._cost = min(self._cost, finished - started), finished - started
        self._next_write = finished + cost / SHARE
