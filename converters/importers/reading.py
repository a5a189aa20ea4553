"""What all importers share: their error, the context in which it is raised, and the making of the table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd

from converters.tables.labels import numbers_of, warn_of_fractions


class BenchmarkFileError(ValueError):
    """The file is damaged or not of the named benchmark."""


@contextmanager
def reading(place: object, expected: str) -> Iterator[None]:
    """Turn any exception raised inside into a BenchmarkFileError of one line, since the file is at fault.

    Args:
        place: the file, and the record or architecture if there is one.
        expected: what the file should have there.

    Raises:
        BenchmarkFileError: the message has place, expectation and cause.
    """
    try:
        yield
    except BenchmarkFileError:
        raise
    except Exception as e:  # a damaged file may cause any kind
        reason = " ".join(f"{type(e).__name__} {e}".split())[:200].rstrip(".")
        raise BenchmarkFileError(
            f"{place}: expected {expected}, got {reason}. Is it the right file, and was it downloaded completely?"
        ) from e


def mean(values: Iterable[Any]) -> float:
    """Return the mean of the values that are not None; NaN if there are none."""
    known = [float(value) for value in values if value is not None]
    return math.fsum(known) / len(known) if known else math.nan


def positive(value: Any) -> float:
    """Return the value as a float if it is finite and above 0, else NaN."""
    number = math.nan if value is None else float(value)
    return number if number > 0 and math.isfinite(number) else math.nan


def field(record: Any, key: str, kind: type | tuple[type, ...], place: object) -> Any:
    """Return ``record[key]``, checked to be of type ``kind``.

    Raises:
        BenchmarkFileError: the key is missing or the value has another type.
    """
    value = record.get(key) if isinstance(record, Mapping) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        names = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
        found = sorted(map(str, record))[:8] if isinstance(record, Mapping) else type(record).__name__
        got = f"only {found}" if value is None else type(value).__name__
        raise BenchmarkFileError(f"{place}: expected {key!r} to be {names}, got {got}. Is it the right file?")
    return value


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
