"""The checkpoint and the table of labels that some benchmarks judge it by."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Config:
    """What is looked at.

    Attributes:
        table: of NAS-Bench-201.
        checkpoint: folder; the released one if None.
    """

    table: Path
    checkpoint: Path | None = None


def read_config(description: str | None, words: Sequence[str] | None) -> Config:
    """From the words of a command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--checkpoint", type=Path, default=None)
    return Config(**vars(parser.parse_args(words)))
