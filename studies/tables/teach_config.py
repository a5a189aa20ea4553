"""The configuration of teaching; teaching itself imports pandas and torch, which takes seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LEAST_LABELS = 20  # per objective


@dataclass(frozen=True)
class TeachConfig:
    """Which architectures to draw, and from which labels to learn.

    Attributes:
        table: file of architectures of one space with labels and splits; only train rows are learned from.
        objectives: names of objectives to label; all of the table if empty.
        count: number of architectures to draw.
        labels: largest number of labels for a Gaussian process, whose time is cubic in it.
        like_table: draw each choice as often as it is in the table's train rows.
        space: use only rows of this space.
        seed: seed of every random draw.
    """

    table: Path
    objectives: Sequence[str] = ()
    count: int = 4000
    labels: int = 2500
    like_table: bool = False
    space: str | None = None
    seed: int = 0
