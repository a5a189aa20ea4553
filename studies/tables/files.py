"""Read tables of labelled architectures or texts from Parquet, CSV or JSONL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from converters.tables.batches import open_table
from converters.tables.columns import lacks_column
from converters.tables.labels import numbers_of, warn_of_fractions
from nasrlm.objective import Objective

_FACTS = ("params", "macs", "mparams", "mmacs", "mflops")  # labels without @context


def read_table(path: Path | str, *, require: Sequence[str] = (), labels: Sequence[str] = ()) -> pd.DataFrame:
    """Read a table with columns ``architecture`` or ``text``, one of which has to be filled in each row.

    A user's own space is found by its path relative to the current folder or to the table.

    Args:
        path: file ending in .parquet, .csv or .jsonl.
        require: label columns that must be there.
        labels: label columns that may be missing; columns named ``…@…`` are labels too.

    Raises:
        ValueError: the file is missing, damaged or of another type; a column is missing; a row has neither architecture
            nor text; a text is not a string; or a label is infinite, not a number, or impossible for its metric. The
            message has one line and names the place.
    """
    path = Path(path)
    frame: pd.DataFrame = open_table(path, spell_mixed=True).whole().to_pandas()
    read = {"architecture", "text", "space", "split", *require, *labels}
    blank = [name for name in map(str, frame.columns) if name != name.strip() and ("@" in name or name.strip() in read)]
    if blank:
        raise ValueError(
            f"{path}: expected column names without surrounding spaces, got {', '.join(map(repr, blank))}."
        )
    described = [name for name in ("text", "architecture") if name in frame]
    if not described:
        listed = " Convert the files first: nasrlm convert --table … --out …" if "file" in frame else ""
        raise ValueError(f"{lacks_column(path, 'architecture or text', list(map(str, frame.columns)))}{listed}")
    missing = [name for name in require if name not in frame]
    if missing:
        known = label_columns(frame)
        got = f"labels {', '.join(known)}" if known else ", ".join(map(str, frame.columns))
        raise ValueError(f"{path}: expected a column {', '.join(missing)}, got {got}.")
    empty = (frame[described].isna() | (frame[described] == "")).all(axis=1)  # not by cell: a million take seconds
    if empty.any():
        what = " or ".join(described)
        raise ValueError(f"{path}: expected {what} in every row, got none in row {empty.argmax()}.")
    for name in frame.columns:
        if name in (*require, *labels) or "@" in str(name):
            frame[name] = possible_numbers(frame[name], path)
            _warn_of_fractions(frame[name], path)
        elif name in _FACTS:  # in JSON, integers too large for a float become strings if there are floats too
            numbers = pd.to_numeric(frame[name], errors="coerce")
            frame[name] = numbers if numbers.notna().equals(frame[name].notna()) else frame[name]
    return frame


def possible_numbers(labels: pd.Series[Any], place: object) -> pd.Series[Any]:
    """Convert a column of labels to numbers that are possible for its metric, unlike -1 for a failed measurement.

    Args:
        labels: (N,), with row numbers as index.
        place: name of the table, for messages.

    Raises:
        ValueError: a cell is no number or infinite, an accuracy is outside 0 to 100, or a cost is negative; the message
            names place, column and row.
    """
    labels = numbers_of(labels, place)
    try:
        objective = Objective.parse(str(labels.name))
    except ValueError:  # reported with all names when it is to be learned
        return labels
    wrong = ~objective.allows(labels.to_numpy(dtype=np.float64, na_value=np.nan))
    if wrong.any():
        row, value = next(labels[wrong].items())
        raise ValueError(
            f"{place}: expected {objective.range_in_words} in column {labels.name}, got {value:g} in row {row}. "
            "Leave it empty where there is no label."
        )
    return labels


def _warn_of_fractions(labels: pd.Series[Any], path: Path) -> None:
    try:
        is_accuracy = Objective.parse(str(labels.name)).is_accuracy
    except ValueError:
        return
    if is_accuracy:
        warn_of_fractions(labels, path)


def label_columns(frame: pd.DataFrame, objectives: Sequence[str] = ()) -> tuple[str, ...]:
    """Return numeric columns that are named ``metric_unit@context``, or in ``objectives``, or facts like ``params``."""
    return tuple(
        str(name)
        for name in frame.columns
        if pd.api.types.is_numeric_dtype(frame[name]) and ("@" in str(name) or name in (*_FACTS, *objectives))
    )


def objective_columns(frame: pd.DataFrame, path: Path) -> tuple[str, ...]:
    """Return the label columns with a context, which a model learns by default.

    Raises:
        ValueError: a column name with @ is not an objective; the message names the file.
    """
    try:
        return tuple(Objective.parse(name).name for name in label_columns(frame) if "@" in name)
    except ValueError as e:
        raise ValueError(f"{path}: {e} Rename the column, or name the objectives to learn.") from e
