"""Options of benchmarks that judge a checkpoint by a table of labels."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from studies.benchmark.task import Rows, SpaceTable


@dataclass(frozen=True)
class Config:
    """The configuration of such a benchmark.

    Attributes:
        table: table of one space.
        checkpoint: folder of the checkpoint; the released one if None.
    """

    table: Path
    checkpoint: Path | None = None


def tested(config: Config, space: str, *objectives: str) -> tuple[SpaceTable, Rows]:
    """Return the table, and its test rows with a label of any of these objectives.

    Raises:
        ValueError: the table cannot be read, or has fewer than two test rows with a label of one of the objectives.
    """
    table = SpaceTable(config.table, space)
    rows = {name: table.split("test", name) for name in objectives}
    if few := [name for name in objectives if len(rows[name]) < 2]:
        raise ValueError(f"{config.table}: expected two test rows or more with {few[0]}, got {len(rows[few[0]])}.")
    return table, np.unique(np.concatenate(list(rows.values())))


def read_config(description: str | None, words: Sequence[str] | None) -> Config:
    """Parse the config from the arguments of a command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--checkpoint", type=Path, default=None)
    return Config(**vars(parser.parse_args(words)))
