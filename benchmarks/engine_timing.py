"""Measure how often something is done per second; it works without nasrlm, which the peer's environment lacks."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import TypedDict


class Measurement(TypedDict):
    """Things done per second in one case: median, slowest and fastest of all runs."""

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
    """Time ``work``, which returns how many things it has done.

    It runs once to warm up, then up to ``repeats`` times within ``seconds``. If the first run takes longer than
    ``seconds``, it is the only measurement. Processor time, of all threads together, is comparable even on a machine
    with other work.
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
