"""Reads Parquet tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from converters.tables.columns import TEXT, WORDS, IsRead, Scanned, check_columns, spelled


def scan(path: Path, is_read: IsRead, spell_mixed: bool) -> Scanned:
    """Return names, types and number of rows, which are stored in the file."""
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        check_columns(names)
        # pandas' metadata about columns and index would be wrong for the table that is made from this one
        metadata = {k: v for k, v in (file.schema_arrow.metadata or {}).items() if k != b"pandas"}
        read = [field for field in file.schema_arrow if is_read(field.name)]
        fields = [field.with_type(pa.string()) if field.name in WORDS else field for field in read]
        return tuple(names), pa.schema(fields, metadata or None), file.metadata.num_rows


def read(path: Path, schema: Any) -> Iterator[Any]:
    """Yield record batches with the columns of a schema."""
    start = 0
    with pq.ParquetFile(path, memory_map=True) as file:
        for batch in file.iter_batches(columns=schema.names, use_threads=False):
            columns = [_words(name, batch[name], start) if name in WORDS else batch[name] for name in schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            start += batch.num_rows


def _words(name: str, column: Any, start: int) -> Any:
    """Convert a column to strings from any type: bytes, categories, or notations that are lists or objects."""
    if pa.types.is_nested(column.type) or (name == TEXT and not _holds_strings(column.type)):
        return pa.array(spelled(name, column.to_pylist(), start), pa.string())
    return column.cast(pa.string())


def _holds_strings(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_of_kind = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_binary
    return any(check(kind) for check in (*is_of_kind, pa.types.is_large_binary, pa.types.is_null))
