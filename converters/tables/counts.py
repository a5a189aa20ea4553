"""Labels that cost nothing: counts of every architecture of a table, its text, and its latency on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from converters.convert import canonical_to_onnx_text, measured_text, to_canonical_graph, to_graph
from converters.runtime import measure_latencies
from converters.statistics import Statistics, statistics
from converters.tables.stream import Derivation
from spaces import SearchSpace

COUNTS = tuple(f"{field.name}@onnx" for field in fields(Statistics))  # a number of each network's own ONNX graph
LATENCY = "latency_ms@here"
TEXT = "text"


def derive_counts(repeats: int | None = None, texts: bool = False) -> Derivation:
    """For ``convert_table``: a column ``params@onnx``, ``macs@onnx``, … for each of ``Statistics``.

    Args:
        repeats: also measure the latency in ONNX Runtime, one thread, the median of so many runs: ``latency_ms@here``.
            With several workers at a time, those of other workers slow it down.
        texts: also write ``to_measured_text``, which costs less here than later: the graph is there.
    """
    columns: dict[str, Any] = dict.fromkeys(COUNTS, pa.int64())
    if texts:
        columns[TEXT] = pa.string()
    if repeats is not None:
        columns[LATENCY] = pa.float64()
    return Derivation(columns, Counting(repeats, texts), f"{repeats} repeats" if repeats else "")


@dataclass(frozen=True)
class Counting:
    """A picklable ``counts_of`` with fixed arguments; copies are equal, by which workers remember answers."""

    repeats: int | None
    texts: bool

    def __call__(self, space: SearchSpace[Any], architecture: Any) -> tuple[float | str, ...]:
        return counts_of(space, architecture, self.repeats, self.texts)


def named_counts(
    space: SearchSpace[Any], architectures: Sequence[Any], names: Sequence[str], *, progress: bool = False
) -> np.ndarray[Any, Any]:
    """(N, M) float64, M of the ``COUNTS`` of N architectures. Cost: some milliseconds an architecture.

    Args:
        space: of the architectures.
        architectures: N of them.
        names: M counts, such as ``macs@onnx``.
        progress: show a bar on stderr.
    """
    columns = [COUNTS.index(name) for name in names]
    bar = tqdm(architectures, desc="count", unit="architecture", disable=not progress)
    counted = [counts_of(space, architecture) for architecture in bar] if columns else []
    rows = [[row[column] for column in columns] for row in counted]
    return np.array(rows, dtype=np.float64).reshape(len(architectures), len(columns))


def counts_by_name(space: SearchSpace[Any], architecture: Any, names: Sequence[str]) -> dict[str, float]:
    """``named_counts`` of one architecture, by name."""
    (counts,) = named_counts(space, [architecture], names).tolist()
    return dict(zip(names, counts, strict=True))


def counts_of(
    space: SearchSpace[Any], architecture: Any, repeats: int | None = None, texts: bool = False
) -> tuple[float | str, ...]:
    """Every number of ``Statistics``, in order; then the text and milliseconds, where wanted."""
    faithful = to_graph(space, architecture)
    canonical = to_canonical_graph(faithful)
    values: tuple[float | str, ...] = astuple(statistics(faithful, canonical))
    if texts:
        values += (measured_text(space, faithful, canonical),)
    if repeats is not None:
        values += (measure_latencies([canonical_to_onnx_text(canonical)], repeats=repeats)[0].median_ms,)
    return values
