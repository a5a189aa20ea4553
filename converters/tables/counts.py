"""Columns that are computed for every architecture of a table: its counts, its text, its latency on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from converters.convert import canonical_to_onnx_text, measured_text, to_canonical_graph, to_graph
from converters.runtime import measure_latencies
from converters.statistics import Statistics, some_statistics, statistics
from converters.tables.columns import TEXT
from converters.tables.stream import Derivation
from spaces import SearchSpace

FIELDS = tuple(field.name for field in fields(Statistics))
COUNTS = tuple(f"{name}@onnx" for name in FIELDS)  # names of the columns of counts
LATENCY = "latency_ms@here"


def derive_counts(repeats: int | None = None, texts: bool = False) -> Derivation:
    """Return a derivation for ``convert_table`` that adds ``params@onnx``, ``macs@onnx``, … for all of ``Statistics``.

    Args:
        repeats: also measure the latency in ONNX Runtime with one thread as the median of this many runs, in a column
            ``latency_ms@here``. If several workers run at the same time, they slow each other down.
        texts: also write the measured text, which is cheaper here than later because the graph exists already.
    """
    columns: dict[str, Any] = dict.fromkeys(COUNTS, pa.int64())
    if texts:
        columns[TEXT] = pa.string()
    if repeats is not None:
        columns[LATENCY] = pa.float64()
    return Derivation(columns, Counting(repeats, texts), f"{repeats} repeats" if repeats else "")


@dataclass(frozen=True)
class Counting:
    """A function of an architecture that is picklable and equals its copies, so that workers can cache results.

    It returns all numbers of ``Statistics`` in order, then if requested the measured text and the latency in ms.
    """

    repeats: int | None = None
    texts: bool = False

    def __call__(self, space: SearchSpace[Any], architecture: Any) -> tuple[float | str, ...]:
        faithful = to_graph(space, architecture)
        canonical = to_canonical_graph(faithful)
        values: tuple[float | str, ...] = astuple(statistics(faithful, canonical))
        if self.texts:
            values += (measured_text(space, faithful, canonical),)
        if self.repeats is not None:
            values += (measure_latencies([canonical_to_onnx_text(canonical)], repeats=self.repeats)[0].median_ms,)
        return values


def named_counts(
    space: SearchSpace[Any], architectures: Sequence[Any], names: Sequence[str], *, progress: bool = False
) -> np.ndarray[Any, Any]:
    """Return (N, M) float64: M of the ``COUNTS`` for N architectures.

    Cost: one to four milliseconds per architecture; half as much if all names are of the faithful graph.

    Args:
        space: the space of the architectures.
        architectures: N architectures.
        names: M names of counts, such as ``macs@onnx``.
        progress: show a bar on stderr.
    """
    parts = [FIELDS[COUNTS.index(name)] for name in names]
    bar = tqdm(architectures, desc="count", unit="architecture", disable=not progress)
    rows = [some_statistics(to_graph(space, architecture), parts) for architecture in bar] if parts else []
    return np.array(rows, dtype=np.float64).reshape(len(architectures), len(parts))


def counts_by_name(space: SearchSpace[Any], architecture: Any, names: Sequence[str]) -> dict[str, float]:
    """Return the named counts of one architecture, by name."""
    (counts,) = named_counts(space, [architecture], names).tolist()
    return dict(zip(names, counts, strict=True))
