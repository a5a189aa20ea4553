"""Labelled rows of several tables as those of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from spaces.registry import full_name
from spaces.shown import first_lines
from studies.tables.rows import read_rows, require_labels, row_names, splits_of


def rows_to_learn_from(tables: Sequence[Path], space: str | None, labels: Sequence[str] = ()) -> list[pd.DataFrame]:
    """The rows of each table outside the test split; see ``read_rows``."""
    frames = [read_rows(table, space, labels=labels) for table in tables]
    return [frame[splits_of(frame, table) != "test"] for frame, table in zip(frames, tables, strict=True)]


def measured_rows(tables: Sequence[Path], space: str | None, objectives: Sequence[str]) -> pd.DataFrame:
    """Rows outside the test split, indexed by the number of their table and their own in it.

    Raises:
        ValueError: a table cannot be read, or none has the labels.
    """
    frames = rows_to_learn_from(tables, space, objectives)
    require_labels(frames, tables, objectives)
    rows = pd.concat(frames, keys=range(len(frames)), names=["table", "row"])
    if "space" not in rows:
        return rows
    spelled: dict[str, str] = {}  # a user's own space is found from the folder of each table
    names = {
        name: spelled.setdefault(full_name(name), name) for name in rows["space"].unique() if isinstance(name, str)
    }
    return rows.assign(space=rows["space"].replace(names))


def of_each(frame: pd.DataFrame, tables: Sequence[Path]) -> tuple[list[pd.DataFrame], list[Path]]:
    """Split some of ``measured_rows`` into one frame a table, indexed by the row numbers in it.

    Returns these frames and the tables that they are of, without tables that have no row among them.
    """
    numbers = frame.index.unique("table")
    of_tables = [frame[frame.index.get_level_values("table") == number].droplevel("table") for number in numbers]
    return of_tables, [tables[number] for number in numbers]


def shown_names(frame: pd.DataFrame, tables: Sequence[Path]) -> list[str]:
    """Name some of ``measured_rows`` for a printed table; texts of several tables are told with their table."""
    numbers = [row if len(tables) == 1 else f"{row} of {tables[number]}" for number, row in frame.index]
    return first_lines(row_names(frame), numbers)
