"""The commands that made a checkpoint, as its card keeps them: what each learned from, and what it changed.

A step is a JSON object with the key ``command``; its other keys are known here alone.
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
    """The steps of a checkpoint's card, first to last; none of a card without any."""
    return list(card.get("commands", ()))


def with_steps(card: Mapping[str, Any], steps: Sequence[Step]) -> dict[str, Any]:
    """A card with these steps."""
    return {**card, "commands": list(steps)}


def train_step(config: str, steps: int, seconds: float, device: str) -> Step:
    """A training run on this machine.

    Args:
        config: as it was named on the command line.
        steps: that it took.
        seconds: in these.
        device: of torch.
    """
    machine = f"{device}, {os.cpu_count()} cores, {platform.machine()}"
    return {
        "command": f"nasrlm train --config {config}",
        "steps": steps,
        "minutes": round(seconds / 60),
        "machine": machine,
    }


def adapt_step(objectives: Sequence[str], labels: Sequence[int], tables: Sequence[Path], spaces: Sequence[str]) -> Step:
    """Adapting: objectives, the number of labels of each, the tables they are from, and the spaces of the networks."""
    return {
        "command": ADAPT,
        "objectives": list(objectives),
        "labels": labels[0] if len(set(labels)) == 1 else list(labels),
        "table": ", ".join(table.name for table in tables),
        "spaces": list(spaces),
    }


def refine_step(changed: Mapping[str, Sequence[str]], tables: Sequence[Path]) -> Step:
    """Refining: by space, the costs that have become sums, or no longer are."""
    of_spaces = {space: list(names) for space, names in changed.items()}
    return {"command": REFINE, "changed": of_spaces, "tables": [table.name for table in tables]}


def is_refinement(step: Step) -> bool:
    """Whether costs became sums."""
    return "changed" in step


def changed_of(step: Step, space: str) -> Sequence[str]:
    """Objectives whose predictions for networks of a space a step of adapting or refining has changed."""
    changed: Sequence[str] = step["changed"].get(space, ()) if is_refinement(step) else step["objectives"]
    return changed


def taught_spaces(steps: Iterable[Step], objective: str) -> Sequence[str]:
    """Spaces of the networks that an objective was last adapted to, as far as they are noted."""
    noted = [step["spaces"] for step in steps if objective in step.get("objectives", ()) and "spaces" in step]
    return noted[-1] if noted else ()


def sums_in_words(steps: Iterable[Step]) -> str:
    """From what labels sums were made."""
    tables = dict.fromkeys(name for step in steps if is_refinement(step) for name in step["tables"])
    return f"`{REFINE}` made sums of costs, from the labels of {', '.join(tables)}"


def in_words(step: Step) -> str:
    """What a step did, for people."""
    if is_refinement(step):
        return sums_in_words([step])
    if "labels" not in step:
        return f"`{step['command']}`: {step['steps']:,} steps in {step['minutes']} minutes ({step['machine']})"
    learned = ", ".join(f"`{name}`" for name in step["objectives"])
    labels = step["labels"]
    counts = f"{labels:,} labels each" if isinstance(labels, int) else f"{', '.join(map(str, labels))} labels"
    return f"`{step['command']}` added {learned}, from {counts} of {step['table']}"
