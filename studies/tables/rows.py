"""Tables of architectures or texts with labels: their rows, their label columns, and the text of every row."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from converters.bulk import to_onnx_texts
from converters.tables.labels import numbers_of
from nasrlm.examples import row_splits
from spaces import get_space
from spaces.registry import same_spaces
from spaces.space import Genotype, SearchSpace
from studies.tables.files import is_empty, label_columns, objective_columns, read_table


def read_rows(
    path: Path, space: str | None, *, require: Sequence[str] = (), labels: Sequence[str] = ()
) -> pd.DataFrame:
    """The rows of a table that are of ``space``, which their column ``space`` then holds as it is spelled here.

    All rows, where there is no ``space`` or the table names none.

    Raises:
        ValueError: the table is none, or has no row of the space.
    """
    frame = read_table(path, require=require, labels=labels)
    if space is None:
        return frame
    if "space" not in frame:
        return frame.assign(space=space)
    rows = frame[frame["space"].isin(same_spaces(frame["space"].unique(), space))]
    if rows.empty:
        got = ", ".join(map(str, frame["space"].unique())) or "none"
        raise ValueError(f"{path}: expected rows of space {space}, got {got}.")
    return rows.assign(space=space)


def rows_of_space(frame: pd.DataFrame, space: SearchSpace[Any]) -> pd.DataFrame:
    """The rows that name a space, or all of a table without a column ``space``."""
    if "space" not in frame:
        return frame
    return frame[frame["space"].isin([space.name, *same_spaces(frame["space"].unique(), space.address)])]


def splits_of(frame: pd.DataFrame, path: Path) -> pd.Series[str]:
    """The split of every row; rows that name none are for training.

    Raises:
        ValueError: a row is of another split than those of a table; the message names file and row.
    """
    try:
        return row_splits(frame)
    except ValueError as e:
        raise ValueError(f"{path}: {e}") from e


def named(tables: Sequence[Path]) -> str:
    """List the paths of tables in words, for messages."""
    return ", ".join(map(str, tables))


def require_labels(frames: Sequence[pd.DataFrame], paths: Sequence[Path], names: Sequence[str]) -> None:
    """Complain of names that are no label column of any of these tables, or that one of them has words under."""
    for frame, path in zip(frames, paths, strict=True):
        for name in names:
            if name in frame:
                numbers_of(frame[name], path)
    if missing := [name for name in names if not any(name in frame.select_dtypes("number") for frame in frames)]:
        known = dict.fromkeys(name for frame in frames for name in label_columns(frame))
        got = ", ".join(known) or "none"
        raise ValueError(f"{named(paths)}: expected a column {', '.join(missing)}, got labels {got}.")


def all_objectives(frames: Sequence[pd.DataFrame], paths: Sequence[Path]) -> tuple[str, ...]:
    """Every objective that any of these tables has, in the order of their columns.

    Raises:
        ValueError: there is none, or a column name with @ is no objective.
    """
    of_tables = map(objective_columns, frames, paths)
    names = tuple(dict.fromkeys(name for of_table in of_tables for name in of_table))
    if not names:
        got = _columns(frames)
        raise ValueError(f"{named(paths)}: expected label columns named metric_unit@context, got columns {got}.")
    return names


def _columns(frames: Sequence[pd.DataFrame]) -> str:
    return ", ".join(dict.fromkeys(str(name) for frame in frames for name in frame)) or "none"


def only_space(frame: pd.DataFrame) -> str:
    """The space of all rows; empty if they are of several, or of none that is named."""
    spaces = frame["space"].unique().tolist() if "space" in frame else []
    return str(spaces[0]) if len(spaces) == 1 and isinstance(spaces[0], str) else ""


def table_texts(frame: pd.DataFrame, path: Path, *, measured: bool = True, progress: bool = False) -> list[str]:
    """The column ``text``; where it is empty, the texts of ``space`` and ``architecture``, as measured or canonical.

    Raises:
        ValueError: no space is named, or a row's notation is malformed; the message names file and row.
    """
    texts = written_texts(frame)
    spelled = frame[~frame.index.isin(list(texts))]
    if len(spelled) and "space" not in frame:
        raise ValueError(f"{path}: expected a column space, got none. Name it: --space, or the key space of a config.")
    for name, rows in spelled.groupby("space", dropna=False) if len(spelled) else ():
        if pd.isna(name):
            raise ValueError(f"{path}: expected a space in every row without text, got none in row {rows.index[0]}.")
        space = space_of_row(str(name), path, rows.index[0])
        architectures = parsed_rows(space, rows, path)
        converted = to_onnx_texts(space, list(architectures), measured=measured, progress=progress)
        texts |= zip(rows.index, converted, strict=True)
    return [texts[row] for row in frame.index]


def texts_of_tables(
    frames: Sequence[pd.DataFrame], paths: Sequence[Path], *, measured: bool = True, progress: bool = False
) -> list[str]:
    """Texts of the rows of several tables, one table after another; see ``table_texts``."""
    of_tables = zip(frames, paths, strict=True)
    return [text for each in of_tables for text in table_texts(*each, measured=measured, progress=progress)]


def written_texts(frame: pd.DataFrame) -> dict[Hashable, str]:
    """By row, the column ``text`` where it is not empty."""
    if "text" not in frame:
        return {}
    written = frame["text"][frame["text"].notna() & (frame["text"] != "")]
    return dict(zip(written.index, written, strict=True))


def spelled_notation(notation: object) -> str:
    """A notation as its space reads it: a table made in Python may hold the list itself that files hold as words."""
    return notation if isinstance(notation, str) else json.dumps(notation, default=np.ndarray.tolist)


def row_names(frame: pd.DataFrame) -> list[str]:
    """What each row is called: its notation, or else its text."""
    columns = [frame[name] for name in ("architecture", "text") if name in frame]
    return [next(word for word in words if not is_empty(word)) for words in zip(*columns, strict=True)]


def space_of_row(name: str, path: Path, row: Hashable) -> SearchSpace[Any]:
    """The space that a row names.

    Raises:
        ValueError: there is none; the message names file and row.
    """
    try:
        return get_space(name)
    except ValueError as e:
        raise ValueError(f"{path}, row {row}: {e}") from e


def parse_row(space: SearchSpace[Any], notation: object, path: Path | str, row: Hashable) -> Any:
    """The architecture of a row of a file, or of a table under another name.

    Raises:
        ValueError: the notation is malformed; the message names file and row.
    """
    try:
        return space.parse(spelled_notation(notation))
    except ValueError as e:
        raise ValueError(f"{path}, row {row}: {e}") from e


def parsed_rows(space: SearchSpace[Any], frame: pd.DataFrame, path: Path | str) -> pd.Series[Any]:
    """The architectures of rows of one space.

    Raises:
        ValueError: as ``parse_row`` does.
    """
    notations = frame["architecture"]
    parsed = [parse_row(space, notation, path, row) for row, notation in notations.items()]
    return pd.Series(parsed, notations.index, dtype=object)


def row_genotypes(space: SearchSpace[Any], architectures: pd.Series[Any], path: Path) -> list[Genotype]:
    """The choices of these architectures of a table's rows.

    Raises:
        ValueError: one has choices that are not among the space's; the message names file and row.
    """
    genotypes = []
    for row, architecture in architectures.items():
        try:
            genotypes.append(space.encode(architecture))
        except ValueError as e:
            raise ValueError(f"{path}, row {row}: {e}") from e
    return genotypes
