"""The verb adapt: a new device, objective or space from a few labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import nasrlm
from nasrlm.checkpoints.folder import check_replaceable
from nasrlm.cli.options import CheckpointOption, JsonOption, NewCheckpointOption, SeedOption, SpaceOption, listed
from nasrlm.cli.verbs import LIST
from spaces.drawing import POOL, Choice


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
    out: NewCheckpointOption,
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
    beside: Annotated[
        bool, typer.Option("--beside", help="Keep what was learned of these objectives in other spaces.")
    ] = False,
    space: SpaceOption = None,
    checkpoint: CheckpointOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Learn new objectives from a few labels; all others are predicted as before. Test rows are not used."""
    names = listed(objectives, "--objectives")
    check_replaceable(out)

    from nasrlm.cli.adapting import adapt_checkpoint  # here: takes seconds

    config = nasrlm.AdaptConfig(
        tables, names, _count(samples), choose, pool, like_table, space, seed, leave_out_strays, beside
    )
    adapt_checkpoint(checkpoint, config, out, json=json)


def _count(samples: str) -> int | None:
    """Parse a number of labels; None for all."""
    if samples != "all" and not (samples.isdecimal() and int(samples) > 1):
        raise ValueError(f"--samples: expected all or a number above 1, got {samples!r}.")
    return None if samples == "all" else int(samples)
