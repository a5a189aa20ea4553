"""The steps of a checkpoint's card: the commands that made it, with what each learned from and changed.

A step is a JSON object with the key ``command``; only this module knows its other keys.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Step = Mapping[str, Any]

ADAPT, REFINE = "nasrlm adapt", "nasrlm refine"


def steps_of(card: Mapping[str, Any]) -> list[Step]:
    """Return the steps of a checkpoint's card, first to last; empty if it has none."""
    return list(card.get("commands", ()))


def with_steps(card: Mapping[str, Any], steps: Sequence[Step]) -> dict[str, Any]:
    """Return a card with these steps."""
    return {**card, "commands": list(steps)}


def train_step(config: str, steps: int, seconds: float, device: str) -> Step:
    """Describe a training run on this machine.

    Args:
        config: as it was named on the command line.
        steps: number of training steps.
        seconds: duration of these steps.
        device: of torch.
    """
    machine = f"{device}, {os.cpu_count()} cores, {platform.machine()}"
    return {
        "command": f"nasrlm train --config {config}",
        "steps": steps,
        "minutes": round(seconds / 60),
        "machine": machine,
    }


def adapt_step(objectives: Sequence[str], labels: Sequence[int], tables: Sequence[Path]) -> Step:
    """Describe adapting: objectives, their numbers of labels, and the labels' tables."""
    return {
        "command": ADAPT,
        "objectives": list(objectives),
        "labels": labels[0] if len(set(labels)) == 1 else list(labels),
        "table": ", ".join(table.name for table in tables),
    }


def refine_step(changed: Mapping[str, Sequence[str]], tables: Sequence[Path]) -> Step:
    """Describe refining: by space, the costs that have become sums, or no longer are."""
    of_spaces = {space: list(names) for space, names in changed.items()}
    return {"command": REFINE, "changed": of_spaces, "tables": [table.name for table in tables]}


def is_refinement(step: Step) -> bool:
    """Return whether a step is one of refining, in which costs became sums."""
    return "changed" in step


def changed_of(step: Step, space: str) -> Sequence[str]:
    """Return the objectives whose predictions for networks of a space were changed by adapting or refining."""
    changed: Sequence[str] = step["changed"].get(space, ()) if is_refinement(step) else step["objectives"]
    return changed


def sums_in_words(steps: Iterable[Step]) -> str:
    """Say, in words, from which labels sums were made."""
    tables = dict.fromkeys(name for step in steps if is_refinement(step) for name in step["tables"])
    return f"`{REFINE}` made sums of costs, from the labels of {', '.join(tables)}"


def in_words(step: Step) -> str:
    """Describe a step in words."""
    if is_refinement(step):
        return sums_in_words([step])
    if "labels" not in step:
        return f"`{step['command']}`: {step['steps']:,} steps in {step['minutes']} minutes ({step['machine']})"
    learned = ", ".join(f"`{name}`" for name in step["objectives"])
    labels = step["labels"]
    counts = f"{labels:,} labels each" if isinstance(labels, int) else f"{', '.join(map(str, labels))} labels"
    return f"`{step['command']}` added {learned}, from {counts} of {step['table']}"
