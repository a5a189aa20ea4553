"""The verb predict: predict objectives with calibrated intervals."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import nasrlm
from nasrlm.arguments import ascend_around_median
from nasrlm.arrays import FloatArray
from nasrlm.by_space import answer_by_space, objectives_of_spaces
from nasrlm.cli.guesses import warn_of_counts, warn_of_foreign_networks, warn_of_guesses, warn_of_inputs
from nasrlm.cli.idle_options import refuse_given
from nasrlm.cli.inputs import read_inputs
from nasrlm.cli.networks import warn_of_failed
from nasrlm.cli.options import (
    ArchitecturesArgument,
    CheckpointOption,
    DeviceOption,
    EngineOption,
    InputShapeOption,
    JsonOption,
    ObjectivesOption,
    SeedOption,
    SpaceOption,
    TableOption,
    listed,
)
from nasrlm.cli.output import check_table_out, print_json, print_table, say
from nasrlm.cli.table_predictions import predict_whole_table, write_predictions
from nasrlm.cli.verbs import LIST
from nasrlm.prediction import Prediction, spell_interval
from nasrlm.unreadable_texts import naming_rows
from spaces import get_space
from spaces.shown import first_lines

MAX_SAMPLES = 100_000  # per objective: thirty megabytes per architecture for all that the released checkpoint knows
MAX_COLUMNS = 6  # objectives in columns; more are printed as the rows of one table per architecture


def run(
    context: typer.Context,
    architectures: ArchitecturesArgument = None,
    space: SpaceOption = None,
    table: TableOption = None,
    objectives: ObjectivesOption = None,
    quantiles: Annotated[
        str,
        typer.Option(metavar=LIST, help="Three or more ascending levels, separated by commas; 0.5 must be included."),
    ] = ".1,.5,.9",
    input_shape: InputShapeOption = None,
    samples: Annotated[
        int,
        typer.Option(min=0, max=MAX_SAMPLES, help="Number of samples of each objective to draw as well; needs --json."),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Table for the predictions, ending in .parquet, .csv or .jsonl; an existing one is replaced. Those "
            "of a --table, which may have any size, go to .parquet or .csv, with its columns architecture, file, text, "
            "space and split.",
        ),
    ] = None,
    checkpoint: CheckpointOption = None,
    device: DeviceOption = "cpu",
    engine: EngineOption = "auto",
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Predict objectives with calibrated intervals."""
    if samples and not json:
        raise ValueError("predict --samples: expected --json, which prints them. See --help.")
    if not samples:
        refuse_given(context, ["seed"], "--samples", "none")
    predictor = nasrlm.Predictor.from_pretrained(checkpoint, device, engine)
    levels = _levels(quantiles)
    if space is not None and space not in predictor.checkpoint.spaces:
        get_space(space)  # fails if it is unknown here too
    asked = listed(objectives, "--objectives")
    predictor.predict([], asked or None, levels)  # unknown objectives fail before any work
    if out is not None:
        if samples:
            raise ValueError("predict --out: expected no --samples, which --json prints. See --help.")
        if table is not None and not architectures:
            refuse_given(context, ["input_shape"], "a model or a function", "--table")
            return predict_whole_table(
                predictor, table, out, space=space, objectives=asked, quantiles=levels, json=json
            )
        check_table_out(out, *map(Path, architectures or ()))
    started = time.perf_counter()
    inputs = read_inputs(architectures, table, space, input_shape)
    warn_of_failed(inputs.failed)
    names = asked or objectives_of_spaces(predictor, inputs.spaces)
    ask = partial(answer_by_space, predictor, inputs.texts, inputs.spaces)
    with naming_rows(lambda row: inputs.numbers[row] if table else row, lambda row: str(table or inputs.names[row])):
        values = ask(lambda own, x: own.predict(x, names, levels, progress=True).values)
    warn_of_guesses(predictor, inputs.spaces, names)
    warn_of_counts(names)
    if space is not None and table is None and "file" in inputs.rows[0]:
        warn_of_foreign_networks(inputs.names, inputs.texts, space)
    else:
        warn_of_inputs(inputs.notations, inputs.texts, inputs.spaces)
    prediction = Prediction(names, levels, values)
    if out is not None:
        return write_predictions(inputs.rows, prediction, out, started=started, json=json)
    rng = np.random.default_rng(seed)  # one generator for all spaces
    drawn = ask(lambda own, x: own.sample(x, names, samples, rng)) if samples else None
    if json:
        print_json(_answers(inputs.names, prediction, drawn))
    else:
        _print_prediction(first_lines(inputs.names, inputs.numbers), prediction)


def _answers(names: Sequence[str], prediction: Prediction, drawn: FloatArray | None) -> list[dict[str, Any]]:
    """Return, for each architecture, intervals of all objectives, more than three quantiles, and samples if any."""
    rows = []
    for index, architecture in enumerate(names):
        answers: dict[str, Any] = {"architecture": architecture}
        for column, name in enumerate(prediction.objectives):
            parts = {"median": prediction.median, "low": prediction.low, "high": prediction.high}
            answers[name] = {word: float(part[index, column]) for word, part in parts.items()}
            if len(prediction.quantiles) > 3:
                levels = map(str, prediction.quantiles)
                answers[name]["quantiles"] = dict(zip(levels, prediction.values[index, column], strict=True))
            if drawn is not None:
                answers[name]["samples"] = drawn[index, column].tolist()
        rows.append(answers)
    return rows


def _print_prediction(names: Sequence[str], prediction: Prediction) -> None:
    """Print one table, or one per architecture if there are many objectives or quantiles."""
    objectives, levels = prediction.objectives, prediction.quantiles
    if len(objectives) > MAX_COLUMNS or len(levels) > 3:
        for architecture, of_objectives in zip(names, prediction.values.tolist(), strict=True):
            say(architecture)
            cells = [[name, *quantiles] for name, quantiles in zip(objectives, of_objectives, strict=True)]
            print_table(["objective", *[f"{100 * level:g} %" for level in levels]], cells)
        return
    rows = _answers(names, prediction, None)
    cells = [[row["architecture"], *[spell_interval(row[name]) for name in objectives]] for row in rows]
    print_table(["architecture", *objectives], cells)


def _levels(quantiles: str) -> tuple[float, ...]:
    try:
        levels = tuple(float(level) for level in quantiles.split(","))
    except ValueError:
        levels = ()
    if len(levels) < 3 or not ascend_around_median(levels):
        raise ValueError(
            f"--quantiles: expected three or more ascending levels in (0, 1), including 0.5, got {quantiles!r}."
        )
    return levels
