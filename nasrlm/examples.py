"""Examples: texts with labels, for training and evaluation.

N rows, M objectives.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nasrlm.arguments import checked_names, has_order
from nasrlm.arrays import FloatArray, to_floats
from nasrlm.named_spaces import TEXT_SPACE
from nasrlm.text.network import has_executed_blocks

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, eq=False)  # compared by identity, as arrays have no single answer
class Origins:
    """The file of each row and its number there, for messages.

    Attributes:
        files: (N,) names; "" for a row that was read from no file.
        rows: (N,) numbers in these files.
    """

    files: NDArray[np.object_]
    rows: NDArray[np.intp]

    @classmethod
    def of_tables(cls, frames: Sequence[pd.DataFrame], paths: Sequence[Path]) -> Origins:
        """Return the origins of the rows of several tables, concatenated; numbers are those of the frames' indices."""
        files = np.array(list(map(str, paths)), dtype=object)
        return cls(np.repeat(files, list(map(len, frames))), np.concatenate([frame.index for frame in frames]))

    def at(self, index: NDArray[np.intp]) -> Origins:
        """Select the origins at ``index``."""
        return Origins(self.files[index], self.rows[index])


@dataclass(frozen=True, eq=False)  # compared by identity, as arrays have no single answer
class Examples:
    """Labelled texts.

    Attributes:
        texts: N texts.
        objectives: M names.
        labels: (N, M), NaN where a row has no label.
        splits: (N,) "train", "valid" or "test".
        spaces: (N,) name of each row's space, for metrics by space.
        origins: of the N rows; None if they were read from no file.

    Raises:
        ValueError: arrays have other shapes or types, labels are infinite, objectives repeat, splits are unknown, or a
            text is empty.
    """

    texts: Sequence[str]
    objectives: tuple[str, ...]
    labels: FloatArray
    splits: NDArray[np.str_]
    spaces: NDArray[np.str_]
    origins: Origins | None = None

    def __repr__(self) -> str:
        sizes = f"{len(self.texts):,} texts x {len(self.objectives)} objectives"
        return f"Examples({sizes}; see texts, objectives, labels, splits, spaces)"

    @classmethod
    def of_table(
        cls, frame: pd.DataFrame, texts: Sequence[str], objectives: Sequence[str], origins: Origins | None = None
    ) -> Examples:
        """Make examples from the rows of a table and their texts.

        Rows without ``split`` are train rows, and rows without ``space`` are of TEXT_SPACE.

        Raises:
            ValueError: the table lacks an objective, a label is no number, or as for ``Examples``.
        """
        names = list(checked_names(objectives))
        if missing := [name for name in names if name not in frame]:
            raise ValueError(f"Examples: expected a column {', '.join(missing)}, got {', '.join(map(str, frame))}.")
        try:
            labels = to_floats(frame[names])
        except (TypeError, ValueError) as error:
            raise ValueError(f"Examples: expected numbers in {', '.join(names)}: {error}") from error
        splits = row_splits(frame).to_numpy(dtype=np.str_)
        spaces = np.asarray(row_spaces(frame), dtype=np.str_)
        return cls(list(texts), tuple(names), labels, splits, spaces, origins)

    @classmethod
    def of_tables(
        cls, frames: Sequence[pd.DataFrame], paths: Sequence[Path], texts: Sequence[str], objectives: Sequence[str]
    ) -> Examples:
        """Make examples from the rows of several tables, concatenated, and their texts, as ``of_table``."""
        return cls.of_table(pd.concat(frames, ignore_index=True), texts, objectives, Origins.of_tables(frames, paths))

    def __post_init__(self) -> None:
        for name, given in (("texts", self.texts), ("objectives", self.objectives)):
            if not has_order(given):
                raise ValueError(f"Examples: expected a list of {name}, got {given!r:.60}.")
        object.__setattr__(self, "texts", list(self.texts))  # a pandas Series would be indexed by its labels
        object.__setattr__(self, "objectives", tuple(self.objectives))
        if not all(isinstance(x, np.ndarray) for x in (self.labels, self.splits, self.spaces)) or self.labels.ndim != 2:
            raise ValueError("Examples: expected NumPy arrays: (N, M) labels, (N,) splits, (N,) spaces.")
        words = [*self.objectives, *([] if self.spaces.dtype.kind == "U" else self.spaces)]
        named = all(isinstance(word, str) for word in words)
        if self.labels.dtype.kind not in "fiu" or not named:
            raise ValueError(
                "Examples: expected numbers as labels and strings as objectives and spaces, "
                f"got {self.labels.dtype} and {self.spaces.dtype}."
            )
        N, M = self.labels.shape
        of_rows = (len(self.texts),) == self.splits.shape == self.spaces.shape == (N,)
        if not of_rows or len(self.objectives) != M:
            raise ValueError(
                f"Examples: expected N texts, (N, M) labels, N splits and spaces, got {len(self.texts)} texts, "
                f"labels {self.labels.shape}, splits {self.splits.shape}, spaces {self.spaces.shape}."
            )
        object.__setattr__(self, "labels", self.labels.astype(np.float64, copy=False))
        if np.isinf(self.labels).any():
            row, column = np.argwhere(np.isinf(self.labels))[0]
            raise ValueError(
                f"Examples: expected finite or missing labels, got {self.labels[row, column]} "
                f"in row {row}, {self.objectives[column]}."
            )
        if len(set(self.objectives)) < M:
            raise ValueError(f"Examples: expected different objectives, got {', '.join(self.objectives)}.")
        if (unknown := ~np.isin(self.splits, SPLITS)).any():
            row = int(unknown.argmax())
            split = str(self.splits[row])
            raise ValueError(f"Examples: expected splits {', '.join(SPLITS)}, got {split!r} in row {row}.")
        empty = [row for row, text in enumerate(self.texts) if not (isinstance(text, str) and text)]
        if empty:
            raise ValueError(f"Examples: expected text in every row, got {self.texts[empty[0]]!r} in row {empty[0]}.")

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def any_label(self) -> bool:
        """Whether at least one row has a label."""
        return bool(np.isfinite(self.labels).any())

    def split(self, name: str) -> Examples:
        """Return the rows of one split."""
        return self.rows(np.flatnonzero(self.splits == name))

    def rows(self, index: NDArray[np.intp]) -> Examples:
        """Return the rows at ``index``."""
        texts = [self.texts[row] for row in index]
        origins = self.origins or Origins(np.full(len(self), "", dtype=object), np.arange(len(self)))
        of_rows = self.labels[index], self.splits[index], self.spaces[index], origins.at(index)
        return Examples(texts, self.objectives, *of_rows)

    def number(self, row: int) -> int:
        """Return the number of a row in its file, or among the examples if origins are not known."""
        return row if self.origins is None else int(self.origins.rows[row])

    def file(self, row: int) -> str:
        """Return the name of the file from which a row was read; "" if there is none."""
        return "" if self.origins is None else str(self.origins.files[row])

    def place(self, row: int) -> str:
        """Return file and number of a row in words."""
        return ", ".join(filter(None, (self.file(row), f"row {self.number(row)}")))

    def labelled(self, objectives: Sequence[str]) -> Examples:
        """Return the rows with a label of any of these objectives, and only these objectives, in this order."""
        columns = [self.objectives.index(name) for name in objectives]
        kept = self.rows(np.flatnonzero(np.isfinite(self.labels[:, columns]).any(axis=1)))
        return replace(kept, objectives=tuple(objectives), labels=kept.labels[:, columns])

    def by_space(self) -> Iterator[tuple[str, Examples]]:
        """Yield the rows of every space, with the objectives that have a label in them."""
        for space in np.unique(self.spaces):
            part = self.rows(np.flatnonzero(self.spaces == space))
            columns = np.flatnonzero(np.isfinite(part.labels).any(axis=0))
            if labelled := [self.objectives[column] for column in columns]:
                yield str(space), part.labelled(labelled)

    def measured_spaces(self) -> tuple[str, ...]:
        """Return the spaces all of whose texts have executed blocks, see ``nasrlm.text.network``."""
        measured = np.fromiter(map(has_executed_blocks, self.texts), dtype=np.bool_, count=len(self.texts))
        return tuple(str(space) for space in np.unique(self.spaces) if measured[self.spaces == space].all())

    def digest(self) -> str:
        """Return a hash of texts, labels and splits, which identifies a checkpoint's training data."""
        digest = hashlib.sha256()
        for text, split in zip(self.texts, self.splits, strict=True):
            digest.update(f"{split}\n{text}\n".encode())
        digest.update(",".join(self.objectives).encode())
        digest.update(np.ascontiguousarray(self.labels).tobytes())
        return digest.hexdigest()


def row_splits(frame: pd.DataFrame) -> pd.Series[str]:
    """Return the split of every row; rows without ``split`` are train rows.

    Raises:
        ValueError: a split is none of SPLITS; the message names the row by the frame's index.
    """
    if "split" not in frame:
        return pd.Series("train", frame.index)
    splits = _filled(frame["split"], "train")
    if (unknown := ~splits.isin(SPLITS)).any():
        row, split = next(splits[unknown].items())
        raise ValueError(f"column split: expected {', '.join(SPLITS)} or an empty value, got {split!r} in row {row}.")
    return splits


def row_spaces(frame: pd.DataFrame) -> pd.Series[str]:
    """Return the space of every row; TEXT_SPACE for rows that name none."""
    return _filled(frame["space"], TEXT_SPACE) if "space" in frame else pd.Series(TEXT_SPACE, frame.index)


def _filled(words: pd.Series[str], default: str) -> pd.Series[str]:
    """Replace missing and empty words by a default."""
    return words.astype(object).replace("", None).fillna(default).astype(str)
