"""What every format of tables is read into: which columns hold words, and what is wrong with their cells."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

WORDS = ("architecture", "text", "space", "split")  # columns that hold words, whatever they look like
TEXT = "text"  # of WORDS, the column that holds strings alone
DAMAGE = (pa.ArrowException, OSError, ValueError, OverflowError)  # what pyarrow and json raise
OTHER_SEPARATOR = re.compile(r"[;\t|]")  # than a comma, in CSV

IsRead = Callable[[str], bool]  # of a column
Scanned = tuple[tuple[str, ...], Any, int]  # names of all columns, schema of those that are read, number of rows


class TableContentError(ValueError):
    """What a table holds that it should not; the file is whole."""


def check_columns(names: Sequence[str]) -> None:
    """Complain of two columns of one name."""
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise TableContentError(f"expected columns of different names, got {twice} twice. Rename one.")


def lacks_column(path: Path, wanted: str, names: Sequence[str]) -> ValueError:
    """The error of a table without a column that it needs.

    Args:
        path: of the table.
        wanted: the column.
        names: of its columns.
    """
    help_ = " Separate them by commas." if len(names) == 1 and OTHER_SEPARATOR.search(names[0]) else ""
    return ValueError(f"{path}: expected a column {wanted}, got {', '.join(names) or 'none'}.{help_}")


def spelled(name: str, values: Sequence[Any], start: int) -> list[str | None]:
    """Words of a column from row ``start`` on; a notation may stand in the table as the JSON that it is, a text not."""
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
