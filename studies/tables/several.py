"""Labelled rows of several tables in one frame."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from converters.tables.counts import COUNTS
from nasrlm.callers import warn_caller
from spaces.registry import full_name
from spaces.shown import cut, first_lines
from studies.tables.files import label_columns
from studies.tables.rows import read_rows, require_labels, row_names, splits_of


def rows_to_learn_from(tables: Sequence[Path], space: str | None, labels: Sequence[str] = ()) -> list[pd.DataFrame]:
    """Return the rows of each table outside the test split; see ``read_rows``."""
    frames = [read_rows(table, space, labels=labels) for table in tables]
    return [frame[splits_of(frame, table) != "test"] for frame, table in zip(frames, tables, strict=True)]


def measured_rows(tables: Sequence[Path], space: str | None, objectives: Sequence[str]) -> pd.DataFrame:
    """Return the rows of all tables outside the test split, indexed by table number and row number.

    Warns:
        UserWarning: a table has labels, but none of these objectives.

    Raises:
        ValueError: a table cannot be read, or none has the labels.
    """
    frames = rows_to_learn_from(tables, space, objectives)
    require_labels(frames, tables, objectives)
    _warn_of_other_labels(frames, tables, objectives)
    rows = pd.concat(frames, keys=range(len(frames)), names=["table", "row"])
    if "space" not in rows:
        return rows
    spelled: dict[str, str] = {}  # a user's own space may have another path in each table
    names = {
        name: spelled.setdefault(full_name(name), name) for name in rows["space"].unique() if isinstance(name, str)
    }
    return rows.assign(space=rows["space"].replace(names))


def _warn_of_other_labels(frames: Sequence[pd.DataFrame], tables: Sequence[Path], objectives: Sequence[str]) -> None:
    """Warn of tables that have labels, but none of the objectives; counts, which ``nasrlm stats`` adds, are none."""
    for frame, table in zip(frames, tables, strict=True):
        others = [name for name in label_columns(frame) if "@" in name and name not in COUNTS]
        if others and not any(name in frame for name in objectives):
            warn_caller(
                f"{table}: expected a column {' or '.join(objectives)}, got labels {cut(', '.join(others))}. Its "
                "networks are read without labels."
            )


def of_each(frame: pd.DataFrame, tables: Sequence[Path]) -> tuple[list[pd.DataFrame], list[Path]]:
    """Split rows of ``measured_rows`` by table.

    Returns:
        One frame per table, indexed by row number, and the paths of these tables; tables without a row are left out.
    """
    numbers = frame.index.unique("table")
    of_tables = [frame[frame.index.get_level_values("table") == number].droplevel("table") for number in numbers]
    return of_tables, [tables[number] for number in numbers]


def shown_names(frame: pd.DataFrame, tables: Sequence[Path]) -> list[str]:
    """Return names to print for rows of ``measured_rows``; row number and, among several tables, table name a text."""
    numbers = [row if len(tables) == 1 else f"{row} of {tables[number]}" for number, row in frame.index]
    return first_lines(row_names(frame), numbers)
