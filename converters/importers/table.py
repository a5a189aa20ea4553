"""Make the table of an importer's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from converters.importers.reading import BenchmarkFileError, reading
from converters.tables.labels import numbers_of, warn_of_fractions


def to_table(space: str, rows: Sequence[Mapping[str, Any]], place: object) -> pd.DataFrame:
    """Return rows as a table, without columns that have no values.

    Raises:
        BenchmarkFileError: there are no rows, or a label (in a column ``…@…``) is no number or infinite; the message
            names column and row.

    Warns:
        UserWarning: accuracies look like fractions.
    """
    if not rows:
        raise BenchmarkFileError(f"{place}: expected at least one architecture, got none. Is it the right file?")
    frame = pd.DataFrame(rows).dropna(axis="columns", how="all")
    for name in frame.columns:
        metric, at, _ = name.partition("@")
        if at:
            frame[name] = _labels(frame[name], place)
        if at and "accuracy" in metric.split("_"):
            warn_of_fractions(frame[name], place)
    frame.insert(0, "space", space)
    return frame


def _labels(column: pd.Series[Any], place: object) -> pd.Series[Any]:
    with reading(place, f"numbers in column {column.name}"):
        try:
            return numbers_of(column, place)
        except ValueError as e:
            raise BenchmarkFileError(f"{e} Is it the right file?") from e
