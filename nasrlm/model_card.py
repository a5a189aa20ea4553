"""What a checkpoint says of itself: README.md beside the weights, and the same facts in config.json."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nasrlm.evaluation import Evaluation
from nasrlm.files import write_atomically
from nasrlm.train_config import TrainConfig
from nasrlm.training import TrainResult


def release(result: TrainResult, measured: Evaluation | None, config: TrainConfig, config_path: str) -> Path:
    """Save a trained checkpoint with its measured quality and its card to ``config.out/checkpoint``.

    Args:
        result: of ``train``.
        measured: metrics on test rows, if there are any.
        config: of the run.
        config_path: as it was named on the command line, for the card.
    """
    command = f"nasrlm train --config {config_path}"
    card = {**result.checkpoint.card, "command": command, "test": measured.quality if measured else {}}
    checkpoint = replace(result.checkpoint, card=card)
    folder = config.out / "checkpoint"
    checkpoint.save_pretrained(folder)
    write_atomically(folder / "README.md", _card(result, measured, config, command).encode())
    return folder


def _card(result: TrainResult, measured: Evaluation | None, config: TrainConfig, command: str) -> str:
    model = result.checkpoint.model
    lines = [
        "# nasrlm checkpoint",
        "",
        f"A compact regression language model ({model.num_parameters:,} parameters) that reads canonical ONNX text "
        f"and decodes {len(result.checkpoint.objectives)} objectives.",
        "",
        f"- Trained by `{command}` on {config.table.name}, train split; "
        f"{result.steps:,} steps in {result.seconds / 60:.0f} minutes on {config.device}, seed {config.seed}.",
        "- Stopped and calibrated by the valid split; the table below is the test split, seen by neither.",
        f"- sha256 of texts, labels and splits: `{result.checkpoint.card['data_sha256']}`.",
    ]
    if measured is not None:
        lines += [
            "",
            "| space | objective | rows | Kendall τ | Spearman ρ | mean absolute error | 80 % interval covers |",
            "|---|---|---|---|---|---|---|",
        ]
        for space, objectives in measured.quality.items():
            for name, q in objectives.items():
                lines.append(
                    f"| {space} | {name} | {q['n']} | {q['kendall_tau']:.3f} | {q['spearman_rho']:.3f} "
                    f"| {q['mae']:.3g} | {q['coverage_80']:.1%} |"
                )
    return "\n".join(lines) + "\n"
