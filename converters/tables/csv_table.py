"""Reads CSV tables, whose column types are known only after all rows have been read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from converters.tables.columns import OTHER_SEPARATOR, WORDS, IsRead, Scanned, TableContentError, check_columns

# Cells that count as missing in a column of numbers. In a column of strings only "" is missing.
NO_NUMBER = ("", "#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
UNEVEN = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)  # in Arrow's message
CSV_BLOCK = 1 << 22  # bytes, the maximum size of a row. Arrow reads 32 blocks ahead: 300 MB; 2.3 GB with larger blocks


def scan(path: Path, is_read: IsRead, spell_mixed: bool) -> Scanned:
    """Return names, types and number of rows; all rows are read to find a type that fits each column."""
    with _open_csv(path, ()) as reader:
        names = tuple(reader.schema.names)
    check_columns(names)
    kinds = dict.fromkeys(filter(is_read, names), pa.null())
    num_rows = 0
    with _open_csv(path, list(kinds)) as reader:
        for batch in reader:
            num_rows += batch.num_rows
            kinds = {name: _widened(kind, batch[name]) for name, kind in kinds.items()}
    kinds |= {name: pa.string() for name in WORDS if name in kinds}
    known = [(name, pa.float64() if kind == pa.null() else kind) for name, kind in kinds.items()]
    return names, pa.schema(known), num_rows


def read(path: Path, schema: Any) -> Iterator[Any]:
    """Yield record batches with the columns of a schema."""
    with _open_csv(path, schema.names) as reader:
        for batch in reader:
            columns = [_spelt(batch[field.name], field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _widened(kind: Any, words: Any) -> Any:
    """Return the narrowest of integer, float and string, not narrower than ``kind``, to which all cells convert."""
    if kind == pa.string() or _without(NO_NUMBER, words).null_count == len(words):
        return kind
    # Floats are tried first, because Arrow reads 0x10 as an integer but not as a float; such a column is strings.
    kinds = (pa.float64(),) if kind == pa.float64() else (pa.float64(), pa.int64())
    widest = pa.string()
    for narrower in kinds:
        try:
            _spelt(words, narrower)
        except pa.ArrowInvalid:
            break
        widest = narrower
    return widest


@contextmanager
def _open_csv(path: Path, names: Sequence[str]) -> Iterator[Any]:
    """Open a CSV file to read these columns, or all if ``names`` is empty, as strings.

    NOTE: without Arrow's ``invalid_row_handler``. Its thread drops that function some time after the reader is closed;
    if Python is ending then, the process aborts.
    """
    try:
        with pyarrow.csv.open_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(block_size=CSV_BLOCK, use_threads=False),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), include_columns=names
            ),
        ) as reader:
            yield reader
    except pa.ArrowInvalid as e:
        if "straddling" in str(e):
            raise ValueError(f"a row of more than {CSV_BLOCK:,} bytes, or an unclosed quote") from e
        uneven = UNEVEN.search(str(e))
        if uneven is None:
            raise
        number, expected, got = map(int, uneven.group(1, 2, 3))  # the header has number 1
        row = uneven[4]
        if expected == 1 and OTHER_SEPARATOR.search(row):
            raise TableContentError(
                f"expected columns separated by commas, got a header without a comma, but commas in row {number - 2}."
            ) from e
        where = f"than the {expected} fields of the header in row {number - 2}"
        if got < expected:
            raise ValueError(f"fewer {where}") from e
        raise TableContentError(
            f"expected one field per column, got more {where}. Put a field that contains commas in double quotes, and "
            "double the quotes inside it."
        ) from e


def _without(nothing: Sequence[str], column: Any) -> Any:
    return pc.if_else(pc.is_in(column, value_set=pa.array(nothing)), None, column)


def _spelt(words: Any, kind: Any) -> Any:
    """Convert cells to a type: strings are kept, and blanks around numbers are ignored."""
    if kind == pa.string():
        return _without(("",), words)
    return pc.ascii_trim_whitespace(_without(NO_NUMBER, words)).cast(kind)
