"""Saving a checkpoint that was made from another, whose README is carried over."""

from __future__ import annotations

from pathlib import Path

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.cli.output import warn
from nasrlm.model_card import changed_readme


def save_changed(checkpoint: Checkpoint, origin: Path, out: Path) -> None:
    """Save a checkpoint that was made from the one in ``origin``, with that one's README brought up to date."""
    readme = changed_readme(checkpoint, origin)  # before ``out``, which may be the same folder, is replaced
    if (out / "config.json").exists():
        warn(f"{out}: the existing checkpoint is replaced.")
    checkpoint.save_pretrained(out, readme)
