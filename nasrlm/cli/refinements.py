"""The verb refine: costs that a checkpoint spells become sums of what the rows of a network's text cost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from nasrlm.checkpoint import Checkpoint, check_replaceable
from nasrlm.checkpoint_folder import released_folder
from nasrlm.cli.changed_checkpoint import save_changed
from nasrlm.cli.inputs import CheckpointOption, SpaceOption, listed
from nasrlm.cli.labelled_tables import examples_of_tables
from nasrlm.cli.output import JsonOption, print_json, print_table, say, warn
from nasrlm.model_card import refined
from nasrlm.refinement import FEWEST_VALID, Comparison, may_add_up, refine
from studies.labelled_table import label_columns
from studies.tables import read_rows, require_labels, splits_of

COLUMNS = ("space", "objective", "labels", "error spelled", "error of the sum", "from now on")


def register(app: typer.Typer) -> None:
    """Add the verb of this file."""
    app.command("refine")(refine_checkpoint)


def refine_checkpoint(
    tables: Annotated[list[Path], typer.Option("--table", help="Labelled architectures or texts; may be repeated.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the new checkpoint.")],
    objectives: Annotated[
        str | None, typer.Option("--objectives", help="Costs, separated by commas; all that it knows if left out.")
    ] = None,
    space: SpaceOption = None,
    checkpoint: CheckpointOption = None,
    json: JsonOption = False,
) -> None:
    """Say costs as sums of what operators cost where valid rows show that these are closer. Test rows are not used."""
    started, wanted = time.monotonic(), listed(objectives, "--objectives")
    check_replaceable(out)
    loaded = Checkpoint.from_pretrained(checkpoint)
    if unfit := [name for name in wanted if not may_add_up(loaded, name)]:
        raise ValueError(f"--objectives: expected costs that the checkpoint spells, got {', '.join(unfit)}.")
    frames = [read_rows(table, space) for table in tables]
    frames = [frame[splits_of(frame, table) != "test"] for frame, table in zip(frames, tables, strict=True)]
    names = wanted or tuple(dict.fromkeys(x for frame in frames for x in label_columns(frame) if may_add_up(loaded, x)))
    named = ", ".join(map(str, tables))
    if not names:
        raise ValueError(f"{named}: expected labels of costs that the checkpoint spells, got none.")
    require_labels(frames, tables, names)
    before, compared = loaded, dict[str, list[Comparison]]()
    for of_space, part in examples_of_tables(frames, tables, names).by_space():
        loaded, compared[of_space] = refine(loaded, of_space, part, progress=True)
    judged = {x.objective for each in compared.values() for x in each}
    missing = [name for name in wanted if name not in judged]
    if missing or not judged:
        costs = ", ".join(missing) or "a cost"
        raise ValueError(
            f"{named}: expected {FEWEST_VALID} labels of {costs} or more in rows of split valid, got fewer. "
            "They tell whether sums are nearer."
        )
    summed = {of_space: [x.objective for x in each if x.is_summed] for of_space, each in compared.items()}
    dropped = {of_space: _dropped(before, loaded, of_space) for of_space in compared}
    if any(dropped.values()):
        lost = ", ".join(name for names in dropped.values() for name in names)
        warn(f"{lost}: said as sums before and spelled from now on, for these labels tell no sum that is closer.")
    changed = {of_space: [*names, *dropped[of_space]] for of_space, names in summed.items()}
    is_changed = any(changed.values())
    if is_changed:
        save_changed(refined(loaded, changed, tables), checkpoint or released_folder(), out)
    seconds = round(time.monotonic() - started, 1)
    if json:
        told = {of_space: [x._asdict() for x in each] for of_space, each in compared.items()}
        print_json({"compared": told, "checkpoint": str(out) if is_changed else None, "seconds": seconds})
        return
    rows = [
        [of_space, x.objective, x.labels, x.spelled, x.summed, _from_now_on(x)]
        for of_space, each in compared.items()
        for x in each
    ]
    print_table(COLUMNS, rows)
    if is_changed:
        say(f"checkpoint: {out}, costs said as sums: {sum(map(len, summed.values()))}, {seconds} s")
    else:
        say("no sum is closer: nothing is written")


def _from_now_on(compared: Comparison) -> str:
    return "sum" if compared.is_summed else ": ".join(filter(None, ("spelled", compared.why)))


def _dropped(before: Checkpoint, after: Checkpoint, space: str) -> list[str]:
    """Costs that were sums and are spelled again."""
    return [name for name in before.sums_by_space.get(space, {}) if name not in after.sums_by_space.get(space, {})]
