"""Tables of any size a batch of rows at a time: Parquet, CSV and JSONL, every batch with the same columns."""

from __future__ import annotations

import json
from bisect import bisect
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from converters.errors import instead_of_file
from spaces.registry import same_spaces

WORDS = ("architecture", "text", "space", "split")  # columns that hold words, whatever they look like
# Cells of a CSV's column of numbers in which there is none; in a column of words these are words, and "" is none.
NO_NUMBER = ("", "#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
CSV_BLOCK = 1 << 22  # bytes; a row must fit in. Arrow reads 32 blocks ahead: 300 MB, and of larger blocks 2.3 GB
JSON_ROWS = 4096
TEXT = "text"  # of WORDS, the column that holds strings alone
ONNX_TEXT = "<\n   ir_version: "  # how it begins
DAMAGE = (pa.ArrowException, OSError, ValueError, OverflowError)  # what pyarrow and json raise


_IsRead = Callable[[str], bool]  # of a column
_Scanned = tuple[tuple[str, ...], Any, int]  # names of all columns, schema of those that are read, number of rows


class TableBatch(NamedTuple):
    """Rows that are read together.

    Attributes:
        numbers: of the rows in the table.
        rows: an Arrow table of them.
        num_read: rows of the table that these were chosen from.
    """

    numbers: Sequence[int]
    rows: Any
    num_read: int


@dataclass(frozen=True)
class BatchedTable:
    """A table on disk.

    Attributes:
        path: the file.
        names: of all its columns.
        schema: Arrow's names and types of the columns that are read.
        num_rows: of the whole table.
    """

    path: Path
    names: tuple[str, ...]
    schema: Any
    num_rows: int

    def batches(self, size: int, *, start: int = 0) -> Iterator[Any]:
        """Arrow tables of ``size`` rows, the last one perhaps shorter, from row ``start`` on.

        Raises:
            ValueError: the file is damaged, or a cell of the column ``text`` is no string, or ONNX that breaks off.
        """
        _, read = _FORMATS[self.path.suffix]
        with_context = _explained(self.path, read(self.path, self.schema))
        return _with_whole_texts(self.path, _resized(with_context, self.schema, size, start), start)

    def batches_of_space(self, space: str | None, size: int, *, start: int = 0) -> Iterator[TableBatch]:
        """The same, of each only the rows of a space, where one is named and the table says which those are.

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


def open_table(path: Path, only: Collection[str] | None = None, *, spell_mixed: bool = False) -> BatchedTable:
    """Look a table over: its columns, their types over all rows, its length.

    Cost: Parquet knows them; CSV and JSONL are read through once, in constant memory.

    Args:
        path: the file.
        only: columns to read, where they are there; others may hold anything. All if None.
        spell_mixed: values of several kinds in a column of JSONL become words, as those of CSV do.

    Raises:
        ValueError: no such file, another ending, damaged contents, or values of several kinds in a column of JSONL that
            are not to become words; the message names column and row.
    """
    if path.suffix not in _FORMATS:
        endings = ", ".join(_FORMATS)
        raise ValueError(f"{path}: expected a table ending in {endings}, got {path.suffix or 'no ending'}.")
    if not path.is_file():
        raise ValueError(f"{path}: expected a table, got {instead_of_file(path)}.")
    with path.open("rb") as file:
        if file.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE):
            raise ValueError(f"{path}: expected UTF-8, got UTF-16. Save it again, or use iconv -f UTF-16 -t UTF-8.")
    scan, _ = _FORMATS[path.suffix]
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
                    f"{path}: expected whole ONNX text in row {start + row}, got one that ends in {end!r}."
                )
        start += rows.num_rows
        yield rows


class _ContentError(ValueError):
    """What a table holds that it should not; the file is whole."""


def _damaged(path: Path, error: Exception) -> ValueError:
    if isinstance(error, _ContentError):
        return ValueError(f"{path}: {error}")
    reason = " ".join(str(error).split())[:200]
    is_spelling = isinstance(error, UnicodeDecodeError) or "UTF8" in reason  # as Arrow writes it
    question = "Is it whole, and in UTF-8?" if is_spelling else "Is it truncated?"
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


def _scan_parquet(path: Path, is_read: _IsRead, spell_mixed: bool) -> _Scanned:
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        _check_names(names)
        # pandas' own note of columns and index would be wrong of the table that is made of this one
        metadata = {k: v for k, v in (file.schema_arrow.metadata or {}).items() if k != b"pandas"}
        read = [field for field in file.schema_arrow if is_read(field.name)]
        fields = [field.with_type(pa.string()) if field.name in WORDS else field for field in read]
        return tuple(names), pa.schema(fields, metadata or None), file.metadata.num_rows


def _read_parquet(path: Path, schema: Any) -> Iterator[Any]:
    start = 0
    with pq.ParquetFile(path, memory_map=True) as file:
        for batch in file.iter_batches(columns=schema.names, use_threads=False):
            columns = [_words(name, batch[name], start) if name in WORDS else batch[name] for name in schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            start += batch.num_rows


def _words(name: str, column: Any, start: int) -> Any:
    """As strings, whatever spells them: bytes, categories, or a notation that is a list or an object itself."""
    if pa.types.is_nested(column.type) or (name == TEXT and not _holds_strings(column.type)):
        return pa.array(_spelled(name, column.to_pylist(), start), pa.string())
    return column.cast(pa.string())


def _holds_strings(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_of_kind = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_binary
    return any(check(kind) for check in (*is_of_kind, pa.types.is_large_binary, pa.types.is_null))


def _spelled(name: str, values: Sequence[Any], start: int) -> list[str | None]:
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
    raise _ContentError(f"expected {wanted} in column {name}, got {repr(value)[:40]} in row {row}.")


def _scan_csv(path: Path, is_read: _IsRead, spell_mixed: bool) -> _Scanned:
    with _open_csv(path, ()) as reader:
        names = tuple(reader.schema.names)
    _check_names(names)
    kinds = dict.fromkeys(filter(is_read, names), pa.null())
    num_rows = 0
    with _open_csv(path, list(kinds)) as reader:
        for batch in reader:
            num_rows += batch.num_rows
            kinds = {name: _widened(kind, batch[name]) for name, kind in kinds.items()}
    kinds |= {name: pa.string() for name in WORDS if name in kinds}
    known = [(name, pa.float64() if kind == pa.null() else kind) for name, kind in kinds.items()]
    return names, pa.schema(known), num_rows


def _check_names(names: Sequence[str]) -> None:
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise _ContentError(f"expected columns of different names, got {twice} twice. Rename one.")


def _widened(kind: Any, words: Any) -> Any:
    """The narrowest of integer, number and string, from ``kind`` on, that spells all of a column's words."""
    if kind == pa.string() or _without(NO_NUMBER, words).null_count == len(words):
        return kind
    kinds = (pa.float64(),) if kind == pa.float64() else (pa.float64(), pa.int64())  # 0x10 is an integer, no number
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
    """These columns as the words that they hold; all if none are named."""
    uneven: list[Any] = []

    def refuse(row: Any) -> str:
        uneven.append(row)
        return "error"

    try:
        with pyarrow.csv.open_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(block_size=CSV_BLOCK, use_threads=False),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), include_columns=names
            ),
        ) as reader:
            yield reader
    except pa.ArrowInvalid as e:
        if "straddling" in str(e):
            raise ValueError(f"a row of more than {CSV_BLOCK:,} bytes, or a quote that is not closed") from e
        if not uneven:
            raise
        expected, got, number, _ = uneven[0]  # of the header number is 1
        if expected == 1:
            raise _ContentError(
                f"expected columns separated by commas, got a header without a comma, but commas in row {number - 2}."
            ) from e
        what = f"{'fewer' if got < expected else 'more'} than the {expected} fields that the header names"
        raise ValueError(f"{what} in row {number - 2}") from e


def _read_csv(path: Path, schema: Any) -> Iterator[Any]:
    with _open_csv(path, schema.names) as reader:
        for batch in reader:
            columns = [_spelt(batch[field.name], field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _without(nothing: Sequence[str], column: Any) -> Any:
    return pc.if_else(pc.is_in(column, value_set=pa.array(nothing)), None, column)


def _spelt(words: Any, kind: Any) -> Any:
    """Words as they are, or the numbers that they spell; blanks around numbers say nothing."""
    if kind == pa.string():
        return _without(("",), words)
    return pc.ascii_trim_whitespace(_without(NO_NUMBER, words)).cast(kind)


def _scan_jsonl(path: Path, is_read: _IsRead, spell_mixed: bool) -> _Scanned:
    names: dict[str, None] = {}
    kinds: dict[str, Any] = {}
    num_rows = 0
    for rows in _json_rows(path):
        names |= dict.fromkeys(name for row in rows for name in row)
        for name in filter(is_read, names):
            try:
                kinds[name] = _json_kind(name, [row.get(name) for row in rows], num_rows, kinds.get(name, pa.null()))
            except _ContentError:
                if not spell_mixed or name in WORDS:
                    raise
                kinds[name] = pa.string()
        num_rows += len(rows)
    return tuple(names), pa.schema(list(kinds.items())), num_rows


def _read_jsonl(path: Path, schema: Any) -> Iterator[Any]:
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
        raise _ContentError(f"expected an object in every line, got {repr(row)[:40]} in line {number}.")
    return row


def _json_kind(name: str, values: Sequence[Any], start: int, kind: Any) -> Any:
    """The type of the values of a column from row ``start`` on and of those before, which are of ``kind``."""
    if name in WORDS:
        return _json_column(pa.field(name, pa.string()), values, start).type

    def together(some: Sequence[Any]) -> Any:
        schemas = [pa.schema([(name, x)]) for x in (kind, pa.array(some).type)]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type

    return _of_one_kind(name, values, start, together)


def _json_column(field: Any, values: Sequence[Any], start: int) -> Any:
    if field.type == pa.string():
        values = _spelled(field.name, values, start)
    return _of_one_kind(field.name, values, start, lambda some: pa.array(some, field.type))


def _of_one_kind(name: str, values: Sequence[Any], start: int, use: Callable[[Sequence[Any]], Any]) -> Any:
    """What ``use`` makes of values; if it cannot, the first one that it cannot go beyond is told."""
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
    raise _ContentError(
        f"expected values of one kind in column {name}, got {repr(values[row])[:40]} in row {start + row} ({reason})."
    )


_Scan = Callable[[Path, _IsRead, bool], _Scanned]
_Read = Callable[[Path, Any], Iterator[Any]]
_FORMATS: dict[str, tuple[_Scan, _Read]] = {
    ".parquet": (_scan_parquet, _read_parquet),
    ".csv": (_scan_csv, _read_csv),
    ".jsonl": (_scan_jsonl, _read_jsonl),
}
