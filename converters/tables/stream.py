"""Adds columns that are computed from architectures, such as texts, to a table of any size.

Rows are read, processed by several workers and written in parts, in constant memory. A killed run can be resumed.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from converters.cached_texts import cached_space
from converters.convert import to_onnx_text
from converters.engines import check_engine, num_workers, with_answers
from converters.errors import check_ending
from converters.tables.batches import BatchedTable, TableBatch, open_table
from converters.tables.columns import TEXT, lacks_column
from converters.tables.parts import TABLE, Parts, Settings
from converters.version import code_digest
from spaces import SearchSpace, get_space
from spaces.registry import full_name, modules_beside, space_file

# Results cached per worker, at most 10 MB of texts: tables repeat an architecture for every device or data set.
CACHED = 1024


Compute = Callable[[SearchSpace[Any], Any], tuple[Any, ...]]  # from space and architecture to a row's new values


def text_of(space: SearchSpace[Any], architecture: Any) -> tuple[str]:
    """Return the canonical text of an architecture, as the only new value of a row."""
    return (to_onnx_text(space, architecture),)


@dataclass(frozen=True)
class Derivation:
    """Columns that are computed from a row's architecture.

    Attributes:
        columns: names and Arrow types of the columns.
        compute: function from space and architecture to one value per column. It must be picklable, and a copy must
            equal the original.
        settings: description of whatever else the values depend on.
    """

    columns: Mapping[str, Any]
    compute: Compute
    settings: str = ""


CANONICAL_TEXT = Derivation({TEXT: pa.string()}, text_of)


@dataclass(frozen=True)
class StreamConfig:
    """Configuration of ``convert_table``.

    Attributes:
        table: Parquet, CSV or JSONL with a column ``architecture`` and, unless ``space`` is set, a column ``space``.
        out: the Parquet file to write.
        space: a name for ``get_space``; if the table has a column ``space``, only rows of this space are converted.
        workers: number of processes; None means one per core, as far as there is enough work.
        engine: "process" or "ray".
        resume: continue a killed run; a finished output is accepted as it is.
        chunk_rows: rows that a worker converts at a time.
        part_chunks: chunks in a part; a killed run loses at most one part.
        derivation: the columns to add.
    """

    table: Path
    out: Path
    space: str | None = None
    workers: int | None = None
    engine: str = "process"
    resume: bool = False
    chunk_rows: int = 128
    part_chunks: int = 8
    derivation: Derivation = CANONICAL_TEXT


@dataclass(frozen=True)
class StreamResult:
    """Numbers of rows converted, failed, and left out because they are of another space."""

    rows: int
    failed: int
    left_out: int
    errors: Path
    seconds: float


class Request(NamedTuple):
    """One row for a worker."""

    space: str | None
    architecture: str | None


class Task(NamedTuple):
    """Rows for a worker, and the function to apply."""

    compute: Compute
    requests: Sequence[Request]


class Answer(NamedTuple):
    """The new values of a row, or the reason why there are none."""

    values: tuple[Any, ...] | None
    reason: str | None


_Chunk = tuple[TableBatch, Sequence[Answer]]  # rows, and the answer for each of them


def convert_table(
    config: StreamConfig, *, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> StreamResult:
    """Write the table with the new columns; rows that fail go to ``<out>.errors.jsonl`` with the reason.

    Args:
        config: see ``StreamConfig``.
        on_progress: called with the number of rows done, including those of a resumed run, and of all rows.

    Raises:
        ValueError: the table cannot be read or lacks a column, the output exists already or another run is writing it,
            or no row succeeds.
        ImportError: the engine is not installed.
        OSError: the output cannot be written.
    """
    started = time.perf_counter()
    table = open_table(config.table)
    _check(config, table)
    schema = table.schema
    for name, kind in config.derivation.columns.items():
        schema = schema.append(pa.field(name, kind))
    parts = Parts(config.out, schema, _settings(config, table), config.table)
    is_done = config.resume and parts.is_finished  # then no lock is taken, since the folder may be read-only
    with nullcontext() if is_done else parts.held_alone():
        if not (config.resume and parts.is_finished):  # again: another run may have held the lock until now
            _convert_parts(config, table, parts, on_progress)
        rows, failed = parts.count()
        left_out = table.num_rows - rows - failed
        if table.num_rows and not rows:
            parts.out.unlink()
            got = [f"{failed} that fail (see {parts.errors})"] if failed else []
            got += [f"{left_out} of spaces other than {config.space}"] if left_out else []
            raise ValueError(f"{config.table}: expected rows that can be converted, got {' and '.join(got)}.")
    return StreamResult(rows, failed, left_out, parts.errors, time.perf_counter() - started)


def convert_rows(task: Task) -> list[Answer]:
    """Convert the rows of a task; this runs in a worker."""
    return [_convert(task.compute, request) for request in task.requests]


def _convert_parts(
    config: StreamConfig, table: BatchedTable, parts: Parts, on_progress: Callable[[int, int], None]
) -> None:
    index = parts.begin(resume=config.resume)
    done = min(index * config.part_chunks * config.chunk_rows, table.num_rows)
    chunks = _converted(config, table, done, on_progress)
    while part := list(islice(chunks, config.part_chunks)):
        _write_part(parts, index, part, config.derivation)
        index += 1
    parts.assemble(index)


def _converted(
    config: StreamConfig, table: BatchedTable, done: int, on_progress: Callable[[int, int], None]
) -> Iterator[_Chunk]:
    """Yield the chunks after the ``done`` first rows."""

    def to_task(batch: TableBatch) -> Task:
        return Task(config.derivation.compute, _requests(config, batch.rows))

    on_progress(done, table.num_rows)
    batches = table.batches_of_space(config.space, config.chunk_rows, start=done)
    workers = num_workers(config.workers, table.num_rows - done)
    for chunk in with_answers(convert_rows, batches, to_task, workers=workers, engine=config.engine):
        done += chunk[0].num_read
        on_progress(done, table.num_rows)
        yield chunk


def _requests(config: StreamConfig, rows: Any) -> list[Request]:
    notations = rows["architecture"].to_pylist()
    names = [config.space] * len(notations) if config.space else rows["space"].to_pylist()
    pairs = zip(names, notations, strict=True)
    return [Request(name and full_name(str(name)), None if a is None else str(a)) for name, a in pairs]


def _write_part(parts: Parts, index: int, chunks: Sequence[_Chunk], derivation: Derivation) -> None:
    answers = [answer for _, answers_of_batch in chunks for answer in answers_of_batch]
    numbers = [number for batch, _ in chunks for number in batch.numbers]
    table = pa.concat_tables([batch.rows for batch, _ in chunks])
    notations = table["architecture"].to_pylist()
    errors = [
        {"row": number, "architecture": notation, "reason": answer.reason}
        for number, notation, answer in zip(numbers, notations, answers, strict=True)
        if answer.values is None
    ]
    for column, (name, kind) in enumerate(derivation.columns.items()):
        values = [None if answer.values is None else answer.values[column] for answer in answers]
        table = table.append_column(name, pa.array(values, kind))
    parts.write(index, table.filter(pa.array([answer.values is not None for answer in answers], pa.bool_())), errors)


def _convert(compute: Compute, request: Request) -> Answer:
    try:
        if request.space is None or request.architecture is None:
            raise ValueError(f"row: expected a space and an architecture, got {request.space}, {request.architecture}.")
        architecture = cached_space(request.space).parse(request.architecture)
        return Answer(_computed(compute, request.space, architecture), None)
    except ValueError as e:
        return Answer(None, str(e))
    except Exception as e:  # an error in a user's space fails only its rows, not the run
        return Answer(None, f"{type(e).__name__}: {e}")


@lru_cache(maxsize=CACHED)
def _computed(compute: Compute, space: str, architecture: Any) -> tuple[Any, ...]:
    """Compute the new values of one row.

    NOTE: results are cached by architecture and not by ``architecture_key``, because isomorphic modules of
    NAS-Bench-101 may differ in channels.
    """
    return compute(cached_space(space), architecture)


def _check(config: StreamConfig, table: BatchedTable) -> None:
    names = table.schema.names
    check_engine(config.engine, config.workers)
    check_ending(config.out, ".parquet")
    if "architecture" not in names:
        raise lacks_column(table.path, "architecture", names)
    if there := [name for name in config.derivation.columns if name in names]:
        raise ValueError(f"{table.path}: expected no column {there[0]} yet, got one. Rename or drop it.")
    if TEXT in names:
        warnings.warn(
            f"{table.path}: results are computed from the column architecture; the column text is copied unchanged.",
            stacklevel=4,
        )
    for column in table.schema:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([column])).close()
        except pa.ArrowNotImplementedError as e:  # such as JSON objects without any field
            raise ValueError(
                f"{table.path}: expected values that Parquet can store in column {column.name}, got {e}"
            ) from e
    if config.space is not None:
        get_space(config.space)
    elif "space" not in names:
        raise ValueError(f"{table.path}: expected a column space, got none. Name it with --space.")


def _settings(config: StreamConfig, table: BatchedTable) -> Settings:
    """Return all that determines the contents of the parts; files are identified by contents and not by path.

    Cost: a second for a table of 1 GB.
    """
    names = {config.space} if config.space else table.space_names() - {""}
    files = {name.rpartition(":")[0]: file for name in names if (file := space_file(name))}
    beside = {name: modules_beside(file).values() for name, file in files.items() if file.is_file()}
    files |= {f"{file.name} beside {name}": file for name, found in beside.items() for file in found}
    return {
        "code": code_digest(),
        TABLE: _contents(config.table),
        "space": config.space,
        "the space's file": "; ".join(f"{name}, {_contents(files[name])}" for name in sorted(files)) or None,
        "chunk_rows": config.chunk_rows,
        "part_chunks": config.part_chunks,
        "columns": ", ".join(config.derivation.columns),
        "settings": config.derivation.settings,
    }


def _contents(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return f"{stream.tell()} bytes with digest {digest[:16]}"
    except OSError as e:
        return f"{e.strerror}"
