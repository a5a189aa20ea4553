"""Write a growing history from time to time."""

import math
import time
from pathlib import Path

from studies.history import History

SHARE = 0.03  # largest share of a run's time for writing


class HistoryWriter:
    """Writes a growing history after some batches, so that writing takes at most ``SHARE`` of the run.

    After a write it waits 33 times as long as the write took, a third of a second for 5,000 rows. A batch that takes
    longer is always written at once. If the process is killed, batches since the last write are lost.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cost = 0.05  # seconds; a guess until the second write
        self._next_write = -math.inf

    def offer(self, history: History) -> None:
        """Write the history, unless the last write is too recent for its cost."""
        started = time.monotonic()
        if started < self._next_write:
            return
        history.save(self.path)
        finished = time.monotonic()
        # The smaller of the last two costs, because any one may load libraries or meet a busy disk.
        cost, self._cost = min(self._cost, finished - started), finished - started
        self._next_write = finished + cost / SHARE
