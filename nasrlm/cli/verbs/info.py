"""The verb info: versions, devices and the checkpoint."""

from __future__ import annotations

import nasrlm
from nasrlm.checkpoints.folder import README, folder_or_released
from nasrlm.cli.options import CheckpointOption, JsonOption
from nasrlm.cli.output import print_json, print_table, say
from nasrlm.versions import versions_of

LIBRARIES = ("torch", "onnx", "onnxruntime", "transformers", "optuna", "pymoo", "moocore")


def run(checkpoint: CheckpointOption = None, json: JsonOption = False) -> None:
    """Print versions, torch devices, and what the checkpoint was trained on."""
    import torch  # here: takes a second

    loaded = nasrlm.Checkpoint.from_pretrained(checkpoint)
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
