"""Refine a checkpoint by labels of tables, save it if sums fit better, and print how both fit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from nasrlm.adaptation.refine import FEWEST_VALID, Comparison, may_add_up, refine
from nasrlm.checkpoints.card_steps import refine_step
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.checkpoints.folder import folder_or_released
from nasrlm.cli.changed_checkpoint import save_changed
from nasrlm.cli.output import print_json, print_table, say, warn
from nasrlm.examples import Examples
from nasrlm.model_card import with_step
from nasrlm.named_spaces import known_as
from studies.tables.files import label_columns
from studies.tables.rows import named, require_labels, texts_of_tables
from studies.tables.several import rows_to_learn_from

COLUMNS = ("space", "objective", "labels", "error spelled", "error of the sum", "from now on")


def refine_checkpoint(
    checkpoint: Path | None, tables: Sequence[Path], wanted: Sequence[str], space: str | None, out: Path, *, json: bool
) -> None:
    """Save the checkpoint that a checkpoint becomes by refining, if any sum fits better, and print a summary.

    Args:
        checkpoint: folder; None for the released one.
        tables: with labels.
        wanted: costs to refine; if empty, all that may become sums.
        space: use only rows of this space; None for all rows.
        out: folder of the new checkpoint.
        json: print one JSON document.

    Raises:
        ValueError: a wanted objective is no cost that the decoder predicts, or a table cannot be read or has too few
            labels.
    """
    started = time.monotonic()
    loaded = Checkpoint.from_pretrained(checkpoint)
    if unfit := [name for name in wanted if not may_add_up(loaded, name)]:
        raise ValueError(
            f"--objectives: expected costs that the checkpoint decodes digit by digit, got {', '.join(unfit)}. "
            "Costs that it was adapted to are already predicted as sums where their labels allow it."
        )
    examples = _examples(tables, space, wanted, loaded)
    found, compared = loaded, dict[str, list[Comparison]]()
    for name, part in examples.by_space():
        of_space = known_as(name, loaded.spaces)  # a user's own space may be named by another path to its file
        found, compared[of_space] = refine(found, of_space, part, progress=True)
    _check_judged(compared, wanted, tables)
    changed = {of_space: _changed(loaded, found, of_space, each) for of_space, each in compared.items()}
    folder = out if any(changed.values()) else None
    if folder:
        save_changed(with_step(found, refine_step(changed, tables)), folder_or_released(checkpoint), folder)
    seconds = round(time.monotonic() - started, 1)
    if json:
        told = {of_space: [x._asdict() for x in each] for of_space, each in compared.items()}
        print_json({"compared": told, "checkpoint": str(folder) if folder else None, "seconds": seconds})
        return
    print_table(COLUMNS, [_cells(of_space, x) for of_space, each in compared.items() for x in each])
    if folder:
        summed = sum(x.is_summed for each in compared.values() for x in each)
        say(f"checkpoint: {folder}, costs predicted as sums: {summed}, {seconds} s")
    else:
        say("no sum fits better: nothing is written")


def _examples(tables: Sequence[Path], space: str | None, wanted: Sequence[str], known: Checkpoint) -> Examples:
    """Read train and valid rows with labels of the wanted costs, or of all costs that may become sums.

    Raises:
        ValueError: a table cannot be read, or there are no such labels.
    """
    frames = rows_to_learn_from(tables, space)
    names = wanted or tuple(dict.fromkeys(x for frame in frames for x in label_columns(frame) if may_add_up(known, x)))
    if not names:
        raise ValueError(
            f"{named(tables)}: expected labels of costs that the checkpoint decodes digit by digit, got none."
        )
    require_labels(frames, tables, names)
    return Examples.of_tables(frames, tables, texts_of_tables(frames, tables, progress=True), names)


def _check_judged(compared: Mapping[str, Sequence[Comparison]], wanted: Sequence[str], tables: Sequence[Path]) -> None:
    """Refuse wanted costs with too few valid labels; if none is wanted, refuse tables where all costs have too few."""
    judged = {x.objective for each in compared.values() for x in each}
    missing = [name for name in wanted if name not in judged]
    if missing or not judged:
        raise ValueError(
            f"{named(tables)}: expected {FEWEST_VALID} labels of {', '.join(missing) or 'a cost'} or more in rows of "
            "split valid, got fewer. They decide whether sums fit better."
        )


def _changed(before: Checkpoint, after: Checkpoint, space: str, compared: Sequence[Comparison]) -> list[str]:
    """Return the costs whose predictions changed; warn of those that were sums and are spelled by the decoder again."""
    left = after.sums_of(space)
    dropped = [name for name in before.sums_of(space) if name not in left]
    if dropped:
        lost = ", ".join(dropped)
        warn(f"{lost}: no longer predicted as sums but digit by digit, because no sum fits these labels better.")
    return [*(x.objective for x in compared if x.is_summed), *dropped]


def _cells(space: str, x: Comparison) -> list[object]:
    """Return the cells of a row of the table."""
    from_now_on = ": ".join(filter(None, ("sum" if x.is_summed else "spelled", x.why)))
    return [space, x.objective, x.labels, x.spelled, x.summed, from_now_on]
