"""``convert --table`` and ``stats --table``: process a table of any size, with a bar and a report of failed rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm

from converters.tables.stream import StreamConfig, StreamResult, convert_table
from nasrlm.cli.idle_options import refuse_given
from nasrlm.cli.output import print_json, say, warn
from nasrlm.files import check_not_read

ArchitecturesOption = Annotated[
    Path | None, typer.Option("--table", help="Parquet, CSV or JSONL file with a column architecture.")
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, help="With --table: number of processes; default: one per core, if there is enough work."
    ),
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="With --table: continue a run that was killed.")]
WorkersEngineOption = Annotated[
    str, typer.Option("--engine", help="With --table: process (local processes) or ray (a Ray cluster).")
]
OF_NETWORKS = ("checkpoint", "input_shape")  # options that have no effect on a table


def checked_out(context: typer.Context, verb: str, given: object, out: Path | None) -> Path:
    """Check the options of a verb that is given a table, and return the file to write.

    Args:
        context: of the verb.
        verb: its name.
        given: truthy if an architecture was given besides the table.
        out: value of the option ``--out``.

    Raises:
        ValueError: ``--out`` is missing, an architecture was given too, or an option has no effect on a table.
    """
    if given or out is None:
        raise ValueError(f"{verb} --table: expected --out and no architecture. See --help.")
    refuse_given(context, OF_NETWORKS, "an architecture", "--table")
    return out


def convert_whole_table(config: StreamConfig, verb: str, *, json: bool) -> None:
    """Add columns to a table and print a summary.

    Raises:
        ValueError: the input is bad.
        ImportError: the engine is not installed.
    """
    check_not_read(config.out, config.table)
    with tqdm(desc=verb, unit="row") as bar:

        def report(done: int, total: int) -> None:
            if bar.total is None:
                bar.total = total
                bar.initial = bar.n = done  # rows of an earlier run do not count for the speed
            bar.update(done - bar.n)

        result = convert_table(config, on_progress=report)
    _report_failures(result)
    if json:
        print_json({"rows": result.rows, "seconds": result.seconds, "failed": result.failed})
    else:
        say(f"{result.rows:,} rows in {result.seconds:.0f} s: {config.out}")


def _report_failures(result: StreamResult) -> None:
    total = result.rows + result.failed
    if result.failed:
        warn(f"{result.failed:,} of {total:,} rows failed, with reasons in {result.errors}")
    if result.left_out:
        warn(f"{result.left_out:,} rows of other spaces were left out")
