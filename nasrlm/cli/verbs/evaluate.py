"""The verb evaluate: compare predictions with the labels of tables."""

from __future__ import annotations

from typing import Annotated

import typer

import nasrlm
from nasrlm.cli.options import (
    CheckpointOption,
    DeviceOption,
    EngineOption,
    JsonOption,
    ObjectivesOption,
    SpaceOption,
    TablesOption,
    listed,
)
from nasrlm.cli.output import print_json, say


def run(
    tables: TablesOption,
    objectives: ObjectivesOption = None,
    split: Annotated[str | None, typer.Option("--split", help="Use only rows of this split.")] = None,
    space: SpaceOption = None,
    checkpoint: CheckpointOption = None,
    device: DeviceOption = "cpu",
    engine: EngineOption = "auto",
    json: JsonOption = False,
) -> None:
    """Compare predictions with the labels of tables: rank correlation, error and coverage."""
    from nasrlm.cli.evaluating import evaluate_on_tables, print_evaluation  # here: takes a second

    predictor = nasrlm.Predictor.from_pretrained(checkpoint, device, engine)
    wanted = listed(objectives, "--objectives")
    result, skipped = evaluate_on_tables(predictor, tables, wanted, split, space)
    if json:
        speed = round(result.predictions_per_second, 1)
        print_json({**result.quality, "skipped": skipped, "predictions_per_second": speed})
        return
    print_evaluation(result)
    if skipped:
        say(f"skipped, as the checkpoint does not know them or they have fewer than two labels: {', '.join(skipped)}")
