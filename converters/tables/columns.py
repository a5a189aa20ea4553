"""What the readers of all table formats share: which columns are strings, and errors about columns and cells."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

# Columns read as strings, even if all cells look like numbers.
WORDS = ("architecture", "file", "text", "space", "split")
TEXT = "text"  # the one of WORDS whose cells may not be JSON lists or objects
FILE = "file"  # where a network was read from
DAMAGE = (pa.ArrowException, OSError, ValueError, OverflowError)  # what pyarrow and json raise
OTHER_SEPARATOR = re.compile(r"[;\t|]")  # separators of CSV other than a comma

IsRead = Callable[[str], bool]  # whether the column of a name is to be read
Scanned = tuple[tuple[str, ...], Any, int]  # names of all columns, schema of those that are read, number of rows


class TableContentError(ValueError):
    """The table has wrong contents, though the file is not damaged."""


def check_columns(names: Sequence[str]) -> None:
    """Raise an error if two columns have the same name."""
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise TableContentError(f"expected columns with different names, got {twice} twice. Rename one.")


def lacks_column(path: Path, wanted: str, names: Sequence[str]) -> ValueError:
    """Return the error for a table that lacks a column.

    Args:
        path: path of the table.
        wanted: name of the missing column.
        names: names of the columns that it has.
    """
    help_ = ""
    if len(names) == 1 and OTHER_SEPARATOR.search(names[0]):
        help_ = " Separate them by commas."
    elif similar := [name for name in names if name not in WORDS and name.strip().lower() in WORDS]:
        help_ = f" Is {similar[0]!r} meant for {similar[0].strip().lower()}?"
    return ValueError(f"{path}: expected a column {wanted}, got {', '.join(names) or 'none'}.{help_}")


def spelled(name: str, values: Sequence[Any], start: int) -> list[str | None]:
    """Return cells from row ``start`` on as strings; a notation may be a JSON list or object, but a text may not."""
    return [
        value if value is None or isinstance(value, str) else _as_json(name, value, row)
        for row, value in enumerate(values, start)
    ]


def _as_json(name: str, value: Any, row: int) -> str:
    wanted = "a string"
    if name != TEXT:
        with suppress(TypeError):
            return json.dumps(value)
        wanted = "a string or JSON"
    raise TableContentError(f"expected {wanted} in column {name}, got {repr(value)[:40]} in row {row}.")
