"""Verbs about the model: predict, evaluate, train, info."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer

import nasrlm
from nasrlm.arguments import ascend_around_median
from nasrlm.arrays import FloatArray
from nasrlm.by_space import answer_by_space, objectives_of
from nasrlm.checkpoint import Checkpoint, check_replaceable
from nasrlm.checkpoint_folder import README, folder_or_released
from nasrlm.cli.idle_options import refuse_given
from nasrlm.cli.inputs import (
    ArchitecturesArgument,
    CheckpointOption,
    InputShapeOption,
    SpaceOption,
    TableOption,
    config_file,
    listed,
    read_inputs,
)
from nasrlm.cli.labelled_tables import examples_of_tables
from nasrlm.cli.output import JsonOption, SeedOption, first_lines, print_json, print_table, say, warn
from nasrlm.cli.predictor_options import DeviceOption, EngineOption
from nasrlm.cli.space_predictions import warn_of_guesses, warn_of_strangers
from nasrlm.cli.table_predictions import predict_whole_table
from nasrlm.cli.verbs import LIST
from nasrlm.devices import multiplies_bf16, torch_device
from nasrlm.evaluation import COLUMNS, Evaluation, evaluate
from nasrlm.files import check_folder
from nasrlm.model_card import release
from nasrlm.prediction import Prediction, spell_interval
from nasrlm.predictor import Predictor
from nasrlm.processes import is_first_process
from nasrlm.reader import UnreadableTextError
from nasrlm.train_config import TrainConfig
from nasrlm.training import calibration_caveats, run_folder, train
from nasrlm.versions import versions_of
from spaces import get_space
from studies.labelled_table import label_columns
from studies.tables import read_rows, require_labels, splits_of
from studies.training_examples import training_examples

LIBRARIES = ("torch", "onnx", "onnxruntime", "transformers", "optuna", "pymoo", "moocore")
MAX_SAMPLES = 100_000  # of an objective: thirty megabytes an architecture of all that the released checkpoint knows
MAX_COLUMNS = 6  # of objectives; more become the rows of one table an architecture
ObjectivesOption = Annotated[
    str | None,
    typer.Option("--objectives", metavar=LIST, help="Names, separated by commas; all that are known if left out."),
]


def register(app: typer.Typer) -> None:
    """Add the verbs of this file."""
    app.command("predict")(predict)
    app.command("evaluate")(evaluate_table)
    app.command("train")(train_model)
    app.command("info")(info)


def predict(
    context: typer.Context,
    architectures: ArchitecturesArgument = None,
    space: SpaceOption = None,
    table: TableOption = None,
    objectives: ObjectivesOption = None,
    quantiles: Annotated[
        str, typer.Option(metavar=LIST, help="Three levels or more, ascending, separated by commas; 0.5 among them.")
    ] = ".1,.5,.9",
    input_shape: InputShapeOption = None,
    samples: Annotated[
        int, typer.Option(min=0, max=MAX_SAMPLES, help="Also draw so many samples of each objective.")
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Of a table of any size: write its columns architecture, text, space and split and the predictions, "
            "row by row, to this .parquet, which is replaced.",
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
    predictor = Predictor.from_pretrained(checkpoint, device, engine)
    levels = _levels(quantiles)
    if space is not None and space not in predictor.checkpoint.spaces:
        get_space(space)  # one of texts alone is known to the checkpoint, if to anybody
    asked = listed(objectives, "--objectives")
    predictor.predict([], asked or None, levels)  # unknown objectives fail before any work
    if out is not None:
        if table is None or architectures or samples:
            raise ValueError("predict --out: expected --table, and no architectures or --samples. See --help.")
        refuse_given(context, ["input_shape"], "a model or a function", "--table")
        return predict_whole_table(predictor, table, out, space=space, objectives=asked, quantiles=levels, json=json)
    inputs = read_inputs(architectures, table, space, input_shape)
    names = asked or objectives_of(predictor, inputs.spaces)
    ask = partial(answer_by_space, predictor, inputs.texts, inputs.spaces)
    try:
        values = ask(lambda own, x: own.predict(x, names, levels, progress=True).values)
    except UnreadableTextError as e:
        if table is None:
            raise e.in_row(e.row, inputs.names[e.row]) from e
        raise ValueError(f"{table}: {e.in_row(inputs.numbers[e.row])}") from e
    warn_of_guesses(predictor, inputs.spaces, names)
    if space is not None and table is None and "file" in inputs.rows[0]:
        warn_of_strangers(inputs.names, inputs.texts, space)
    prediction = Prediction(names, levels, values)
    rng = np.random.default_rng(seed)  # goes on from space to space
    drawn = ask(lambda own, x: own.sample(x, names, samples, rng)) if samples else None
    if json:
        print_json(_answers(inputs.names, prediction, drawn))
    else:
        _print_prediction(first_lines(inputs.names, inputs.numbers), prediction)


def _answers(names: Sequence[str], prediction: Prediction, drawn: FloatArray | None) -> list[dict[str, Any]]:
    """An architecture an element: the interval of every objective, more than three quantiles, and samples if any."""
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
    """One table; or one an architecture, of many objectives or quantiles."""
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


def evaluate_table(
    tables: Annotated[list[Path], typer.Option("--table", help="Labelled architectures or texts; may be repeated.")],
    objectives: ObjectivesOption = None,
    split: Annotated[str | None, typer.Option("--split", help="Only rows of this split.")] = None,
    space: SpaceOption = None,
    checkpoint: CheckpointOption = None,
    device: DeviceOption = "cpu",
    engine: EngineOption = "auto",
    json: JsonOption = False,
) -> None:
    """Compare predictions with the labels of tables: rank correlation, error and coverage."""
    predictor = Predictor.from_pretrained(checkpoint, device, engine)
    wanted = listed(objectives, "--objectives")
    frames = [_rows_of_split(read_rows(table, space), split, table) for table in tables]
    labels = wanted or tuple(dict.fromkeys(name for frame in frames for name in label_columns(frame)))
    known = [name for name in labels if wanted or name in predictor.objectives]
    named = ", ".join(map(str, tables))
    if not known:
        raise ValueError(
            f"{named}: expected a label that the checkpoint knows, got {', '.join(labels) or 'no labels'}."
        )
    require_labels(frames, tables, known)
    predictor.predict([], known)  # unknown objectives fail before any work
    examples = examples_of_tables(frames, tables, known)
    result = evaluate(predictor, examples, progress=True)
    answered = {name for of_space in result.quality.values() for name in of_space}
    if unlabelled := [name for name in wanted if name not in answered]:
        raise ValueError(f"{named}: expected two labels or more of {', '.join(unlabelled)}, got fewer.")
    skipped = [name for name in labels if name not in answered]
    if json:
        speed = round(result.predictions_per_second, 1)
        print_json({**result.quality, "skipped": skipped, "predictions_per_second": speed})
        return
    _print_quality(result)
    if skipped:
        say(f"not known to the checkpoint, or without two labels: {', '.join(skipped)}")


def train_model(
    config: Annotated[Path, typer.Option("--config", help="YAML file, see docs/training.md; or a recipe's name.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the run, instead of the config's.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="Where torch runs, instead of the config's.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Instead of the config's.")] = None,
    json: JsonOption = False,
) -> None:
    """Train a model; run the same command again to go on after a stop. torchrun and accelerate launch may run it."""
    given = {"out": out, "device": device, "seed": seed}
    overrides = {key: value for key, value in given.items() if value is not None}
    chosen = TrainConfig.load(config_file(config), **overrides)
    if chosen.bf16 and is_first_process() and not multiplies_bf16(torch_device(chosen.device)):
        warn("bf16: this processor multiplies 16 bits slower than 32; training in 32.")
    check_folder(chosen.out)
    with run_folder(chosen.out):  # refused now, not when all texts are converted
        pass
    check_replaceable(chosen.out / "checkpoint")
    try:
        examples = training_examples(chosen, progress=is_first_process())
        result = train(chosen, examples, progress=True)
    except ImportError as e:  # of an extra that the config asks for
        raise ValueError(str(e)) from e
    if not is_first_process():
        return
    learned = [name for name in examples.objectives if name in result.checkpoint.objectives]
    test = examples.labelled(learned).split("test")
    measured = evaluate(Predictor(result.checkpoint), test) if test.any_label else None
    caveats = calibration_caveats(examples, learned) if result.checkpoint.model.config.head == "digits" else []
    folder = release(result, measured, chosen, str(config), caveats)
    if json:
        quality = measured.quality if measured else {}
        told = {"checkpoint": str(folder), "steps": result.steps, "valid_tau": result.valid_tau, "test": quality}
        print_json(told | ({"caveats": caveats} if caveats else {}))
        return
    if measured:
        _print_quality(measured)
    for words in caveats:
        say(f"{words}.")
    why = f", out of patience ({chosen.patience} evaluations)" if result.out_of_patience else ""
    say(f"checkpoint: {folder} after {result.steps:,} steps, {result.seconds / 60:.0f} min{why}")


def info(checkpoint: CheckpointOption = None, json: JsonOption = False) -> None:
    """Versions, torch devices, and what the checkpoint was trained on."""
    loaded = Checkpoint.from_pretrained(checkpoint)
    versions = {"nasrlm": nasrlm.__version__, **versions_of(*LIBRARIES)}
    devices = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    described = {
        "versions": versions,
        "devices": devices,
        "checkpoint": {
            "folder": str(folder_or_released(checkpoint)),
            "parameters": loaded.model.num_parameters,
            "vocabulary": loaded.tokenizer.vocabulary_size,
            "objectives": list(loaded.objectives),
            "own_encoders": sorted(loaded.encoders),
            "sums": {space: list(sums) for space, sums in loaded.sums_by_space.items()},
            **loaded.card,
        },
    }
    if json:
        print_json(described)
        return
    print_table(["library", "version"], list(versions.items()))
    say(f"devices: {', '.join(devices)}")
    card = folder_or_released(checkpoint) / README
    say(
        card.read_text(encoding="utf-8")
        if card.is_file()
        else f"checkpoint: {len(loaded.objectives)} objectives, no card"
    )


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


def _print_quality(evaluation: Evaluation) -> None:
    rows = [
        [space, objective, *metrics.values()]
        for space, measured in evaluation.quality.items()
        for objective, metrics in measured.items()
    ]
    print_table(COLUMNS, rows)
    say(f"{evaluation.predictions_per_second:,.0f} predictions/s, each of all objectives with intervals")


def _levels(quantiles: str) -> tuple[float, ...]:
    try:
        levels = tuple(float(level) for level in quantiles.split(","))
    except ValueError:
        levels = ()
    if len(levels) < 3 or not ascend_around_median(levels):
        raise ValueError(
            f"--quantiles: expected three ascending levels or more in (0, 1), 0.5 among them, got {quantiles!r}."
        )
    return levels
