"""Labels that cost nothing: counts of every architecture of a table, and its latency on this machine."""

from __future__ import annotations

from dataclasses import astuple, fields
from functools import partial
from typing import Any

import pyarrow as pa

from converters.convert import graph_to_onnx_text, to_graph
from converters.runtime import measure_latencies
from converters.statistics import Statistics, statistics
from converters.stream import Derivation
from spaces import SearchSpace

COUNTS = tuple(f"{field.name}@onnx" for field in fields(Statistics))  # a number of each network's own ONNX graph
LATENCY = "latency_ms@here"


def derive_counts(repeats: int | None = None) -> Derivation:
    """For ``convert_table``: a column ``params@onnx``, ``macs@onnx``, … for each of ``Statistics``.

    Args:
        repeats: also measure the latency in ONNX Runtime, one thread, the median of so many runs: ``latency_ms@here``.
            With several workers at a time, those of other workers slow it down.
    """
    columns = dict.fromkeys(COUNTS, pa.int64())
    if repeats is None:
        return Derivation(columns, counts_of)
    return Derivation(
        columns | {LATENCY: pa.float64()}, partial(counts_and_latency_of, repeats=repeats), f"{repeats} repeats"
    )


def counts_of(space: SearchSpace[Any], architecture: Any) -> tuple[int, ...]:
    """Every number of ``Statistics``, in order."""
    return astuple(statistics(to_graph(space, architecture)))


def counts_and_latency_of(space: SearchSpace[Any], architecture: Any, repeats: int) -> tuple[float, ...]:
    """The same and milliseconds."""
    faithful = to_graph(space, architecture)
    (latency,) = measure_latencies([graph_to_onnx_text(faithful)], repeats=repeats)
    return (*astuple(statistics(faithful)), latency.median_ms)
