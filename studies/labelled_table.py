"""Tables of labelled architectures or texts: Parquet, CSV or JSONL, read with clear errors."""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from converters.batches import NO_NUMBER, WORDS
from nasrlm.objective import Objective

_FACTS = ("params", "macs", "mparams", "mmacs", "mflops")  # labels that need no context


def read_table(path: Path | str, *, require: Sequence[str] = ()) -> pd.DataFrame:
    """Read a table with a column ``architecture``, ``text`` or both; then a row has one of the two.

    Args:
        path: file ending in .parquet, .csv or .jsonl.
        require: further columns that must be there.

    Raises:
        ValueError: no such file, another ending, damaged contents, a column is missing, a row has no architecture or
            text, a text is no string, or a label is no number or infinite; one line, naming it.
    """
    path = Path(path)
    reader = _READERS.get(path.suffix)
    if reader is None:
        raise ValueError(f"{path}: expected a table ending in {', '.join(_READERS)}, got {path.suffix or 'no ending'}.")
    if not path.is_file():
        raise ValueError(f"{path}: expected a table, got no such file.")
    try:
        frame = reader(path).reset_index(drop=True)  # rows go by their place in the file
        frame = frame.astype({name: object for name in WORDS if name in frame})  # categories take no other words
        for name in set(WORDS) & set(frame.columns):
            if pd.api.types.infer_dtype(frame[name]) != "string":
                frame[name] = frame[name].map(lambda x: x.decode() if isinstance(x, bytes) else x)
    except Exception as e:  # pyarrow and pandas raise many kinds
        reason = " ".join(str(e).split())[:200]
        raise ValueError(f"{path}: expected a readable {path.suffix[1:]} table, got {reason}. Is it truncated?") from e
    described = [name for name in ("text", "architecture") if name in frame]
    if not described:
        raise lacks_networks(path, list(map(str, frame.columns)))
    missing = [name for name in require if name not in frame]
    if missing:
        raise ValueError(
            f"{path}: expected a column {', '.join(missing)}, got labels {', '.join(label_columns(frame)) or 'none'}."
        )
    empty = frame[described].map(is_empty).all(axis=1)
    if empty.any():
        what = " or ".join(described)
        raise ValueError(f"{path}: expected {what} in every row, got none in row {empty.argmax()}.")
    if "text" in frame:
        _check_strings(frame["text"], path)
    for name in frame.columns:
        if name in require or "@" in str(name):
            frame[name] = _numbers(frame[name], path)
    return frame


def lacks_networks(path: Path, names: Sequence[str]) -> ValueError:
    """The error of a table without a column of architectures or texts.

    Args:
        path: of the table.
        names: of its columns.
    """
    help_ = " Separate them by commas." if len(names) == 1 and re.search(r"[;\t|]", names[0]) else ""
    return ValueError(f"{path}: expected a column architecture or text, got {', '.join(names) or 'none'}.{help_}")


def _read_csv(path: Path) -> pd.DataFrame:
    with path.open(newline="", encoding="utf-8-sig") as file, _fields_of_any_length():
        rows = csv.reader(file)
        names = next(rows, [])
        short = next((row for row, fields in enumerate(filter(None, rows)) if len(fields) < len(names)), None)
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"more than one column {repeated[0]}")
    if short is not None:
        raise ValueError(f"fewer than the {len(names)} fields that the header names in row {short}")
    missing = {name: [""] if name in WORDS else NO_NUMBER for name in names}
    words = dict.fromkeys(WORDS, str)
    with warnings.catch_warnings():  # of rows longer than the header: it would cut them
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(path, dtype=words, na_values=missing, keep_default_na=False, index_col=False)
        except pd.errors.ParserWarning as e:
            raise ValueError(f"rows of more than the {len(names)} fields that the header names") from e


@contextmanager
def _fields_of_any_length() -> Iterator[None]:
    """The csv module takes 128 KB otherwise."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".parquet": lambda path: pq.read_table(path).to_pandas(ignore_metadata=True),  # an index of pandas' is a column
    ".csv": _read_csv,
    # with a dtype inferred "0123" would be read as 123
    ".jsonl": lambda path: pd.read_json(path, lines=True, dtype=False, precise_float=True, encoding="utf-8-sig"),
}


def is_empty(word: Any) -> bool:
    """Whether a cell of a column of words holds none; a list, a notation as JSON has it, is one."""
    return word == "" if isinstance(word, str) else pd.isna(word) is True


def _check_strings(texts: pd.Series[Any], path: Path) -> None:
    wrong = ~texts.map(lambda x: isinstance(x, str) or is_empty(x))
    if wrong.any():
        row = int(wrong.argmax())
        cell = texts[row].tolist() if hasattr(texts[row], "tolist") else texts[row]  # a list of NumPy's
        raise ValueError(f"{path}: expected a string in column text, got {repr(cell)[:40]} in row {row}.")


def _numbers(labels: pd.Series[Any], path: Path) -> pd.Series[Any]:
    if labels.dtype.kind in "mM":
        raise ValueError(f"{path}: expected numbers in column {labels.name}, got times, {labels.dtype}.")
    if labels.dtype.kind == "b":
        raise ValueError(f"{path}: expected numbers in column {labels.name}, got true and false.")
    numbers = pd.to_numeric(labels, errors="coerce")
    wrong = numbers.isna() & labels.notna()
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{path}: expected numbers in column {labels.name}, got {labels.iloc[row]!r} in row {row}.")
    infinite = np.isinf(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    if infinite.any():
        row = int(infinite.argmax())
        raise ValueError(
            f"{path}: expected finite or no numbers in column {labels.name}, got {labels.iloc[row]} in row {row}."
        )
    return numbers


def label_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """Numeric columns named ``metric_unit@context``, and facts such as ``params``, in the table's order."""
    return tuple(
        str(name)
        for name in frame.columns
        if pd.api.types.is_numeric_dtype(frame[name]) and ("@" in str(name) or name in _FACTS)
    )


def objective_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """Label columns with a context: what a model learns by default.

    Raises:
        ValueError: a column name with @ is no objective.
    """
    return tuple(Objective.parse(name).name for name in label_columns(frame) if "@" in name)
