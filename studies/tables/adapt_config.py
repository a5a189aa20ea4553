"""What a checkpoint is adapted to: tables, objectives, and how many networks of which kind."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pandas as pd

from nasrlm.arguments import check_flag, checked_whole
from spaces.drawing import POOL, Choice

CHOICES = get_args(Choice)
IN_MEMORY = "For labels in memory, use nasrlm.adapt."


@dataclass(frozen=True)
class AdaptConfig:
    """What a checkpoint learns, and from which rows.

    Attributes:
        tables: files of architectures or texts with labels; rows of the split "test" are not used. Several rows of one
            network count once, with the mean of its labels.
        objectives: names of M objectives.
        samples: number of networks to learn from, which have labels of all objectives; if there are several spaces, as
            many of each, together this number. None for all networks with any label, each objective from its own
            labels.
        choose: "random", by the seed, or "active" for the networks whose labels are most informative.
        pool: number of other texts of each space, whose predictions are used in learning. They come from the tables
            and, unless these have texts, from the space.
        like_table: draw networks of the space with each choice as often as in the tables.
        space: use only rows of this space; it is also the space of tables that name none.
        seed: seed of every random draw.
        leave_out_strays: leave out labels that disagree strongly with all others.
        beside: keep what the checkpoint has adapted to of these objectives in other spaces; otherwise it is forgotten.

    Raises:
        ValueError: tables or objectives are not a list, are empty or have duplicates; tables are in memory; a number is
            below 2; the seed is negative; or ``choose`` is unknown.
    """

    tables: Sequence[Path | str]
    objectives: Sequence[str]
    samples: int | None = 10
    choose: Choice = "random"
    pool: int = POOL
    like_table: bool = False
    space: str | None = None
    seed: int = 0
    leave_out_strays: bool = False
    beside: bool = False

    def __post_init__(self) -> None:
        for name, given in (("tables", self.tables), ("objectives", self.objectives)):
            object.__setattr__(self, name, _listed(name, given))
        for name, each in (("tables", [path.resolve() for path in self.files]), ("objectives", [*self.objectives])):
            if not each or len(set(each)) < len(each):
                got = ", ".join(map(str, getattr(self, name))) or "none"
                raise ValueError(f"adapt: expected {name}, each once, got {got}.")
        if not isinstance(self.space, str | None):
            raise ValueError(f"adapt: expected the name of a space, got {self.space!r:.60}.")
        for name in ("like_table", "leave_out_strays", "beside"):
            check_flag(f"adapt: {name}", getattr(self, name))
        if self.choose not in CHOICES:
            raise ValueError(f"adapt: expected choose to be one of {', '.join(CHOICES)}, got {self.choose!r}.")
        for name, number, least in (("samples", self.samples, 2), ("pool", self.pool, 2), ("seed", self.seed, 0)):
            if number is not None:
                checked_whole(f"adapt: {name}", number, least)

    @property
    def files(self) -> Sequence[Path]:
        """The paths of the tables."""
        return [Path(table) for table in self.tables]


def _listed(name: str, given: Any) -> tuple[Any, ...]:
    """Return paths of tables or names of objectives as a tuple.

    Raises:
        ValueError: a single path or name was given, or something else, such as a table in memory.
    """
    if isinstance(given, str | os.PathLike):
        raise ValueError(f"adapt: expected {name} as a list, got {given!r}.")
    is_list = isinstance(given, Iterable) and not isinstance(given, pd.DataFrame | Mapping)
    items = tuple(given) if is_list else (given,)
    for item in items:
        if not isinstance(item, str | os.PathLike):
            of_what = "files' paths" if name == "tables" else "names"
            raise ValueError(f"adapt: expected {name} as a list of {of_what}, got {type(item).__name__}. {IN_MEMORY}")
    return items
