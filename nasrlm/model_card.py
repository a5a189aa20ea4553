"""The card of a checkpoint: README.md beside the weights, and the same facts in config.json."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from nasrlm.checkpoints.card_steps import (
    REFINE,
    Step,
    changed_of,
    in_words,
    is_refinement,
    steps_of,
    sums_in_words,
    train_step,
    with_steps,
)
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.checkpoints.folder import README, UNTITLED
from nasrlm.evaluation import Evaluation
from nasrlm.metrics import COLUMNS
from nasrlm.training.config import TrainConfig
from nasrlm.training.run import TrainResult


def release(
    result: TrainResult,
    measured: Evaluation | None,
    config: TrainConfig,
    config_path: str,
    caveats: Sequence[str] = (),
) -> Path:
    """Save a trained checkpoint with its measured quality and its card to ``config.out/checkpoint``.

    Args:
        result: of ``train``.
        measured: metrics on test rows, if there are any.
        config: of the run.
        config_path: path of the config as named on the command line, for the card.
        caveats: from ``calibration_caveats``.
    """
    steps = _earlier_steps(config)
    steps.append(train_step(config_path, result.steps, result.seconds, config.device))
    card = with_steps(result.checkpoint.card, steps) | {"test": measured.quality if measured else {}}
    checkpoint = replace(result.checkpoint, card=card)
    folder = config.out / "checkpoint"
    checkpoint.save_pretrained(folder, _card(result, measured, config, steps, caveats))
    return folder


def with_step(checkpoint: Checkpoint, step: Step) -> Checkpoint:
    """Add a step of adapting or refining to the card of the checkpoint that it has made.

    Earlier metrics of objectives that the step changed are removed from the card.
    """
    measured = {
        space: {name: x for name, x in of_space.items() if name not in changed_of(step, space)}
        for space, of_space in checkpoint.card.get("test", {}).items()
    }
    card = with_steps(checkpoint.card, [*steps_of(checkpoint.card), step])
    return replace(checkpoint, card=card | {"test": measured})


def changed_readme(checkpoint: Checkpoint, before: Path) -> str:
    """Return README.md for a checkpoint from ``with_step``.

    It is that of the folder ``before`` without lines that no longer hold, followed by a description of the last step.
    """
    readme = before / README
    text = readme.read_text(encoding="utf-8") if readme.is_file() else UNTITLED
    step = steps_of(checkpoint.card)[-1]
    text = re.sub(
        r"(?<= predicts )\d+(?= objectives\.$)", str(len(checkpoint.objectives)), text, count=1, flags=re.MULTILINE
    )
    kept = [line for line in text.splitlines() if not (_is_measured(line, step) or _is_superseded(line, step))]
    told = [*([] if is_refinement(step) else [in_words(step)]), *_sums_sentence(checkpoint)]
    return "\n\n".join(["\n".join(kept).rstrip(), *(f"{words}." for words in told)]) + "\n"


def _is_measured(line: str, step: Step) -> bool:
    """Return whether a line is a row of the table of metrics, for an objective that a step changed."""
    cells = [cell.strip() for cell in line.split("|")]
    return line.startswith("|") and len(cells) > 2 and cells[2] in changed_of(step, cells[1])


def _is_superseded(line: str, step: Step) -> bool:
    """Return whether a step replaces a line: one that lists costs that are sums, or an earlier step whose objectives
    this step has all learned again.
    """
    told = line.removeprefix("- ")
    if told.startswith(f"`{REFINE}`"):
        return True
    if is_refinement(step) or not told.startswith(f"`{step['command']}`"):
        return False
    names = re.findall("`([^`]+)`", line)[1:]
    return bool(names) and set(names) <= set(step["objectives"])


def _sums_sentence(checkpoint: Checkpoint) -> list[str]:
    """Return a sentence on which costs are sums; none if there are no sums."""
    if not checkpoint.sums_by_space:
        return []
    of_spaces = [f"of {space} {', '.join(f'`{x}`' for x in sums)}" for space, sums in checkpoint.sums_by_space.items()]
    return [f"{sums_in_words(steps_of(checkpoint.card))}: {'; '.join(of_spaces)}"]


def _validated(checkpoint: Checkpoint) -> str:
    """Say, in words, what the valid split was used for."""
    if checkpoint.calibration or any(checkpoint.calibration_by_space.values()):
        return "Stopped early and calibrated on the valid split"
    if checkpoint.model.config.head == "mse":
        return "Without intervals"
    return "Weights of the last step, with intervals that are not calibrated: no valid row had a label"


def _own_encoders(spaces: Iterable[str]) -> list[str]:
    names = ", ".join(sorted(spaces))
    return [f"Networks of {names} have encoders of their own, stored in 8 bits."] if names else []


def _earlier_steps(config: TrainConfig) -> list[Step]:
    """Return the steps of the checkpoint that this one was fine-tuned from."""
    if config.initial_checkpoint is None:
        return []
    return steps_of(Checkpoint.from_pretrained(config.initial_checkpoint).card)


def _card(
    result: TrainResult,
    measured: Evaluation | None,
    config: TrainConfig,
    steps: Sequence[Step],
    caveats: Sequence[str],
) -> str:
    model = result.checkpoint.model
    reads = "source code" if result.checkpoint.tokenizer.pieces == "code" else "ONNX text"
    lines = [
        "# nasrlm checkpoint",
        "",
        f"A regression language model ({model.num_parameters:,} parameters, backbone {model.config.backbone}) "
        f"that reads {reads} and predicts {len(result.checkpoint.objectives)} objectives.",
        *_own_encoders(result.checkpoint.encoders),
        "",
        "For networks unlike those it has learned from, its predictions may be unreliable, and its intervals do not "
        "show that. Units are in the names: `metric_unit@context`, accuracies in percent.",
        "",
        *[f"- {in_words(step)}." for step in steps],
        f"- Data: the train split of {', '.join(path.name for path in config.table)}, seed {config.seed}.",
        *[f"- {source}" for source in config.sources],
        f"- {_validated(result.checkpoint)}{'; the table is of the test split' if measured else ''}.",
        *[f"- {words}." for words in caveats],
        f"- sha256 of texts, labels and splits: `{result.checkpoint.card['data_sha256']}`.",
    ]
    if measured is not None:
        lines += [
            "",
            f"| {' | '.join(COLUMNS)} |",
            f"|{'---|' * len(COLUMNS)}",
        ]
        for space, objectives in measured.quality.items():
            for name, q in objectives.items():
                lines.append(
                    f"| {space} | {name} | {q['n']} | {_spelled(q['kendall_tau'], '.3f')} "
                    f"| {_spelled(q['spearman_rho'], '.3f')} | {q['mae']:.3g} | {_spelled(q['coverage_80'], '.1%')} |"
                )
    return "\n".join(lines) + "\n"


def _spelled(value: float, how: str) -> str:
    """Format a number for a table; NaN is a dash."""
    return "-" if math.isnan(value) else format(value, how)
