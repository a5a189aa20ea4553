"""The examples of a training run: the rows of its tables with their texts, which are converted once per run."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from converters.version import code_digest
from nasrlm.arguments import check_kind
from nasrlm.examples import Examples
from nasrlm.files import write_atomically
from nasrlm.training.config import TrainConfig
from nasrlm.training.learned_objectives import check_names
from nasrlm.training.processes import is_first_process
from nasrlm.training.train import check_config
from spaces.registry import space_file
from spaces.space import SearchSpace
from studies.tables.files import objective_columns
from studies.tables.rows import (
    all_objectives,
    parse_row,
    read_rows,
    require_labels,
    space_of_row,
    splits_of,
    texts_of_tables,
    written_texts,
)

TEXTS = "texts.parquet"  # file in the run's folder, so that a resumed run need not convert again
KEY = b"rows_sha256"
ROWS_A_PIECE = 10_000  # rows hashed at a time; there may be millions
SPELLINGS = 5  # notations of one network that are used for calibration; before changing it, see docs/log.md, 2026-11-22


def training_examples(config: TrainConfig, progress: bool = False) -> Examples:
    """Return the rows of all tables of a run, for ``nasrlm.train``; converted texts are kept in ``config.out``.

    Args:
        config: names the tables and objectives.
        progress: show a bar on stderr while architectures are converted.

    Raises:
        ValueError: a table cannot be read or is incomplete, no table has an objective, or as for ``check_config``.
    """
    check_kind("training_examples", config, TrainConfig)
    if not config.table:
        raise ValueError("table: expected a config that names a table or several, got none.")
    tables = [_read(path, config.space, config.objectives) for path in config.table]
    frames = [table.rows for table in tables]
    require_labels(frames, config.table, config.objectives)
    objectives = config.objectives or all_objectives(frames, config.table)
    check_names("monitor", config.monitor, objectives)  # before texts are converted, which takes long
    check_names("objective_weights", tuple(config.objective_weights), objectives)
    return Examples.of_tables(frames, config.table, _texts(config, tables, progress), objectives)


def limit_notations(frame: pd.DataFrame, path: Path, objectives: Sequence[str]) -> pd.DataFrame:
    """Return the rows of a table with at most SPELLINGS valid rows per network and label.

    Intervals are calibrated on valid rows, where a network with a hundred notations would count a hundred times. A
    valid row is left out if for each of its labels there are SPELLINGS earlier rows of the network. Rows with texts
    are of one network if their texts are equal.

    Raises:
        ValueError: a row without text is malformed; the message names file and row.
    """
    if not {"space", "architecture", "split"} <= set(frame.columns):
        return frame
    texts = written_texts(frame)
    valid = frame[(frame["split"] == "valid") & (frame["space"].notna() | frame.index.isin(list(texts)))]
    spaces: dict[str, SearchSpace[Any]] = {}
    keys: list[str] = []
    for row, name, notation in zip(valid.index, valid["space"], valid["architecture"], strict=True):
        if row not in texts and name not in spaces:
            spaces[name] = space_of_row(str(name), path, row)
        if (key := texts.get(row)) is None:
            key = f"{name} {spaces[name].architecture_key(parse_row(spaces[name], notation, path, row))}"
        keys.append(key)
    labelled = valid[[name for name in objectives if name in valid]].notna()
    before = labelled.groupby(keys, sort=False).cumsum()
    needed = (labelled & (before <= SPELLINGS)).any(axis=1) | ~labelled.any(axis=1)
    return frame.drop(index=valid.index[~needed])


class _Table(NamedTuple):
    """A table whose texts are kept apart from its rows; texts of a million rows take gigabytes."""

    rows: pd.DataFrame
    texts: Mapping[Hashable, str]  # by index of the rows that have one

    def spelled(self) -> pd.DataFrame:
        """Return the rows without a text, which have to be converted."""
        return self.rows[~self.rows.index.isin(list(self.texts))]


def _read(path: Path, space: str | None, objectives: Sequence[str]) -> _Table:
    frame = read_rows(path, space)
    splits_of(frame, path)  # raises an error that names the table
    frame = limit_notations(frame, path, objectives or objective_columns(frame, path))
    return _Table(frame.drop(columns="text", errors="ignore"), written_texts(frame))


def _texts(config: TrainConfig, tables: Sequence[_Table], progress: bool) -> list[str]:
    """Return the texts of all rows: those in the tables, and the others converted."""
    spelled = [table.spelled() for table in tables]
    converted = iter(_converted(config, spelled, progress) if any(map(len, spelled)) else ())
    return [table.texts[row] if row in table.texts else next(converted) for table in tables for row in table.rows.index]


def _converted(config: TrainConfig, frames: Sequence[pd.DataFrame], progress: bool) -> list[str]:
    path, key = config.out / TEXTS, _digest(config, frames)
    if config.resume and path.is_file() and (texts := _read_texts(path, key)) is not None:
        return texts
    check_config(config)
    texts = texts_of_tables(frames, config.table, measured=config.text == "measured", progress=progress)
    if is_first_process():
        stored, buffer = pa.table({"text": texts}).replace_schema_metadata({KEY: key}), io.BytesIO()
        pq.write_table(stored, buffer, compression="zstd")
        write_atomically(path, buffer.getvalue())
    return texts


def _read_texts(path: Path, key: str) -> list[str] | None:
    """Return the texts stored for these rows; None if they are of other rows or cannot be read."""
    try:
        stored = pq.read_table(path)
    except (OSError, pa.ArrowInvalid):
        return None
    if (stored.schema.metadata or {}).get(KEY) != key.encode():
        return None
    texts: list[str] = stored["text"].to_pylist()
    return texts


def _digest(config: TrainConfig, frames: Sequence[pd.DataFrame]) -> str:
    digest = hashlib.sha256(f"{code_digest()} {config.text}".encode())
    for frame in frames:
        for space in frame["space"].dropna().unique() if "space" in frame else ():
            file = space_file(str(space))
            if file is not None and file.is_file():  # texts depend on the file of a user's own space
                digest.update(file.read_bytes())
        for name in ("space", "architecture"):
            if name in frame:
                digest.update(name.encode())
                for start in range(0, len(frame), ROWS_A_PIECE):
                    digest.update(frame[[name]].iloc[start : start + ROWS_A_PIECE].to_json(orient="values").encode())
    return digest.hexdigest()
