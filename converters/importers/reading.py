"""What all importers share: their error, the context in which it is raised, and the reading of values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


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


def by_number(results: Mapping[Any, Any], place: object) -> list[int]:
    """Return the numbers of the architectures, which are the keys of their results, in order.

    Raises:
        BenchmarkFileError: a key is no whole number of 0 or more.
    """
    for key in results:
        if type(key) is not int or key < 0:
            raise BenchmarkFileError(
                f"{place}: expected architectures by number, got {key!r:.60}. Is it the right file?"
            )
    return sorted(results)


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
