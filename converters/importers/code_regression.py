"""Importer of Code-Regression: source code with its peak memory or latency, from APPS, CodeNet and KernelBook.

Source:
    The data set akhauriyash/Code-Regression on the Hugging Face hub, its card: one ``data.parquet`` of 7,502,559 rows
    with ``identifier``, ``space`` (APPS, CDSS for CodeNet, KBSS for KernelBook's Triton kernels), ``input`` (the
    source), ``metric_type`` (``memory_bytes`` or ``latency_ms``) and ``metadata``, a Python dict as a string, whose
    ``language`` names a CodeNet submission's. The number is ``val_accuracy`` in the card's schema and ``target`` in
    its example and in the published file. Akhauri et al. 2025, "Regression Language Models for Code".
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from converters.importers.reading import BenchmarkFileError, positive, reading
from converters.tables.batches import BatchedTable, open_table
from spaces.drawing import split_of

CONTEXTS = {"APPS": "apps", "CDSS": "codenet", "KBSS": "kernelbook"}
METRICS = ("memory_bytes", "latency_ms")
TARGETS = ("target", "val_accuracy")
ROWS = 8192  # rows read at a time
VALID_PERCENT, TEST_PERCENT = 10, 10  # percent of the sources; the rest are for training


def read(path: Path, *, progress: bool = False, space: str | None = None) -> pd.DataFrame:
    """Return a table ready for training: ``space``, ``identifier``, ``language``, ``text``, ``split`` and labels.

    Labels are named by metric and space: ``memory_bytes@apps``, ``memory_bytes@codenet``, ``latency_ms@kernelbook``.
    The text is the source code, after a line with the language if that is known. The file has no splits. Ours depend
    only on the source code, so the same program is never in two of them. A number that is missing or not positive
    counts as not measured: NaN.

    Args:
        path: a .parquet file, or a .csv or .jsonl file with the same columns.
        progress: show a bar on stderr.
        space: read only the rows of this space; CodeNet alone has 7.4 million. All rows if None.

    Raises:
        BenchmarkFileError: the file is damaged, a column is missing, or a row has another metric or no number; the
            message has the row, counted from 0.

    Warns:
        UserWarning: rows without source code were left out.
    """
    with _reading_table():
        table = open_table(path)
    target = _check(table, path)
    kept: list[dict[str, Any]] = []
    num_empty = 0
    bar = tqdm(total=table.num_rows, desc="code-regression", unit="row", disable=not progress)
    with bar, _reading_table():
        for batch in table.batches_of_space(space, ROWS):
            for number, record in zip(batch.numbers, batch.rows.to_pylist(), strict=True):
                with reading(f"{path}, row {number}", "source code with a number"):
                    row = _row(record, target)
                    num_empty += not row["text"]
                    kept += [row] if row["text"] else []
            bar.update(batch.num_read)
    if not kept:
        wanted = f"rows of space {space}" if space else "rows with source code"
        found = sorted(name or "None" for name in table.space_names())
        raise BenchmarkFileError(f"{path}: expected {wanted}, got spaces {', '.join(found) or 'none'}.")
    if num_empty:
        warnings.warn(f"{path}: {num_empty:,} rows without source code are left out.", stacklevel=2)
    return pd.DataFrame(kept)


@contextmanager
def _reading_table() -> Iterator[None]:
    """Turn the error of a table that cannot be read, which names the file, into a BenchmarkFileError."""
    try:
        yield
    except BenchmarkFileError:
        raise
    except ValueError as e:
        raise BenchmarkFileError(str(e)) from e


def _check(table: BatchedTable, path: Path) -> str:
    """Check the columns; return the name of the one with the numbers."""
    names = table.schema.names
    missing = [name for name in ("space", "input", "metric_type") if name not in names]
    targets = [name for name in TARGETS if name in names]
    if missing or not targets:
        wanted = missing or [" or ".join(TARGETS)]
        raise BenchmarkFileError(
            f"{path}: expected the columns of Code-Regression, got {', '.join(names)} without {', '.join(wanted)}."
        )
    return targets[0]


def _row(record: Mapping[str, Any], target: str) -> dict[str, Any]:
    space, metric, source = str(record["space"]), record["metric_type"], record["input"]
    if metric not in METRICS:
        raise ValueError(f"metric_type {metric!r}, which is not one of {', '.join(METRICS)}")
    language = _language(record.get("metadata"))
    text = f"{language}\n{source}" if source and language else source or ""
    return {
        "space": space,
        "identifier": record.get("identifier"),
        "language": language,
        "text": text,
        "split": split_of(source or "", VALID_PERCENT, TEST_PERCENT),
        f"{metric}@{CONTEXTS.get(space) or _context(space)}": positive(record[target]),
    }


def _context(space: str) -> str:
    """Return the context of a label for an unknown space: its name with only letters, digits, ``.``, ``-``, ``_``."""
    return re.sub(r"[^a-z0-9_.-]+", "-", space.lower()).strip("-._") or "other"


def _language(metadata: Any) -> str | None:
    """Return the language from the metadata, a Python dict as a string, which is parsed as data; None if missing."""
    if not isinstance(metadata, str) or not metadata:
        return None
    fields = ast.literal_eval(metadata)
    if not isinstance(fields, dict):
        raise ValueError(f"metadata {metadata[:40]!r}, not a dict")
    return str(fields["language"]) if fields.get("language") else None
