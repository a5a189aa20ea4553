"""``nasrlm predict … --out …``: predictions in a table; those of a table of any size in constant memory."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from tqdm import tqdm

from converters.cached_texts import cached_text
from converters.engines import num_workers, with_answers
from converters.errors import check_ending
from converters.tables.batches import BatchedTable, open_table
from converters.tables.columns import WORDS, lacks_column
from nasrlm.by_space import answer_by_space, objectives_of_spaces
from nasrlm.cli.guesses import warn_of_counts, warn_of_guesses
from nasrlm.cli.output import check_table_out, print_json, say, some, warn, write_rows
from nasrlm.files import replacing
from nasrlm.prediction import Prediction, columns_of
from nasrlm.unreadable_texts import naming_rows
from spaces import get_space

if TYPE_CHECKING:
    from nasrlm.predictor import Predictor

CHUNK_ROWS = 128  # rows that a worker converts at a time
GROUP_CHUNKS = 16  # chunks that are predicted and written together, as one row group


class _Chunk(NamedTuple):
    """Rows that a worker converts to texts."""

    path: Path
    numbers: Sequence[int]  # of the rows in the file
    words: Any  # Arrow table with the columns that describe the rows
    num_read: int  # including rows of other spaces


def predict_whole_table(
    predictor: Predictor,
    table: Path,
    out: Path,
    *,
    space: str | None,
    objectives: Sequence[str],
    quantiles: Sequence[float],
    json: bool,
) -> None:
    """Write a table with the columns that describe the rows, and predicted quantiles of each objective.

    The median of an objective has its name, and the 10 % quantile of ``latency_ms@pixel3`` is the column
    ``latency_ms@pixel3.q0.1``. Other columns of the table are left out, with a message: they may hold anything, and
    labels have the names of predictions.

    Args:
        predictor: makes the predictions.
        table: with a column architecture, text or both.
        out: the Parquet or CSV file; it appears when it is complete.
        space: of all rows; if the table names spaces, only rows of this one are predicted.
        objectives: known to the predictor; if empty, all that are known in the table's spaces.
        quantiles: ascending, including 0.5.
        json: print one JSON document.

    Raises:
        ValueError: the table cannot be read or lacks a column, a row is malformed, or there are no rows.
    """
    started = time.perf_counter()
    source = open_table(table, WORDS)
    _check(source, out, space)
    if not source.num_rows:
        raise ValueError(f"{table}: expected rows, got none.")
    spaces = [space] if space is not None else sorted(source.space_names())
    objectives = objectives or objectives_of_spaces(predictor, spaces)
    warn_of_guesses(predictor, spaces, objectives)
    warn_of_counts(objectives)
    columns = columns_of(objectives, quantiles)
    words = _words_schema(source, space)
    schema = _with_numbers(words, columns)
    rows = 0
    with (
        replacing(out) as temporary,
        _writer(temporary, out.suffix.lower(), schema) as writer,
        tqdm(desc="predict", total=source.num_rows, unit="row") as bar,
    ):
        for chunks, texts in _groups(source, words, space):
            described = pa.concat_tables([chunk.words for chunk in chunks])
            named = described["space"].fill_null("").to_pylist() if "space" in words.names else [""] * len(texts)
            numbers = [number for chunk in chunks for number in chunk.numbers]
            with naming_rows(numbers.__getitem__, lambda _: str(table)):
                values = answer_by_space(
                    predictor, texts, named, lambda own, x: own.predict(x, objectives, quantiles).values
                )
            arrays = [*described.columns, *[pa.array(column) for column in values.reshape(len(texts), len(columns)).T]]
            writer.write_table(pa.table(arrays, schema=schema))
            rows += len(texts)
            bar.update(sum(chunk.num_read for chunk in chunks))
        if not rows:
            raise ValueError(f"{table}: expected rows{f' of space {space}' if space else ''}, got none.")
    if rows < source.num_rows:
        warn(f"{source.num_rows - rows:,} rows of other spaces were left out")
    if left_out := [name for name in source.names if name not in words.names]:
        warn(f"{out}: it keeps the table's {', '.join(words.names)}, but not its values of {some(left_out)}.")
    _tell(rows, started, out, json=json)


def write_predictions(
    rows: Sequence[Mapping[Hashable, Any]], prediction: Prediction, out: Path, *, started: float, json: bool
) -> None:
    """Write a table with rows that describe N networks, and with their predictions in columns as above.

    Args:
        rows: N rows.
        prediction: N predictions.
        out: the table.
        started: when the verb began, by ``time.perf_counter``.
        json: print one JSON document.
    """
    predicted = prediction.to_frame().to_dict("records")
    write_rows([{**row, **columns} for row, columns in zip(rows, predicted, strict=True)], out)
    _tell(len(rows), started, out, json=json)


def _tell(rows: int, started: float, out: Path, *, json: bool) -> None:
    seconds = time.perf_counter() - started
    if json:
        print_json({"rows": rows, "seconds": seconds})
    else:
        say(f"{rows:,} rows in {seconds:.0f} s: {out}")


@contextmanager
def _writer(path: Path, ending: str, schema: Any) -> Iterator[Any]:
    """Open a table to which Arrow tables can be added."""
    if ending == ".csv":
        # A CSVWriter leaves a file that it opened itself open, and Windows does not rename open files.
        with path.open("wb") as stream, pyarrow.csv.CSVWriter(stream, schema) as writer:
            yield writer
    else:
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            yield writer


def _groups(source: BatchedTable, words: Any, space: str | None) -> Iterator[tuple[list[_Chunk], list[str]]]:
    """Yield chunks with the texts of their rows, converted in other processes while this one predicts."""
    converts = "architecture" in source.schema.names
    workers = num_workers(None, source.num_rows) if converts else 1
    converted = with_answers(_texts, _chunks(source, words, space), lambda chunk: chunk, workers=workers)
    while group := list(islice(converted, GROUP_CHUNKS)):
        yield [chunk for chunk, _ in group], [text for _, texts in group for text in texts]


def _chunks(source: BatchedTable, words: Any, space: str | None) -> Iterator[_Chunk]:
    for numbers, rows, num_read in source.batches_of_space(space, CHUNK_ROWS):
        if space is not None and "space" not in rows.column_names:
            rows = rows.append_column("space", pa.array([space] * rows.num_rows, pa.string()))
        yield _Chunk(source.path, numbers, rows.select(words.names).cast(words), num_read)


def _texts(chunk: _Chunk) -> list[str]:
    """Return the text of each row, converted from its architecture if it has none; runs in a worker."""
    nothing = [None] * chunk.words.num_rows
    columns = [
        chunk.words[name].to_pylist() if name in chunk.words.column_names else nothing
        for name in ("text", "space", "architecture")
    ]
    rows = zip(chunk.numbers, *columns, strict=True)
    return [text or _text_of(chunk.path, number, space, notation) for number, text, space, notation in rows]


def _text_of(path: Path, number: int, space: str | None, notation: str | None) -> str:
    if not notation:
        raise ValueError(f"{path}: expected an architecture or text in every row, got none in row {number}.")
    if space is None:
        raise ValueError(f"{path}: expected a space in every row, got none in row {number}. Fill its column space.")
    try:
        return cached_text(space, notation, measured=True)
    except ValueError as e:
        raise ValueError(f"{path}, row {number}: {e}") from e


def _check(source: BatchedTable, out: Path, space: str | None) -> None:
    names = source.names
    check_ending(out, ".parquet", ".csv")
    check_table_out(out, source.path)
    if "architecture" not in names and "text" not in names:
        raise lacks_column(source.path, "architecture or text", names)
    if "text" not in names and space is None and "space" not in names:
        raise ValueError(f"{source.path}: expected a column space, got none. Name it with --space.")
    if space is not None and "architecture" in names:
        get_space(space)


def _words_schema(source: BatchedTable, space: str | None) -> Any:
    names = [name for name in WORDS if name in source.schema.names or (name == "space" and space is not None)]
    return pa.schema([(name, pa.string()) for name in names])


def _with_numbers(words: Any, columns: Sequence[str]) -> Any:
    return pa.schema([*words, *[pa.field(name, pa.float64()) for name in columns]])
