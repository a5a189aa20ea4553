"""The verb teach: predict labels for networks that were neither trained nor measured, to train a model on them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nasrlm.cli.options import JsonOption, SeedOption, SpaceOption, listed
from nasrlm.cli.output import check_table_out, print_json, print_table
from nasrlm.cli.verbs import LIST
from nasrlm.files import write_table
from studies.tables.teach_config import LEAST_LABELS, TeachConfig


def run(
    table: Annotated[Path, typer.Option("--table", help="Table of architectures of one space with labels and splits.")],
    out: Annotated[Path, typer.Option("--out", help="Table to write: .parquet, .csv or .jsonl.")],
    objectives: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Objectives to label, separated by commas; default: all of the table."),
    ] = None,
    count: Annotated[
        int, typer.Option("-n", min=1, help="Number of architectures to draw; repeated ones count once.")
    ] = TeachConfig.count,
    labels: Annotated[
        int,
        typer.Option(
            min=LEAST_LABELS, help="Maximum number of labels for a Gaussian process, whose time is cubic in it."
        ),
    ] = TeachConfig.labels,
    like_table: Annotated[
        bool, typer.Option("--like-table", help="Draw each choice as often as in the table's train rows.")
    ] = False,
    space: SpaceOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Draw architectures and label them with predictions of graph-feature models fitted to the train rows."""
    check_table_out(out, table)
    named = listed(objectives, "--objectives")

    from studies.tables.teaching import teach  # here: takes seconds

    taught, learned = teach(TeachConfig(table, named, count, labels, like_table, space, seed), progress=True)
    write_table(taught, out)
    if json:
        print_json({"rows": len(taught), "labels": learned})
    else:
        title = f"{len(taught):,} different architectures of {count:,} drawn: {out}"
        print_table(["objective", "labels learned from"], list(learned.items()), title)
