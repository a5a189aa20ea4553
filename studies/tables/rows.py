"""Tables of architectures or texts with labels: their rows, their label columns, and the text of every row."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from converters.bulk import to_onnx_texts
from converters.tables.labels import numbers_of
from nasrlm.examples import row_splits
from spaces import ArchitectureError, get_space
from spaces.registry import same_spaces
from spaces.shown import shown
from spaces.space import Genotype, SearchSpace
from studies.tables.files import label_columns, objective_columns, read_table


def read_rows(
    path: Path, space: str | None, *, require: Sequence[str] = (), labels: Sequence[str] = ()
) -> pd.DataFrame:
    """Read the rows of a table that are of ``space``; their column ``space`` gets this spelling.

    All rows are returned if ``space`` is None or the table has no column ``space``.

    Raises:
        ValueError: the table is invalid, see ``read_table``, or has no row of the space.
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
    """Return the rows of a space, or all rows of a table without a column ``space``."""
    if "space" not in frame:
        return frame
    return frame[frame["space"].isin([space.name, *same_spaces(frame["space"].unique(), space.address)])]


def splits_of(frame: pd.DataFrame, path: Path) -> pd.Series[str]:
    """Return the split of every row; rows without one are for training.

    Raises:
        ValueError: a split is not train, valid or test; the message names file and row.
    """
    try:
        return row_splits(frame)
    except ValueError as e:
        raise ValueError(f"{path}: {e}") from e


def named(tables: Sequence[Path]) -> str:
    """Return the paths of tables in one string, for messages."""
    return ", ".join(map(str, tables))


def require_labels(frames: Sequence[pd.DataFrame], paths: Sequence[Path], names: Sequence[str]) -> None:
    """Check that each name is a label column of one of the tables, with numbers.

    Raises:
        ValueError: a name is not a label column of any table, or a label is not a number.
    """
    for frame, path in zip(frames, paths, strict=True):
        for name in names:
            if name in frame:
                numbers_of(frame[name], path)
    if missing := [name for name in names if not any(name in frame.select_dtypes("number") for frame in frames)]:
        known = ", ".join(dict.fromkeys(name for frame in frames for name in label_columns(frame)))
        got = f"labels {known}" if known else f"no labels, but columns {_columns(frames)}"
        rename = "" if known else " Rename those of labels to metric_unit@context."
        raise ValueError(f"{named(paths)}: expected a column {', '.join(missing)}, got {got}.{rename}")


def all_objectives(frames: Sequence[pd.DataFrame], paths: Sequence[Path]) -> tuple[str, ...]:
    """Return all objectives of these tables, in the order of their columns.

    Raises:
        ValueError: there is none, or a column name with @ is not an objective.
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
    """Return the space of all rows; "" if there are several spaces or none is named."""
    spaces = frame["space"].unique().tolist() if "space" in frame else []
    return str(spaces[0]) if len(spaces) == 1 and isinstance(spaces[0], str) else ""


def table_texts(frame: pd.DataFrame, path: Path, *, measured: bool = True, progress: bool = False) -> list[str]:
    """Return the text of each row: column ``text`` or, if empty, the architecture's measured or canonical text.

    Raises:
        ValueError: no space is named, or a row's notation is malformed; the message names file and row.
    """
    texts = written_texts(frame)
    for space, rows in rows_to_convert(frame, path):
        architectures = parsed_rows(space, rows, path)
        converted = to_onnx_texts(space, list(architectures), measured=measured, progress=progress)
        texts |= zip(rows.index, converted, strict=True)
    return [texts[row] for row in frame.index]


def rows_to_convert(frame: pd.DataFrame, path: Path) -> list[tuple[SearchSpace[Any], pd.DataFrame]]:
    """Return the rows without text, by space.

    Raises:
        ValueError: a row names no space or one that does not exist; the message names file and row.
    """
    spelled = frame[~frame.index.isin(list(written_texts(frame)))]
    if len(spelled) and "space" not in frame:
        raise ValueError(
            f"{path}: expected a column space, got none. Set it with --space, or the key space of a config."
        )
    found = []
    for name, rows in spelled.groupby("space", dropna=False) if len(spelled) else ():
        if pd.isna(name):
            raise ValueError(f"{path}: expected a space in every row without text, got none in row {rows.index[0]}.")
        found.append((space_of_row(str(name), path, rows.index[0]), rows))
    return found


def texts_of_tables(
    frames: Sequence[pd.DataFrame], paths: Sequence[Path], *, measured: bool = True, progress: bool = False
) -> list[str]:
    """Return the texts of the rows of several tables, one table after another; see ``table_texts``."""
    of_tables = zip(frames, paths, strict=True)
    return [text for each in of_tables for text in table_texts(*each, measured=measured, progress=progress)]


def written_texts(frame: pd.DataFrame) -> dict[Hashable, str]:
    """Return the non-empty cells of the column ``text``, by row index."""
    if "text" not in frame:
        return {}
    written = frame["text"][frame["text"].notna() & (frame["text"] != "")]
    return dict(zip(written.index, written, strict=True))


def spelled_notation(notation: object) -> str:
    """Return a notation as a string; a table made in Python may have a list where files have its JSON.

    Raises:
        ArchitectureError: it is something else, such as the architecture itself.
    """
    if isinstance(notation, str):
        return notation
    try:
        return json.dumps(notation, default=np.ndarray.tolist)
    except TypeError:
        raise ArchitectureError(
            f"notation: expected a string or list, got {shown(notation)}. Write architectures by the space's `format`."
        ) from None


def row_names(frame: pd.DataFrame) -> list[str]:
    """Return a name for each row: its notation, the file that it was read from, or else its text."""
    names, *others = (frame[name] for name in ("architecture", "file", "text") if name in frame)
    for other in others:
        names = names.where(names.notna() & (names != ""), other)
    return [str(name) for name in names]


def space_of_row(name: str, path: Path, row: Hashable) -> SearchSpace[Any]:
    """Return the space that a row names.

    Raises:
        ValueError: there is no such space; the message names file and row.
    """
    with _naming_row(path, row):
        return get_space(name)


def parse_row(space: SearchSpace[Any], notation: object, path: Path | str, row: Hashable) -> Any:
    """Return the architecture of a row; ``path`` is the table's file, or its name in messages.

    Raises:
        ValueError: the notation is malformed; the message names file and row.
    """
    with _naming_row(path, row):
        return space.parse(spelled_notation(notation))


def parsed_rows(space: SearchSpace[Any], frame: pd.DataFrame, path: Path | str) -> pd.Series[Any]:
    """Return the architectures of rows of one space.

    Raises:
        ValueError: as for ``parse_row``.
    """
    notations = frame["architecture"]
    parsed = [parse_row(space, notation, path, row) for row, notation in notations.items()]
    return pd.Series(parsed, notations.index, dtype=object)


def row_genotypes(space: SearchSpace[Any], architectures: pd.Series[Any], path: Path) -> list[Genotype]:
    """Return the genotypes of the architectures of a table's rows.

    Raises:
        ValueError: an architecture has a choice that the space lacks; the message names file and row.
    """
    genotypes = []
    for row, architecture in architectures.items():
        with _naming_row(path, row):
            genotypes.append(space.encode(architecture))
    return genotypes


@contextmanager
def _naming_row(path: Path | str, row: Hashable) -> Iterator[None]:
    try:
        yield
    except ValueError as e:
        raise ValueError(f"{path}, row {row}: {e}") from e
