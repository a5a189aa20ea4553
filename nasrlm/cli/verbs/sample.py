"""The verb sample: draw architectures of a space, at random or those whose labels would be most informative."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from tqdm import tqdm

from nasrlm.cli.idle_options import refuse_given
from nasrlm.cli.options import CheckpointOption, JsonOption, SeedOption, require_space
from nasrlm.cli.output import check_table_out, print_json, say, write_rows
from spaces.drawing import HELD_OUT_PERCENT, POOL, Choice, draw_different


def run(
    context: typer.Context,
    space: Annotated[
        list[str] | None,
        typer.Option(
            "--space",
            help="Name of a search space, or path/to/file.py:ClassName; with --out, may be repeated.",
        ),
    ] = None,
    count: Annotated[
        int,
        typer.Option(
            "-n", min=1, help="Number of architectures to draw from each space; with --out, they are all different."
        ),
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Table to write, .parquet, .csv or .jsonl; random architectures are divided into splits."
        ),
    ] = None,
    held_out: Annotated[
        int,
        typer.Option(min=1, max=40, help="With --out: percentage of networks in each of the splits valid and test."),
    ] = HELD_OUT_PERCENT,
    choose: Annotated[
        Choice,
        typer.Option(
            "--choose", help="random, or active: networks whose measurements are most informative about all others."
        ),
    ] = "random",
    pool: Annotated[
        int, typer.Option(min=1, help="With --choose active: number of random networks to choose from.")
    ] = POOL,
    measured: Annotated[
        list[Path] | None,
        typer.Option(
            "--measured",
            help="With --choose active: table of networks that are already measured, so that others are chosen; may be "
            "repeated.",
        ),
    ] = None,
    checkpoint: CheckpointOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Draw architectures; print one per line in the space's published notation or write a table to learn from."""
    if choose == "random":
        refuse_given(context, ["pool", "checkpoint", "measured"], "--choose active", "none")
    else:
        refuse_given(context, ["held_out"], "--choose random", "active")
    if out is not None:
        check_table_out(out, *measured or [])
        if choose == "random":
            _write_drawn(space or [None], count, held_out, seed, out, json=json)
            return
    refuse_given(context, ["held_out"], "--out", "none")
    if space and len(space) > 1:
        more = ", or --out for a table of several" * (choose == "random")
        raise ValueError(f"sample: expected one --space{more}, got {', '.join(space)}.")
    chosen = require_space(space[0] if space else None, "sample")
    if choose == "active":
        from nasrlm.checkpoints.checkpoint import Checkpoint  # here: takes over a second, for this choice alone
        from studies.tables.choosing import most_informative

        loaded = Checkpoint.from_pretrained(checkpoint)
        drawn = most_informative(loaded, chosen, count, pool=pool, seed=seed, measured=measured or [], progress=True)
    else:
        rng = np.random.default_rng(seed)
        drawn = [chosen.format(chosen.sample(rng)) for _ in range(count)]
    if out is not None:
        write_rows([{"space": chosen.address, "architecture": name, "split": "train"} for name in drawn], out)
    if json:
        print_json(drawn)
    else:
        say("\n".join([*drawn, *([f"{len(drawn):,} architectures: {out}"] if out else [])]))


def _write_drawn(names: Sequence[str | None], count: int, held_out: int, seed: int, out: Path, *, json: bool) -> None:
    spaces = {name: require_space(name, "sample") for name in names}
    rows = [
        {"space": name, **drawn._asdict()}
        for name, space in spaces.items()
        for drawn in tqdm(draw_different(space, count, seed, held_out), f"sample {name}", count)
    ]
    write_rows(rows, out)
    if json:
        print_json({"rows": len(rows)})
    else:
        splits = Counter(row["split"] for row in rows)
        told = ", ".join(f"{splits[name]:,} {name}" for name in ("train", "valid", "test") if splits[name])
        say(f"{len(rows):,} different architectures of {count * len(spaces):,} requested ({told}): {out}")
