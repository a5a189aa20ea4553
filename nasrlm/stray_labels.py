"""Find labels to check again, such as failed measurements: those far from what all other labels tell.

n labels of a pool's texts, costs above 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nasrlm.arrays import BoolArray, FloatArray
from nasrlm.averaged_process import AveragedProcess
from nasrlm.group_process import Standardised
from nasrlm.pool import Pool

FEWEST, MOST = 6, 300  # labels that tell of one that it strays; among more one does little
ONE_IN, MOST_STRAYS = 8, 5  # labels may stray, one of fewer, and so many at most
FAR = 8.0  # times as far as others are from what is expected of them
LEAST_RATIO = 2.0  # to what is expected
SUSPECTED = 3  # of the labels, those that are least expected, are looked at each time


def stray_labels(pool: Pool, rows: NDArray[np.intp], labels: FloatArray) -> Mapping[int, float]:
    """Find labels that are ``FAR`` from what all others expect, and return what is expected instead.

    Without such a label the others foresee each other better.

    NOTE: they may be right. Of 48 draws of ten latencies of NAS-Bench-201 one had such a label, of 36 of FBNet none;
    of labels that were made three times as large 14 and all were found, of 1e9 all (docs/log.md, 2026-11-27).

    Args:
        pool: N texts.
        rows: (n,) of the N texts, each once.
        labels: (n,) theirs.

    Returns:
        By places among the n labels.

    Cost: some 30 ms for twenty labels, a quarter of a second for 300, and as much for each that strays.
    """
    strays: dict[int, float] = {}
    logs, kept = np.log(labels), np.ones(len(rows), dtype=np.bool_)
    while FEWEST <= len(rows) <= MOST and len(strays) < min(max(len(rows) // ONE_IN, 1), MOST_STRAYS):
        times, place, expected = max(_suspects(pool, rows, logs, kept), default=(0.0, 0, 0.0))
        if times < FAR or abs(logs[place] - expected) < math.log(LEAST_RATIO):
            break
        strays[place] = math.exp(expected)
        kept[place] = False
    return strays


def _suspects(pool: Pool, rows: NDArray[np.intp], logs: FloatArray, kept: BoolArray) -> list[tuple[float, int, float]]:
    """Of the least expected labels, list those without which the others foresee each other better.

    Each comes as how many times the usual error it is off, its place, and the logarithm that is expected instead.
    """
    _, errors = _left_out(pool, rows[kept], logs[kept])
    found = []
    for suspect in np.argsort(-np.abs(errors))[:SUSPECTED].tolist():
        place, others = int(np.flatnonzero(kept)[suspect]), kept.copy()
        others[place] = False
        scale = Standardised.of(logs[others])
        process, left_out = _left_out(pool, rows[others], logs[others])
        mean, deviation = process.predict(pool.inputs[rows[[place]]], pool.followed[rows[[place]]])
        expected = float(scale.backward(mean)[0])
        if _size(left_out) < _size(np.delete(errors, suspect)):
            usual = max(_size(left_out), scale.deviation * float(deviation[0]))
            found.append((abs(logs[place] - expected) / usual, place, expected))
    return found


def _left_out(pool: Pool, rows: NDArray[np.intp], logs: FloatArray) -> tuple[AveragedProcess, FloatArray]:
    """A process of some labels, and (n,) what each is beyond what the others expect."""
    scale = Standardised.of(logs)
    process = pool.process_of(rows, scale.forward(logs))
    return process, scale.deviation * process.left_out()[0]


def _size(errors: FloatArray) -> float:
    return math.sqrt(float((errors**2).mean()))
