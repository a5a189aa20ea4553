"""Train a model by a config, release its checkpoint and print what was learned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nasrlm.checkpoints.folder import check_replaceable
from nasrlm.cli.evaluating import print_evaluation
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


def train_by_config(file: Path, overrides: Mapping[str, Any], name: str, *, json: bool) -> None:
    """Train a model, or resume its run, and print a summary in the first process.

    Args:
        file: of the config.
        overrides: values of the config that replace those of the file.
        name: of the config, for the model card.
        json: print one JSON document.

    Raises:
        ValueError: the config, a table or a folder cannot be used.
    """
    chosen = TrainConfig.load(file, **overrides)
    device = torch_device(chosen.device)  # an unknown one is refused before texts are converted
    check_folder(chosen.out)
    with run_folder(chosen.out):  # a busy folder likewise
        pass
    check_replaceable(chosen.out / "checkpoint")
    examples = training_examples(chosen, progress=is_first_process())
    if chosen.bf16 and is_first_process() and not multiplies_bf16(device):
        warn("bf16: this processor multiplies 16-bit numbers more slowly than 32-bit ones; training in 32 bits.")
    result = train(chosen, examples, progress=True)
    if not is_first_process():
        return
    learned = [name for name in examples.objectives if name in result.checkpoint.objectives]
    test = examples.labelled(learned).split("test")
    measured = evaluate(Predictor(result.checkpoint), test) if test.any_label else None
    caveats = calibration_caveats(examples, learned) if result.checkpoint.model.config.head == "digits" else []
    folder = release(result, measured, chosen, name, caveats)
    if json:
        quality = measured.quality if measured else {}
        told = {"checkpoint": str(folder), "steps": result.steps, "valid_tau": result.valid_tau, "test": quality}
        print_json(told | {"caveats": caveats})
        return
    if measured:
        print_evaluation(measured)
    for words in caveats:
        say(f"{words}.")
    why = f", stopped early ({chosen.patience} evaluations without improvement)" if result.out_of_patience else ""
    say(f"checkpoint: {folder} after {result.steps:,} steps, {result.seconds / 60:.0f} min{why}")
