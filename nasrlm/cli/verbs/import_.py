"""The verb import: tables from official benchmark files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from converters.importers import IMPORTERS, read_benchmark
from nasrlm.cli.options import JsonOption
from nasrlm.cli.output import check_table_out, print_json, print_table
from nasrlm.files import write_table


def run(
    benchmark: Annotated[str, typer.Argument(help=f"One of {', '.join(IMPORTERS)}.")],
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="The official file, or the folder if there are several.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Table to write: .parquet, .csv or .jsonl; default: BENCHMARK.parquet.")
    ] = None,
    space: Annotated[
        str | None, typer.Option(help="With code-regression: only rows of this space, such as APPS.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Convert an official benchmark file to a table of architectures, or of source code, and labels."""
    out = out or Path(f"{benchmark}.parquet")
    check_table_out(out, path)
    frame = read_benchmark(benchmark, path, progress=True, space=space)
    write_table(frame, out)
    if json:
        print_json({"rows": len(frame), "columns": list(frame.columns)})
    else:
        present = frame.notna().sum()
        print_table(["column", "values"], [[name, int(present[name])] for name in frame.columns], f"{out}")
