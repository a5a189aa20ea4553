"""The verb evaluate: compare predictions with the labels of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from nasrlm.cli.evaluations import print_evaluation
from nasrlm.cli.options import CheckpointOption, JsonOption, ObjectivesOption, SpaceOption, listed
from nasrlm.cli.output import print_json, say
from nasrlm.cli.predictor_options import DeviceOption, EngineOption
from nasrlm.evaluation import evaluate
from nasrlm.examples import Examples
from nasrlm.predictor import Predictor
from studies.tables.files import label_columns
from studies.tables.rows import named, read_rows, require_labels, splits_of, texts_of_tables


def run(
    tables: Annotated[
        list[Path], typer.Option("--table", help="Table of labelled architectures or texts; may be repeated.")
    ],
    objectives: ObjectivesOption = None,
    split: Annotated[str | None, typer.Option("--split", help="Use only rows of this split.")] = None,
    space: SpaceOption = None,
    checkpoint: CheckpointOption = None,
    device: DeviceOption = "cpu",
    engine: EngineOption = "auto",
    json: JsonOption = False,
) -> None:
    """Compare predictions with the labels of tables: rank correlation, error and coverage."""
    predictor = Predictor.from_pretrained(checkpoint, device, engine)
    wanted = listed(objectives, "--objectives")
    named_so = wanted or predictor.objectives  # a column without @ may be an objective too
    frames = [_rows_of_split(read_rows(table, space, labels=named_so), split, table) for table in tables]
    labels = wanted or tuple(dict.fromkeys(name for frame in frames for name in label_columns(frame, named_so)))
    known = [name for name in labels if wanted or name in predictor.objectives]
    if not known:
        raise ValueError(
            f"{named(tables)}: expected labels of objectives that the checkpoint knows, got "
            f"{', '.join(labels) or 'no labels'}. Choose another checkpoint with --checkpoint."
        )
    require_labels(frames, tables, known)
    predictor.predict([], known)  # unknown objectives fail before any work
    examples = Examples.of_tables(frames, tables, texts_of_tables(frames, tables, progress=True), known)
    result = evaluate(predictor, examples, progress=True)
    answered = {name for of_space in result.quality.values() for name in of_space}
    if unlabelled := [name for name in wanted if name not in answered]:
        raise ValueError(f"{named(tables)}: expected two labels or more of {', '.join(unlabelled)}, got fewer.")
    skipped = [name for name in labels if name not in answered]
    if json:
        speed = round(result.predictions_per_second, 1)
        print_json({**result.quality, "skipped": skipped, "predictions_per_second": speed})
        return
    print_evaluation(result)
    if skipped:
        say(f"skipped, as the checkpoint does not know them or they have fewer than two labels: {', '.join(skipped)}")


def _rows_of_split(frame: pd.DataFrame, split: str | None, path: Path) -> pd.DataFrame:
    splits = splits_of(frame, path)
    if split is None:
        return frame
    if "split" not in frame:
        raise ValueError(f"{path}: expected a column split, got none. Leave --split out.")
    rows = frame[splits == split]
    if rows.empty:
        raise ValueError(f"{path}: expected rows of split {split}, got {', '.join(splits.unique())}.")
    return rows
