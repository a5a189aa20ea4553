"""Reads Parquet, CSV and JSONL tables of any size in batches of rows that all have the same columns."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from converters.errors import instead_of_file
from converters.tables import csv_table, jsonl_table, parquet_table
from converters.tables.columns import DAMAGE, TEXT, IsRead, Scanned, TableContentError
from spaces.registry import found_from, same_spaces

ONNX_TEXT = "<\n   ir_version: "  # start of every ONNX text
NAMES_ROWS = 1 << 16  # rows per batch when names of spaces are collected

_Scan = Callable[[Path, IsRead, bool], Scanned]
_Read = Callable[[Path, Any], Iterator[Any]]
_FORMATS: dict[str, tuple[_Scan, _Read]] = {
    ".parquet": (parquet_table.scan, parquet_table.read),
    ".csv": (csv_table.scan, csv_table.read),
    ".jsonl": (jsonl_table.scan, jsonl_table.read),
}


class TableBatch(NamedTuple):
    """Rows that are read together.

    Attributes:
        numbers: positions of the rows in the whole table.
        rows: an Arrow table of the rows.
        num_read: number of rows read, from which these were selected.
    """

    numbers: Sequence[int]
    rows: Any
    num_read: int


@dataclass(frozen=True)
class BatchedTable:
    """A table on disk.

    Attributes:
        path: the file.
        names: names of all columns.
        schema: Arrow schema of the columns that are read.
        num_rows: number of rows of the whole table.
    """

    path: Path
    names: tuple[str, ...]
    schema: Any
    num_rows: int

    def batches(self, size: int, *, start: int = 0) -> Iterator[Any]:
        """Yield Arrow tables of ``size`` rows from row ``start`` on; the last one may be shorter.

        Users' own spaces in the column ``space``, whose files are relative to the table, get paths from here.

        Raises:
            ValueError: the file is damaged, or a cell of the column ``text`` is no string or truncated ONNX text.
        """
        _, read = _FORMATS[self.path.suffix.lower()]
        with_context = _explained(self.path, read(self.path, self.schema))
        whole = _with_whole_texts(self.path, _resized(with_context, self.schema, size, start), start)
        return (_with_found_spaces(rows, self.path.parent) for rows in whole)

    def whole(self) -> Any:
        """Return all rows as one Arrow table.

        Raises:
            ValueError: as ``batches`` does.
        """
        return next(self.batches(self.num_rows + 1), self.schema.empty_table())

    def batches_of_space(self, space: str | None, size: int, *, start: int = 0) -> Iterator[TableBatch]:
        """Yield batches with only the rows of one space; with all rows if ``space`` is None or there is no such column.

        Raises:
            ValueError: as ``batches`` does.
        """
        for rows in self.batches(size, start=start):
            numbers: Sequence[int] = range(start, start + rows.num_rows)
            start += rows.num_rows
            num_read = rows.num_rows
            if space is not None and "space" in rows.column_names:
                spaces = rows["space"].cast(pa.string())
                same = same_spaces(spaces.unique().to_pylist(), space)
                mine = pc.is_in(spaces, value_set=pa.array(same, pa.string()))
                numbers = [number for number, keep in zip(numbers, mine.to_pylist(), strict=True) if keep]
                rows = rows.filter(mine)
            yield TableBatch(numbers, rows, num_read)

    def space_names(self) -> set[str]:
        """Return the names of the spaces in the table, "" for rows without one; no other column is read.

        Raises:
            ValueError: the file is damaged.
        """
        if "space" not in self.names:
            return {""}
        alone = replace(self, schema=pa.schema([("space", pa.string())]))
        return {name or "" for rows in alone.batches(NAMES_ROWS) for name in rows["space"].unique().to_pylist()}


def open_table(path: Path, only: Collection[str] | None = None, *, spell_mixed: bool = False) -> BatchedTable:
    """Open a table: find its columns, their types over all rows, and its number of rows.

    Cost: Parquet stores these; CSV and JSONL are read through once, in constant memory.

    Args:
        path: the file.
        only: columns to read, as far as they exist; others are not checked. All if None.
        spell_mixed: convert a JSONL column with values of several types to strings, as is done for CSV.

    Raises:
        ValueError: there is no such file, its ending is unknown, its contents are damaged, or a JSONL column has values
            of several types without ``spell_mixed``; the message names column and row.
    """
    if path.suffix.lower() not in _FORMATS:
        endings = ", ".join(_FORMATS)
        raise ValueError(f"{path}: expected a table ending in {endings}, got {path.suffix or 'no ending'}.")
    if not path.is_file():
        raise ValueError(f"{path}: expected a table, got {instead_of_file(path)}.")
    with path.open("rb") as file:
        if file.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE):
            raise ValueError(f"{path}: expected UTF-8, got UTF-16. Save it again, or use iconv -f UTF-16 -t UTF-8.")
    scan, _ = _FORMATS[path.suffix.lower()]
    try:
        return BatchedTable(path, *scan(path, lambda name: only is None or name in only, spell_mixed))
    except DAMAGE as e:
        raise _damaged(path, e) from e


def _explained(path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from batches
    except DAMAGE as e:
        raise _damaged(path, e) from e


def _with_whole_texts(path: Path, batches: Iterable[Any], start: int) -> Iterator[Any]:
    for rows in batches:
        if TEXT in rows.column_names and pa.types.is_string(rows[TEXT].type):
            is_onnx = pc.starts_with(rows[TEXT], ONNX_TEXT)
            is_whole = pc.ends_with(pc.utf8_rtrim_whitespace(rows[TEXT]), "}")
            if (row := pc.index(pc.and_(is_onnx, pc.invert(is_whole)), True).as_py()) >= 0:
                end = rows[TEXT][row].as_py()[-20:]
                raise ValueError(
                    f"{path}: expected complete ONNX text in row {start + row}, got one that ends in {end!r}."
                )
        start += rows.num_rows
        yield rows


def _with_found_spaces(rows: Any, folder: Path) -> Any:
    """Return rows in which the names of spaces lead to files, if necessary relative to ``folder``."""
    if "space" not in rows.column_names:
        return rows
    names = [name for name in rows["space"].unique().to_pylist() if isinstance(name, str)]
    moved = {name: found for name in names if (found := found_from(folder, name)) != name}
    if not moved:
        return rows
    spaces = [moved.get(name, name) for name in rows["space"].to_pylist()]
    return rows.set_column(rows.column_names.index("space"), "space", pa.array(spaces, rows["space"].type))


def _damaged(path: Path, error: Exception) -> ValueError:
    if isinstance(error, TableContentError):
        return ValueError(f"{path}: {error}")
    reason = " ".join(str(error).split())[:200]
    is_encoding = isinstance(error, UnicodeDecodeError) or "UTF8" in reason  # Arrow's messages have "UTF8"
    question = "Is it complete, and in UTF-8?" if is_encoding else "Is it truncated?"
    return ValueError(f"{path}: expected a readable {path.suffix[1:]} table, got {reason}. {question}")


def _resized(batches: Iterable[Any], schema: Any, size: int, start: int) -> Iterator[Any]:
    pending: list[Any] = []
    missing = size
    for batch in batches:
        begin = min(start, batch.num_rows)
        start -= begin
        while begin < batch.num_rows:
            pending.append(batch.slice(begin, missing))
            begin += pending[-1].num_rows
            missing -= pending[-1].num_rows
            if not missing:
                yield pa.Table.from_batches(pending, schema)
                pending, missing = [], size
    if pending:
        yield pa.Table.from_batches(pending, schema)
