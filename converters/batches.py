"""Tables of any size a batch of rows at a time: Parquet, CSV and JSONL, every batch with the same columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

WORDS = ("architecture", "text", "space", "split")  # columns that hold words, whatever they look like
# Cells of a CSV's column of numbers in which there is none; in a column of WORDS these are words, and "" is none.
NO_NUMBER = ("", "#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
CSV_BLOCK = 1 << 23  # bytes; a row must fit in
JSON_ROWS = 4096
DAMAGE = (pa.ArrowException, OSError, ValueError, OverflowError)  # what pyarrow and json raise


@dataclass(frozen=True)
class BatchedTable:
    """A table on disk.

    Attributes:
        path: the file.
        schema: Arrow's names and types of the columns.
        num_rows: of the whole table.
    """

    path: Path
    schema: Any
    num_rows: int

    def batches(self, size: int, *, start: int = 0) -> Iterator[Any]:
        """Arrow tables of ``size`` rows, the last one perhaps shorter, from row ``start`` on.

        Raises:
            ValueError: the file is damaged.
        """
        _, read = _FORMATS[self.path.suffix]
        with_context = _explained(self.path, read(self.path, self.schema))
        return _resized(with_context, self.schema, size, start)


def open_table(path: Path) -> BatchedTable:
    """Look a table over: its columns, their types over all rows, its length.

    Cost: Parquet knows them; CSV and JSONL are read through once, in constant memory.

    Raises:
        ValueError: no such file, another ending, or damaged contents.
    """
    if path.suffix not in _FORMATS:
        endings = ", ".join(_FORMATS)
        raise ValueError(f"{path}: expected a table ending in {endings}, got {path.suffix or 'no ending'}.")
    if not path.is_file():
        raise ValueError(f"{path}: expected a table, got no such file.")
    scan, _ = _FORMATS[path.suffix]
    try:
        schema, num_rows = scan(path)
    except DAMAGE as e:
        raise _damaged(path, e) from e
    return BatchedTable(path, schema, num_rows)


def _explained(path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from batches
    except DAMAGE as e:
        raise _damaged(path, e) from e


def _damaged(path: Path, error: Exception) -> ValueError:
    reason = " ".join(str(error).split())[:200]
    return ValueError(f"{path}: expected a readable {path.suffix[1:]} table, got {reason}. Is it truncated?")


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


def _scan_parquet(path: Path) -> tuple[Any, int]:
    with pq.ParquetFile(path) as file:
        _check_names(file.schema_arrow.names)
        # pandas' own note of columns and index would be wrong of the table that is made of this one
        metadata = {k: v for k, v in (file.schema_arrow.metadata or {}).items() if k != b"pandas"}
        fields = [field.with_type(pa.string()) if field.name in WORDS else field for field in file.schema_arrow]
        return pa.schema(fields, metadata or None), file.metadata.num_rows


def _read_parquet(path: Path, schema: Any) -> Iterator[Any]:
    with pq.ParquetFile(path, memory_map=True) as file:
        for batch in file.iter_batches(use_threads=False):
            columns = [_words(batch[name]) if name in WORDS else batch[name] for name in schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _words(column: Any) -> Any:
    """As strings, whatever spells them: bytes, categories, or a notation that is a list or an object itself."""
    nested = pa.types.is_nested(column.type)
    return pa.array([_word(x) for x in column.to_pylist()], pa.string()) if nested else column.cast(pa.string())


def _word(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _scan_csv(path: Path) -> tuple[Any, int]:
    with _open_csv(path, ()) as reader:
        names = reader.schema.names
    _check_names(names)
    kinds = dict.fromkeys(names, pa.null())
    num_rows = 0
    for batch in _read_csv(path, pa.schema([(name, pa.string()) for name in names])):
        num_rows += batch.num_rows
        kinds = {name: _widened(kinds[name], batch.column(name)) for name in names}
    kinds |= {name: pa.string() for name in WORDS if name in kinds}
    return pa.schema([(name, pa.float64() if kind == pa.null() else kind) for name, kind in kinds.items()]), num_rows


def _check_names(names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"columns of one name among {', '.join(names)}")


def _widened(kind: Any, words: Any) -> Any:
    """The narrowest of integer, number and string, from ``kind`` on, that spells all of a column's words."""
    if words.null_count == len(words):
        return kind
    for wider in (pa.int64(), pa.float64()):
        if kind in (pa.null(), pa.int64(), wider):
            try:
                words.cast(wider)
            except pa.ArrowInvalid:
                continue
            return pa.float64() if kind == pa.float64() else wider
    return pa.string()


def _open_csv(path: Path, names: Sequence[str]) -> Any:
    """These columns as the words that they hold."""
    return pyarrow.csv.open_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(block_size=CSV_BLOCK, use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )


def _read_csv(path: Path, schema: Any) -> Iterator[Any]:
    with _open_csv(path, schema.names) as reader:
        for batch in reader:
            columns = [_without_nothing(batch[field.name], field.name).cast(field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _without_nothing(column: Any, name: str) -> Any:
    nothing = pa.array([""] if name in WORDS else NO_NUMBER)
    return pc.if_else(pc.is_in(column, value_set=nothing), None, column)


def _scan_jsonl(path: Path) -> tuple[Any, int]:
    schema, num_rows = pa.schema([]), 0
    for rows in _json_rows(path):
        names = dict.fromkeys(name for row in rows for name in row)
        found = pa.schema([(name, _json_column(rows, name).type) for name in names])
        schema = pa.unify_schemas([schema, found], promote_options="permissive")
        num_rows += len(rows)
    return schema, num_rows


def _read_jsonl(path: Path, schema: Any) -> Iterator[Any]:
    for rows in _json_rows(path):
        columns = [_json_column(rows, field.name, field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _json_rows(path: Path) -> Iterator[list[dict[str, Any]]]:
    with path.open(encoding="utf-8-sig") as stream:
        rows = (_json_row(number, line) for number, line in enumerate(stream, start=1) if line.strip())
        while chunk := list(islice(rows, JSON_ROWS)):
            yield chunk


def _json_row(number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as e:
        raise ValueError(f"{e} in line {number}") from e
    if not isinstance(row, dict):
        raise ValueError(f"no object in line {number}")
    return row


def _json_column(rows: list[dict[str, Any]], name: str, kind: Any = None) -> Any:
    values = [row.get(name) for row in rows]
    if name in WORDS:
        kind = pa.string()  # a notation that is JSON may stand in the line as such
        values = [_word(x) for x in values]
    try:
        return pa.array(values, kind)
    except DAMAGE as e:
        raise ValueError(f"values of several kinds in column {name}: {e}") from e


_Scan = Callable[[Path], tuple[Any, int]]
_Read = Callable[[Path, Any], Iterator[Any]]
_FORMATS: dict[str, tuple[_Scan, _Read]] = {
    ".parquet": (_scan_parquet, _read_parquet),
    ".csv": (_scan_csv, _read_csv),
    ".jsonl": (_scan_jsonl, _read_jsonl),
}
