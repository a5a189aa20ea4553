"""The verb stats: counts of networks."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from converters import Graph
from converters.statistics import statistics
from converters.tables.counts import derive_counts
from converters.tables.stream import StreamConfig
from nasrlm.cli.idle_options import refuse_given
from nasrlm.cli.networks import NETWORK_ARGUMENT, canonical_text, count_tokens, read_network
from nasrlm.cli.options import CheckpointOption, InputShapeOption, JsonOption, SpaceOption
from nasrlm.cli.output import print_json, print_table
from nasrlm.cli.whole_tables import (
    ArchitecturesOption,
    ResumeOption,
    WorkersEngineOption,
    WorkersOption,
    checked_out,
    convert_whole_table,
)

TIMED_AT_ONCE = 8  # networks timed between two writes, which a killed run may lose


def run(
    context: typer.Context,
    architectures: Annotated[list[str] | None, NETWORK_ARGUMENT] = None,
    space: SpaceOption = None,
    table: ArchitecturesOption = None,
    input_shape: InputShapeOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="With --table: .parquet file for its rows with counts.")
    ] = None,
    latency: Annotated[
        bool, typer.Option("--latency", help="With --table: also measure latencies in ONNX Runtime on this machine.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="With --latency: number of timed runs of each network.")] = 20,
    texts: Annotated[
        bool, typer.Option("--texts", help="With --table: also write the texts that a model reads, to train on.")
    ] = False,
    workers: WorkersOption = None,
    resume: ResumeOption = False,
    engine: WorkersEngineOption = "process",
    checkpoint: CheckpointOption = None,
    json: JsonOption = False,
) -> None:
    """Count parameters, multiply-accumulates and more; live_ counts are those of the canonical graph."""
    if table is not None:
        written = checked_out(context, "stats", architectures, out)
        if not latency:
            refuse_given(context, ["repeats"], "--latency", "none")
        counts = derive_counts(repeats if latency else None, texts)
        workers = 1 if latency and workers is None else workers  # several would slow each other down
        config = StreamConfig(table, written, space, workers, engine, resume, derivation=counts)
        if latency:
            config = replace(config, chunk_rows=TIMED_AT_ONCE, part_chunks=1)
        return convert_whole_table(config, "stats", json=json)
    if not architectures:
        raise ValueError("stats: expected an architecture, or --table with --out. See --help.")
    of_tables = ["out", "latency", "repeats", "texts", "workers", "resume", "engine"]
    refuse_given(context, of_tables, "--table", "an architecture")
    graphs = [read_network(name, space, input_shape, "stats") for name in architectures]
    tokens = count_tokens(list(map(canonical_text, graphs, architectures)), checkpoint)
    named = zip(architectures, graphs, tokens, strict=True)
    counted = [_counts(graph, name) | {"tokens": count} for name, graph, count in named]
    if len(counted) == 1:
        _print_counts(counted[0], json=json)
        return
    rows = [{"architecture": name, **counts} for name, counts in zip(architectures, counted, strict=True)]
    if json:
        print_json(rows)
    else:
        print_table(list(rows[0]), [list(row.values()) for row in rows])


def _print_counts(counts: dict[str, int], *, json: bool) -> None:
    if json:
        print_json(counts)
    else:
        print_table(["count", "value"], list(counts.items()))


def _counts(faithful: Graph, name: str) -> dict[str, int]:
    try:
        return asdict(statistics(faithful))
    except ValueError as e:
        raise ValueError(f"{name}: {e}") from e
