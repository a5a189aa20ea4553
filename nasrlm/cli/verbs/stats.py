"""The verb stats: counts of networks."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from converters import Graph, Statistics, statistics, to_canonical_graph
from converters.convert import canonical_to_onnx_text, checked
from converters.tables.counts import derive_counts
from converters.tables.stream import StreamConfig
from nasrlm.cli.idle_options import refuse_given
from nasrlm.cli.networks import NETWORK_ARGUMENT, count_tokens, parse_shapes, read_each, read_network, warn_of_failed
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
        derivation = derive_counts(repeats if latency else None, texts)
        workers = 1 if latency and workers is None else workers  # several would slow each other down
        config = StreamConfig(table, written, space, workers, engine, resume, derivation=derivation)
        if latency:
            config = replace(config, chunk_rows=TIMED_AT_ONCE, part_chunks=1)
        return convert_whole_table(config, "stats", json=json)
    if not architectures:
        raise ValueError("stats: expected an architecture, or --table with --out. See --help.")
    of_tables = ["out", "latency", "repeats", "texts", "workers", "resume", "engine"]
    refuse_given(context, of_tables, "--table", "an architecture")
    shapes = parse_shapes(input_shape)

    def read(name: str) -> tuple[str, Statistics]:
        return _counted(name, read_network(name, space, shapes, "stats"))

    names, counted, failed = read_each(architectures, read, "stats", leave_out=space is None)
    warn_of_failed(failed)
    tokens = count_tokens([text for text, _ in counted], checkpoint)
    counts = [asdict(of_network) | {"tokens": count} for (_, of_network), count in zip(counted, tokens, strict=True)]
    rows = [{"architecture": name, **of_network} for name, of_network in zip(names, counts, strict=True)]
    is_one = len(architectures) == 1
    if json:
        print_json(counts[0] if is_one else rows)
    elif is_one:
        print_table(["count", "value"], list(counts[0].items()))
    else:
        print_table(list(rows[0]), [list(row.values()) for row in rows])


def _counted(name: str, faithful: Graph) -> tuple[str, Statistics]:
    """Return the canonical text and the counts of a network.

    Raises:
        ValueError: it has no canonical text, or cannot be counted; the message names it.
    """
    canonical = to_canonical_graph(faithful)
    text = checked(canonical_to_onnx_text(canonical), name)
    try:
        return text, statistics(faithful, canonical)
    except ValueError as e:
        raise ValueError(f"{name}: {e}") from e
