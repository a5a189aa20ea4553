"""The verb measure: latencies on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from converters.runtime import (
    Latency,
    MeasuringInterruptedError,
    NotAllMeasuredError,
    machine_description,
    measure_latencies,
)
from nasrlm.cli.inputs import read_inputs
from nasrlm.cli.networks import warn_of_failed
from nasrlm.cli.options import ArchitecturesArgument, InputShapeOption, JsonOption, SeedOption, SpaceOption, TableOption
from nasrlm.cli.output import check_table_out, print_json, print_table, some, warn, write_rows
from nasrlm.objective import Objective
from spaces.shown import first_lines


def run(
    architectures: ArchitecturesArgument = None,
    space: SpaceOption = None,
    table: TableOption = None,
    input_shape: InputShapeOption = None,
    threads: Annotated[int, typer.Option(min=1, max=1024, help="Number of ONNX Runtime threads.")] = 1,
    repeats: Annotated[int, typer.Option(min=1, help="Number of timed runs of each network.")] = 50,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Table to write, .parquet, .csv or .jsonl; an existing one is replaced."),
    ] = None,
    objective: Annotated[
        str, typer.Option(help="Name of the latency in the table, for `nasrlm adapt`: latency_ms@context.")
    ] = "latency_ms@here",
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Measure latencies in ONNX Runtime on this machine: warm, interleaved runs; median and quartiles.

    Networks that ONNX Runtime cannot run are left out.
    """
    if Objective.parse(objective).unit != "ms":
        raise ValueError(f"--objective: expected a name in milliseconds, such as latency_ms@mine, got {objective}.")
    if out is not None:
        check_table_out(out, table)
    inputs = read_inputs(architectures, table, space, input_shape)
    warn_of_failed(inputs.failed)
    names = [f"{table}, row {number}" for number in inputs.numbers] or inputs.names
    options = {"threads": threads, "repeats": repeats, "seed": seed}
    machine = machine_description()
    try:
        latencies = measure_latencies(inputs.texts, **options, names=names, progress=True)
    except NotAllMeasuredError as e:
        latencies = [latency for latency in e.latencies if latency is not None]
        if not latencies:
            raise
        warn_of_failed(e.reasons)
        inputs = inputs.at([index for index in range(len(e.latencies)) if index not in e.reasons])
    except MeasuringInterruptedError as e:
        timed = [(row, x) for row, x in zip(inputs.rows, e.latencies, strict=True) if x is not None]
        if out is not None and timed:
            part = out.with_name(f"{out.stem}.partial{out.suffix}") if out.exists() else out
            write_rows([row | _columns(x, objective, threads, machine) for row, x in timed], part)
            warn(f"{part}: {len(timed):,} networks with at least {min(x.repeats for _, x in timed):,} timed runs each.")
        raise
    measured = [_columns(latency, objective, threads, machine) for latency in latencies]
    if out is not None:
        again = [name for name in measured[0] if name in inputs.rows[0]]
        if lost := [*inputs.left_out, *again]:
            warn(f"{out}: it does not keep the table's values of {some(lost)}.")
        write_rows([x | y for x, y in zip(inputs.rows, measured, strict=True)], out)
    if json:
        spaces = [{"space": space} if space else {} for space in inputs.spaces]
        rows = zip(inputs.names, spaces, measured, strict=True)
        print_json([{"architecture": name} | space | row for name, space, row in rows])
    else:
        columns = [objective, "latency_q25_ms", "latency_q75_ms"]
        title = ", ".join(f"{key} {value}" for key, value in machine.items())
        named = zip(first_lines(inputs.names, inputs.numbers), measured, strict=True)
        cells = [[name, *[row[column] for column in columns]] for name, row in named]
        print_table(["architecture", *columns], cells, title)


def _columns(latency: Latency, objective: str, threads: int, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of a timed network's row in the table."""
    return {
        objective: latency.median_ms,
        "latency_q25_ms": latency.iqr_ms[0],
        "latency_q75_ms": latency.iqr_ms[1],
        "repeats": latency.repeats,
        "threads": threads,
        **{f"machine_{key}": value for key, value in machine.items()},
    }
