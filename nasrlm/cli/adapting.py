"""Adapt a checkpoint to tables, save it, and print what it has learned from."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.checkpoints.folder import folder_or_released
from nasrlm.cli.changed_checkpoint import save_changed
from nasrlm.cli.output import print_json, print_table, say
from nasrlm.metrics import COLUMNS, Quality
from studies.tables.adapt_config import AdaptConfig
from studies.tables.adapting import adapt_to_tables
from studies.tables.rows import row_names
from studies.tables.several import shown_names

MOST_PRINTED = 20  # labels that are printed; --json lists all


def adapt_checkpoint(checkpoint: Path | None, config: AdaptConfig, out: Path, *, json: bool) -> None:
    """Save the checkpoint that a checkpoint becomes by learning from tables, and print a summary.

    Args:
        checkpoint: folder; None for the released one.
        config: what to learn.
        out: folder of the new checkpoint.
        json: print one JSON document.

    Raises:
        ValueError: a table or folder cannot be used, or there are too few labels.
    """
    started = time.monotonic()
    loaded = Checkpoint.from_pretrained(checkpoint)
    adapted = adapt_to_tables(loaded, config, progress=True)
    save_changed(adapted.checkpoint, folder_or_released(checkpoint), out)
    judged = adapted.judge()
    seconds = round(time.monotonic() - started, 1)
    if json:
        print_json({"used": row_names(adapted.learned), "others": judged, "seconds": seconds})
    else:
        _print_learned(adapted.learned, config)
        _print_judged(judged)
        say(f"checkpoint: {out}, {len(adapted.checkpoint.objectives)} objectives, {seconds} s")


def _print_learned(learned: pd.DataFrame, config: AdaptConfig) -> None:
    """Print the labels that were learned from, or the first MOST_PRINTED of them."""
    shown = learned[:MOST_PRINTED]
    title = "learned from"
    if len(shown) < len(learned):
        title += f" {len(learned):,} rows; the first {len(shown)} are shown"
    cells = zip(shown_names(shown, config.files), *[shown[name] for name in config.objectives], strict=True)
    print_table(["architecture", *config.objectives], [list(row) for row in cells], title)


def _print_judged(judged: Mapping[str, Quality]) -> None:
    if judged:
        rows = [[name, *found.values()] for name, found in judged.items()]
        print_table(COLUMNS[1:], rows, "on other labelled rows, which were not used for learning")
