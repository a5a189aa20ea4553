"""How often something is done a second: the same clock for us and for another library, which lacks ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import TypedDict


class Measurement(TypedDict):
    """Things a second of one case: the median of all runs, the slowest and the fastest."""

    what: str
    objectives: int
    context: str
    per_second: float
    slowest: float
    fastest: float
    runs: int


def measure(
    what: str,
    objectives: int,
    context: str,
    work: Callable[[], int],
    *,
    seconds: float,
    repeats: int,
    processor_time: bool = False,
) -> Measurement:
    """Time what ``work`` does, which returns how many things that were.

    It runs once unmeasured, then up to ``repeats`` times while there are ``seconds`` left. Where the first run alone
    takes longer than that, it is the measurement. Processor time, of all threads together, is what remains
    comparable on a machine with other work.
    """
    clock = time.process_time if processor_time else time.perf_counter
    started = time.perf_counter()
    speeds = [_speed(work, clock)]
    if time.perf_counter() - started <= seconds:
        speeds = []
        while len(speeds) < repeats and (not speeds or time.perf_counter() - started < seconds):
            speeds.append(_speed(work, clock))
    return Measurement(
        what=what,
        objectives=objectives,
        context=context,
        per_second=median(speeds),
        slowest=min(speeds),
        fastest=max(speeds),
        runs=len(speeds),
    )


def _speed(work: Callable[[], int], clock: Callable[[], float]) -> float:
    started = clock()
    done = work()
    return done / (clock() - started)
