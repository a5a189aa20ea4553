"""Columns of labels, whose cells are numbers or missing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from converters.tables.csv_table import NO_NUMBER
from spaces.shown import shown


def numbers_of(labels: pd.Series[Any], place: object) -> pd.Series[Any]:
    """Convert a column of labels to numbers.

    Args:
        labels: (N,), with row numbers as index.
        place: name of the table, for messages.

    Raises:
        ValueError: a cell is no number or infinite; the message names place, column and row.
    """
    if labels.dtype.kind in "mM":
        raise ValueError(f"{place}: expected numbers in column {labels.name}, got times, {labels.dtype}.")
    if pd.api.types.infer_dtype(labels) == "boolean":
        raise ValueError(f"{place}: expected numbers in column {labels.name}, got true and false.")
    numbers = pd.to_numeric(labels, errors="coerce")
    wrong = numbers.isna() & labels.notna() & ~labels.isin(NO_NUMBER)
    if wrong.any():
        row, word = next(labels[wrong].items())
        raise ValueError(f"{place}: expected numbers in column {labels.name}, got {shown(word)} in row {row}.")
    infinite = np.isinf(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    if infinite.any():
        row, value = next(labels[infinite].items())
        raise ValueError(
            f"{place}: expected empty values or finite numbers in column {labels.name}, got {value} in row {row}."
        )
    return numbers


def warn_of_fractions(accuracies: pd.Series[Any], place: object) -> None:
    """Warn if none of the accuracies, which should be in percent, is above 1.

    Args:
        accuracies: (N,) numbers, with the name of their column.
        place: name of the table, for the message.
    """
    if 0 < (largest := accuracies.max()) <= 1:
        warnings.warn(
            f"{place}: expected percent, 0 to 100, in column {accuracies.name}, got none above {largest:g}. "
            "If they are fractions, multiply them by 100.",
            stacklevel=4,
        )
