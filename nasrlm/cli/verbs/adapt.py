"""The verb adapt: a new device, objective or space from a few labels."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.checkpoints.folder import check_replaceable, folder_or_released
from nasrlm.cli.changed_checkpoint import save_changed
from nasrlm.cli.options import CheckpointOption, JsonOption, SeedOption, SpaceOption, listed
from nasrlm.cli.output import print_json, print_table, say
from nasrlm.cli.verbs import LIST
from nasrlm.metrics import COLUMNS, Quality
from spaces.drawing import POOL
from studies.tables.adapting import AdaptConfig, Choice, adapt_to_tables
from studies.tables.rows import row_names
from studies.tables.several import shown_names

MOST_PRINTED = 20  # labels that are printed; --json lists all


def run(
    tables: Annotated[
        list[Path],
        typer.Option(
            "--table", help="Table of architectures or texts with labels of the new objectives; may be repeated."
        ),
    ],
    objectives: Annotated[
        str, typer.Option("--objectives", metavar=LIST, help="Objectives to learn, separated by commas.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the new checkpoint.")],
    samples: Annotated[
        str, typer.Option("--samples", help="Number of labelled networks to learn from, or all.")
    ] = "10",
    choose: Annotated[
        Choice,
        typer.Option(
            "--choose",
            help="Labelled networks to use: random ones, or those whose labels are most informative (active).",
        ),
    ] = "random",
    pool: Annotated[
        int, typer.Option(min=2, help="Number of other texts, whose predictions are also used in learning.")
    ] = POOL,
    like_table: Annotated[
        bool,
        typer.Option("--like-table", help="Draw other networks so that each choice is as frequent as in the table."),
    ] = False,
    leave_out_strays: Annotated[
        bool, typer.Option("--leave-out-strays", help="Leave out labels that are far from what all others suggest.")
    ] = False,
    space: SpaceOption = None,
    checkpoint: CheckpointOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Learn new objectives from a few labels; all others are predicted as before. Test rows are not used."""
    started, names = time.monotonic(), listed(objectives, "--objectives")
    check_replaceable(out)
    config = AdaptConfig(tables, names, _count(samples), choose, pool, like_table, space, seed, leave_out_strays)
    loaded = Checkpoint.from_pretrained(checkpoint)
    adapted = adapt_to_tables(loaded, config, progress=True)
    save_changed(adapted.checkpoint, folder_or_released(checkpoint), out)
    judged = adapted.judge()
    seconds = round(time.monotonic() - started, 1)
    if json:
        print_json({"used": row_names(adapted.learned), "others": judged, "seconds": seconds})
    else:
        _print_learned(adapted.learned, config)
        _print_judged(judged)
        say(f"checkpoint: {out}, {len(adapted.checkpoint.objectives)} objectives, {seconds} s")


def _print_learned(learned: pd.DataFrame, config: AdaptConfig) -> None:
    """Print the labels that were learned from, or the first MOST_PRINTED of them."""
    shown = learned[:MOST_PRINTED]
    title = "learned from"
    if len(shown) < len(learned):
        title += f" {len(learned):,} rows; the first {len(shown)} are shown"
    cells = zip(shown_names(shown, config.files), *[shown[name] for name in config.objectives], strict=True)
    print_table(["architecture", *config.objectives], [list(row) for row in cells], title)


def _print_judged(judged: Mapping[str, Quality]) -> None:
    if judged:
        rows = [[name, *found.values()] for name, found in judged.items()]
        print_table(COLUMNS[1:], rows, "on other labelled rows, which were not used for learning")


def _count(samples: str) -> int | None:
    """Parse a number of labels; None for all."""
    if samples != "all" and not (samples.isdecimal() and int(samples) > 1):
        raise ValueError(f"--samples: expected all or a number above 1, got {samples!r}.")
    return None if samples == "all" else int(samples)
