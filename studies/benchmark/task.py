"""Tasks, which are draws of labelled rows, and tables with the features, genotypes and texts of their rows.

N test rows of a task, n train rows, G genes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from converters.bulk import to_onnx_texts
from converters.tables.labels import numbers_of
from nasrlm.arrays import FloatArray
from nasrlm.files import file_digest
from spaces import get_space
from spaces.drawing import sample_like
from studies.benchmark.protocol import Protocol, Target
from studies.surrogates.features import Features, feature_groups, features_of
from studies.tables.files import read_table
from studies.tables.rows import parsed_rows, row_genotypes, rows_of_space

K = TypeVar("K")
V = TypeVar("V")
Rows = NDArray[np.intp]


class SpaceTable:
    """The rows of one published table; features and texts of a row are computed when needed, and cached.

    Raises:
        ValueError: the table cannot be read.
    """

    def __init__(self, path: Path, space: str) -> None:
        self.path, self.space = path, get_space(space)
        self.frame = rows_of_space(read_table(path), self.space)
        if self.frame.empty or "split" not in self.frame or "architecture" not in self.frame:
            raise ValueError(f"{path}: expected architectures of space {space} with a column split, got none.")
        self._features: dict[int, Features] = {}
        self._texts: dict[tuple[bool, int], str] = {}

    @cached_property
    def digest(self) -> str:
        """The hash of the file."""
        return file_digest(self.path)

    @cached_property
    def architectures(self) -> list[Any]:
        """The architectures of all rows."""
        return list(parsed_rows(self.space, self.frame, self.path))

    def labels(self, objective: str) -> FloatArray:
        """Return the (rows,) labels of an objective; NaN if missing.

        Raises:
            ValueError: there is no such column, or a cell of it is no finite number.
        """
        if objective not in self.frame:
            raise ValueError(f"{self.path}: expected a column {objective}, got none.")
        numbers = numbers_of(self.frame[objective], self.path)
        return np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))

    def split(self, name: str, objective: str) -> Rows:
        """Return the rows of a split that have a label of the objective."""
        known = np.isfinite(self.labels(objective))
        return np.flatnonzero(known & (self.frame["split"] == name).to_numpy())

    def features(self, rows: Rows) -> list[Features]:
        """Return the features of the canonical graphs, see ``studies.surrogates.features``."""
        return _cached(self._features, rows.tolist(), lambda new: features_of(self.space, self._some(new)))

    def texts(self, rows: Rows, measured: bool) -> list[str]:
        """Return the measured or canonical ONNX texts of rows."""
        keys = [(measured, row) for row in rows.tolist()]
        return _cached(
            self._texts,
            keys,
            lambda new: to_onnx_texts(self.space, self._some([row for _, row in new]), measured=measured),
        )

    def genotypes(self, rows: Rows) -> NDArray[np.int64]:
        """Return the (rows, G) genotypes."""
        return np.array([self.space.encode(self.architectures[row]) for row in rows])

    def drawn_texts(self, rows: Rows, count: int, measured: bool) -> list[str]:
        """Return texts of architectures drawn with the frequencies of choices in these rows, always the same ones."""
        if count <= 0:
            return []
        given = pd.Series(self._some(rows.tolist()), self.frame.index[rows], dtype=object)
        sample = sample_like(self.space, row_genotypes(self.space, given, self.path))
        rng = np.random.default_rng(0)
        drawn = [sample(rng) for _ in range(count)]
        return to_onnx_texts(self.space, drawn, measured=measured)

    def _some(self, rows: Sequence[int]) -> list[Any]:
        return [self.architectures[row] for row in rows]


class Tables:
    """The tables in a folder, ``<space>.parquet`` for each space."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, SpaceTable] = {}

    def __getitem__(self, space: str) -> SpaceTable:
        if space not in self._open:
            self._open[space] = SpaceTable(self._folder / f"{space}.parquet", space)
        return self._open[space]


@dataclass(frozen=True)
class Task:
    """One draw of a protocol: labels of some train rows are given, and all test rows are to be ranked.

    Attributes:
        table: table of the target.
        target: the objective to rank by.
        train: (n,) rows whose labels are given.
        test: (N,) rows to score.
        seed: seed by which the train rows were drawn, also for random draws of a method.
        sources: tasks of other spaces, whose labels are given too.
    """

    table: SpaceTable
    target: Target
    train: Rows
    test: Rows
    seed: int
    sources: tuple[Task, ...] = ()

    @property
    def labels(self) -> FloatArray:
        """The (n,) labels of the train rows."""
        return self.table.labels(self.target.objective)[self.train]

    @property
    def truth(self) -> FloatArray:
        """The (N,) labels of the test rows, only to judge scores."""
        return self.table.labels(self.target.objective)[self.test]

    @property
    def rows(self) -> Rows:
        """The (n + N,) train rows, then the test rows."""
        return np.concatenate([self.train, self.test])

    @cached_property
    def groups(self) -> Sequence[FloatArray]:
        """The groups of features of ``rows``, see ``studies.surrogates.features.feature_groups``."""
        return feature_groups(self.table.features(self.rows))


def draw_task(protocol: Protocol, tables: Tables, target: Target, size: int, seed: int) -> Task:
    """Return the task of a target, a size and a seed; the labels of a smaller size are among those of a larger one.

    Raises:
        ValueError: the train split has too few labels, or the test split none.
    """
    table = tables[target.space]
    candidates, test = table.split("train", target.objective), table.split("test", target.objective)
    if size > len(candidates) or len(test) < 2:
        raise ValueError(
            f"{table.path}: expected {size} train rows and 2 test rows with {target.objective}, "
            f"got {len(candidates)} and {len(test)}. Choose --sizes."
        )
    others = [source for source in protocol.sources if source.space != target.space]
    each = protocol.source_labels // max(len(others), 1)
    sources = tuple(_draw_source(tables[source.space], source, each, seed) for source in others)
    return Task(table, target, _drawn(candidates, size, seed), test, seed, sources)


def _draw_source(table: SpaceTable, source: Target, size: int, seed: int) -> Task:
    candidates = table.split("train", source.objective)
    return Task(table, source, _drawn(candidates, size, seed), np.arange(0), seed)


def _drawn(candidates: Rows, size: int, seed: int) -> Rows:
    return np.random.default_rng(seed).permutation(candidates)[:size]


def _cached(known: dict[K, V], keys: Sequence[K], compute: Callable[[list[K]], Sequence[V]]) -> list[V]:
    new = [key for key in dict.fromkeys(keys) if key not in known]
    known.update(zip(new, compute(new) if new else (), strict=True))
    return [known[key] for key in keys]
