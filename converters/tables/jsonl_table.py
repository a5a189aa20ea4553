"""Reads JSONL tables, which have one JSON object per line."""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from converters.tables.columns import DAMAGE, WORDS, IsRead, Scanned, TableContentError, spelled

JSON_ROWS = 4096


def scan(path: Path, is_read: IsRead, spell_mixed: bool) -> Scanned:
    """Return names, types and number of rows; all rows are read to find them."""
    names: dict[str, None] = {}
    kinds: dict[str, Any] = {}
    num_rows = 0
    for rows in _json_rows(path):
        names |= dict.fromkeys(name for row in rows for name in row)
        for name in filter(is_read, names):
            try:
                kinds[name] = _json_kind(name, [row.get(name) for row in rows], num_rows, kinds.get(name, pa.null()))
            except TableContentError:
                if not spell_mixed or name in WORDS:
                    raise
                kinds[name] = pa.string()
        num_rows += len(rows)
    return tuple(names), pa.schema(list(kinds.items())), num_rows


def read(path: Path, schema: Any) -> Iterator[Any]:
    """Yield record batches with the columns of a schema."""
    start = 0
    for rows in _json_rows(path):
        columns = [_json_column(field, [row.get(field.name) for row in rows], start) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        start += len(rows)


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
        raise TableContentError(f"expected an object in every line, got {repr(row)[:40]} in line {number}.")
    return row


def _json_kind(name: str, values: Sequence[Any], start: int, kind: Any) -> Any:
    """Return a type for the values of a column from row ``start`` on and for the earlier ones, of type ``kind``."""
    if name in WORDS:
        return _json_column(pa.field(name, pa.string()), values, start).type

    def together(some: Sequence[Any]) -> Any:
        schemas = [pa.schema([(name, x)]) for x in (kind, pa.array(some).type)]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type

    return _of_one_kind(name, values, start, together)


def _json_column(field: Any, values: Sequence[Any], start: int) -> Any:
    if field.type == pa.string():
        values = spelled(field.name, values, start)
    return _of_one_kind(field.name, values, start, lambda some: pa.array(some, field.type))


def _of_one_kind(name: str, values: Sequence[Any], start: int, use: Callable[[Sequence[Any]], Any]) -> Any:
    """Return ``use(values)``; if it fails, raise an error that names the first value at which it does."""
    try:
        return use(values)
    except DAMAGE as e:
        problem = e

    def fails(count: int) -> bool:
        try:
            use(values[:count])
        except DAMAGE:
            return True
        return False

    row = bisect(range(1, len(values)), False, key=fails)
    reason = " ".join(str(problem).split())[:120]
    raise TableContentError(
        f"expected values of one kind in column {name}, got {repr(values[row])[:40]} in row {start + row} ({reason})."
    )
