"""The verb refine: replace costs that the decoder predicts by sums of what the rows of a network's text cost."""

from __future__ import annotations

from typing import Annotated

import typer

from nasrlm.checkpoints.folder import check_replaceable
from nasrlm.cli.options import CheckpointOption, JsonOption, NewCheckpointOption, SpaceOption, TablesOption, listed
from nasrlm.cli.verbs import LIST


def run(
    tables: TablesOption,
    out: NewCheckpointOption,
    objectives: Annotated[
        str | None,
        typer.Option(
            "--objectives", metavar=LIST, help="Costs, separated by commas; default: all that the checkpoint knows."
        ),
    ] = None,
    space: SpaceOption = None,
    checkpoint: CheckpointOption = None,
    json: JsonOption = False,
) -> None:
    """Predict costs as sums over operators where sums fit rows of split valid better. Test rows are not used."""
    wanted = listed(objectives, "--objectives")
    check_replaceable(out)

    from nasrlm.cli.refining import refine_checkpoint  # here: takes seconds

    refine_checkpoint(checkpoint, tables, wanted, space, out, json=json)
