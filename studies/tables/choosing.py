"""Choose networks of a space to measure, in order to learn a new device or accuracy from as few as possible."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from converters.bulk import to_onnx_texts
from nasrlm.adaptation.pool import choose_diverse, make_pool
from nasrlm.checkpoints.checkpoint import Checkpoint
from spaces import SearchSpace
from spaces.drawing import draw
from studies.tables.rows import parsed_rows, read_rows, splits_of


def most_informative(
    checkpoint: Checkpoint,
    space: SearchSpace[Any],
    count: int,
    *,
    pool: int,
    seed: int,
    measured: Sequence[Path],
    progress: bool = False,
) -> list[str]:
    """Draw a pool of architectures and choose those whose measurements are most informative about the pool.

    Args:
        checkpoint: its predictions decide which networks are similar.
        space: the search space.
        count: number of architectures to choose.
        pool: number of architectures to draw.
        seed: seed of the draw.
        measured: tables of networks that are measured already. They are not chosen, and count as known.
        progress: show bars on stderr.

    Returns:
        Notations of ``count`` different architectures, the most informative first.

    Raises:
        ValueError: a table cannot be read or has only texts, or fewer than ``count`` new architectures were drawn.
    """
    known: dict[Hashable, Any] = {}
    everyone: set[Hashable] = set()  # measured keys including the test split, from which nothing is learned
    for table in measured:
        if "architecture" not in (frame := read_rows(table, space.address)):
            raise ValueError(f"{table}: measured: expected a column architecture, got texts.")
        frame = frame[frame["architecture"].notna()]
        for made, split in zip(parsed_rows(space, frame, table), splits_of(frame, table), strict=True):
            everyone.add(key := space.architecture_key(made))
            if split != "test":
                known[key] = made
    drawn = [space.parse(row.architecture) for row in draw(space, pool, seed)]
    new = [architecture for architecture in drawn if space.architecture_key(architecture) not in everyone]
    if count > len(new):
        raise ValueError(
            f"sample: expected up to {len(new):,} architectures to choose, as many as a pool of {pool:,} "
            f"has{' that are not measured' * bool(everyone)}, got {count:,}."
        )
    texts = to_onnx_texts(space, [*known.values(), *new], measured=True, progress=progress)
    seen, first = make_pool(checkpoint, texts, progress, space=space.address), len(known)
    best = choose_diverse(seen, np.arange(first, len(texts)), count, measured=range(first))
    return [space.format(new[row - first]) for row in best.tolist()]
