"""What a checkpoint says of itself: README.md beside the weights, and the same facts in config.json."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nasrlm.checkpoint import Checkpoint
from nasrlm.evaluation import Evaluation
from nasrlm.files import write_atomically
from nasrlm.train_config import TrainConfig
from nasrlm.training import TrainResult

READ = {"onnx": "ONNX text", "chains": "ONNX text", "code": "source code"}


def release(result: TrainResult, measured: Evaluation | None, config: TrainConfig, config_path: str) -> Path:
    """Save a trained checkpoint with its measured quality and its card to ``config.out/checkpoint``.

    Args:
        result: of ``train``.
        measured: metrics on test rows, if there are any.
        config: of the run.
        config_path: as it was named on the command line, for the card.
    """
    steps = _earlier_steps(config)
    steps.append(
        {
            "command": f"nasrlm train --config {config_path}",
            "steps": result.steps,
            "minutes": round(result.seconds / 60),
            "machine": f"{config.device}, {os.cpu_count()} cores, {platform.machine()}",
        }
    )
    card = {**result.checkpoint.card, "commands": steps, "test": measured.quality if measured else {}}
    checkpoint = replace(result.checkpoint, card=card)
    folder = config.out / "checkpoint"
    checkpoint.save_pretrained(folder)
    write_atomically(folder / "README.md", _card(result, measured, config, steps).encode())
    return folder


def adapted_card(folder: Path, objectives: Sequence[str], labels: int, table: Path) -> str:
    """The card of a checkpoint that has learned more objectives from a few labels, behind that of the one before.

    Args:
        folder: of the one before.
        objectives: that were learned.
        labels: of each.
        table: that they are from.
    """
    card = folder / "README.md"
    before = card.read_text(encoding="utf-8") if card.is_file() else "# nasrlm checkpoint\n"
    learned = ", ".join(f"`{name}`" for name in objectives)
    return f"{before.rstrip()}\n\n`nasrlm adapt` added {learned}, from {labels} labels each of {table.name}.\n"


def _own_encoders(spaces: Iterable[str]) -> list[str]:
    names = ", ".join(sorted(spaces))
    return [f"Networks of {names} are read by encoders of their own, kept in 8 bits."] if names else []


def _earlier_steps(config: TrainConfig) -> list[dict[str, Any]]:
    """The commands that trained the checkpoint this one was fine-tuned from."""
    if config.initial_checkpoint is None:
        return []
    return list(Checkpoint.from_pretrained(config.initial_checkpoint).card.get("commands", []))


def _card(
    result: TrainResult, measured: Evaluation | None, config: TrainConfig, steps: Sequence[Mapping[str, Any]]
) -> str:
    model = result.checkpoint.model
    lines = [
        "# nasrlm checkpoint",
        "",
        f"A regression language model ({model.num_parameters:,} parameters, backbone {model.config.backbone}) "
        f"that reads {READ[config.tokenizer]} and predicts {len(result.checkpoint.objectives)} objectives.",
        *_own_encoders(result.checkpoint.encoders),
        "",
        *[
            f"- `{step['command']}`: {step['steps']:,} steps in {step['minutes']} minutes ({step['machine']})."
            for step in steps
        ],
        f"- Data: the train split of {', '.join(path.name for path in config.table)}, seed {config.seed}.",
        *[f"- {source}" for source in config.sources],
        "- Stopped and calibrated by the valid split" + ("; the table is of the test split." if measured else "."),
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
