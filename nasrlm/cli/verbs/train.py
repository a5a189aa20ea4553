"""The verb train: train a model by a config, or resume a run that was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import studies
from nasrlm.checkpoints.folder import check_replaceable
from nasrlm.cli.evaluations import print_evaluation
from nasrlm.cli.options import JsonOption
from nasrlm.cli.output import print_json, say, warn
from nasrlm.evaluation import evaluate
from nasrlm.files import check_folder
from nasrlm.model.devices import multiplies_bf16, torch_device
from nasrlm.model_card import release
from nasrlm.predictor import Predictor
from nasrlm.training.config import TrainConfig
from nasrlm.training.processes import is_first_process
from nasrlm.training.train import calibration_caveats, run_folder, train
from studies.tables.training_examples import training_examples

RECIPES = Path(studies.__file__).parent / "recipes"  # shipped with the package


def run(
    config: Annotated[Path, typer.Option("--config", help="YAML file (see docs/training.md) or name of a recipe.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the run; default: that of the config.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="Torch device; default: that of the config.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed; default: that of the config.")] = None,
    json: JsonOption = False,
) -> None:
    """Train a model; the same command resumes a stopped run. Works with torchrun and accelerate launch."""
    given = {"out": out, "device": device, "seed": seed}
    overrides = {key: value for key, value in given.items() if value is not None}
    chosen = TrainConfig.load(_config_file(config), **overrides)
    if chosen.bf16 and is_first_process() and not multiplies_bf16(torch_device(chosen.device)):
        warn("bf16: this processor multiplies 16-bit numbers more slowly than 32-bit ones; training in 32 bits.")
    check_folder(chosen.out)
    with run_folder(chosen.out):  # a busy folder is refused before texts are converted
        pass
    check_replaceable(chosen.out / "checkpoint")
    examples = training_examples(chosen, progress=is_first_process())
    result = train(chosen, examples, progress=True)
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
        print_evaluation(measured)
    for words in caveats:
        say(f"{words}.")
    why = f", stopped early ({chosen.patience} evaluations without improvement)" if result.out_of_patience else ""
    say(f"checkpoint: {folder} after {result.steps:,} steps, {result.seconds / 60:.0f} min{why}")


def _config_file(given: Path) -> Path:
    """Return the file of a config: the given path, or that of the recipe of this name."""
    if given.suffix or given.is_file():  # a folder may have a recipe's name
        return given
    recipes = {path.stem: path for path in sorted(RECIPES.glob("*.yaml"))}
    if str(given) not in recipes:
        raise ValueError(f"--config: expected a YAML file or a recipe, {', '.join(recipes)}, got {given}.")
    return recipes[str(given)]
