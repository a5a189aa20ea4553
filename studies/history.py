"""The history: everything that a search has evaluated, in order, and its Parquet file.

N architectures, M objectives, G genes.
"""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from nasrlm.arrays import BoolArray, FloatArray, complete_mask
from nasrlm.files import write_atomically
from nasrlm.prediction import Prediction
from studies.columns import ARCHITECTURE, FEASIBLE, GENOTYPE, KEY, ORDER
from studies.folder import StudyError

BOUNDS = ("", " low", " high")  # column suffixes of an objective: median, lowest and highest quantile
PRUNED, CHOSEN, EVALUATED = "pruned", "chosen", "evaluated"  # statuses of a guided search's rows
_INTERVAL = b"nasrlm.interval"  # key in the file's metadata


@dataclass
class History:
    """Evaluated architectures, one per key, in the order of evaluation.

    Attributes:
        objectives: M names.
        architectures: N notations.
        keys: N architecture keys.
        genotypes: N tuples of G integers.
        values: N arrays (M, 3): median, low and high in own units; NaN if there is no result.
        feasible: N flags: whether every objective is known and every constraint met.
        interval: the probability between low and high, such as 0.8; None if only medians are known.
        evaluated: N flags: false for rows of a guided search that were only predicted; true for real evaluations, even
            without a result.
    """

    objectives: tuple[str, ...]
    architectures: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    genotypes: list[tuple[int, ...]] = field(default_factory=list)
    values: list[FloatArray] = field(default_factory=list)
    feasible: list[bool] = field(default_factory=list)
    interval: float | None = None
    evaluated: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.evaluated = self.evaluated or [True] * len(self.keys)
        self._row_of_key = {key: row for row, key in enumerate(self.keys)}

    def __len__(self) -> int:
        return len(self.keys)

    def row_of(self, key: str) -> int | None:
        """Return the row of an architecture key, or None if it is not in the history."""
        return self._row_of_key.get(key)

    def append(
        self, *, architecture: str, key: str, genotype: tuple[int, ...], values: FloatArray, feasible: bool
    ) -> None:
        """Add one architecture with a new key and its (M, 3) values."""
        assert key not in self._row_of_key, f"{key} is evaluated already"
        self._row_of_key[key] = len(self.keys)
        self.architectures.append(architecture)
        self.keys.append(key)
        self.genotypes.append(genotype)
        self.values.append(values)
        self.feasible.append(feasible)
        self.evaluated.append(True)

    def stacked(self) -> FloatArray:
        """Return the (N, M, 3) values."""
        return np.array(self.values, dtype=np.float64).reshape(len(self), len(self.objectives), 3)

    def medians(self) -> FloatArray:
        """Return the (N, M) medians, or real results."""
        return self.stacked()[:, :, 0]

    def complete(self) -> BoolArray:
        """Return (N,) flags of the rows whose medians are all known."""
        return complete_mask(self.medians())

    def evaluations(self) -> FloatArray:
        """Return the (N,) numbers of evaluations up to and including each row, with or without a result."""
        return np.cumsum(self.evaluated, dtype=np.float64)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with columns order, architecture, key, genotype, three per objective, and feasible."""
        values = self.stacked()
        numbers = {
            name + bound: values[:, column, index]
            for column, name in enumerate(self.objectives)
            for index, bound in enumerate(BOUNDS)
        }
        return pd.DataFrame(
            {
                ORDER: np.arange(len(self), dtype=np.int64),
                ARCHITECTURE: self.architectures,
                KEY: self.keys,
                GENOTYPE: [list(genotype) for genotype in self.genotypes],
                **numbers,
                FEASIBLE: np.array(self.feasible, dtype=np.bool_),
            }
        )

    def save(self, path: Path) -> None:
        """Write the whole history atomically; takes about 10 ms for 5,000 rows."""
        write_frame(self.to_frame(), path, interval=self.interval)

    @classmethod
    def load(cls, path: Path, objectives: Sequence[str]) -> "History":
        """Read what ``save`` wrote.

        Raises:
            StudyError: the file is missing, truncated, not a Parquet file, or lacks columns.
        """
        if not path.exists():
            raise StudyError(f"{path}: expected the history of a study, got no such file. Resume the search first.")
        names = [name + bound for name in objectives for bound in BOUNDS]
        try:
            table = pq.read_table(path)
            frame = table.to_pandas()
            values = frame[names].to_numpy(dtype=np.float64).reshape(len(frame), len(objectives), 3)
            return cls(
                tuple(objectives),
                [str(text) for text in frame[ARCHITECTURE]],
                [str(key) for key in frame[KEY]],
                [tuple(int(gene) for gene in genotype) for genotype in frame[GENOTYPE]],
                list(values),
                [bool(flag) for flag in frame[FEASIBLE]],
                json.loads(table.schema.metadata[_INTERVAL]),
                [status == EVALUATED for status in frame["status"]] if "status" in frame else [],
            )
        except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
            raise damaged(path, f"a study with {', '.join(objectives)}", error) from error


def damaged(path: Path, of: str, error: Exception) -> StudyError:
    """Return the error of a history of a study that cannot be read."""
    reason = " ".join(str(error).split())[:200]
    return StudyError(
        f"{path}: expected the history of {of}, got {reason}. Restore the file, or remove it to evaluate everything "
        "again."
    )


def write_frame(frame: pd.DataFrame, path: Path, *, interval: float | None) -> None:
    """Write the rows of a history atomically."""
    buffer = io.BytesIO()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    metadata = {**(table.schema.metadata or {}), _INTERVAL: json.dumps(interval).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), buffer)
    write_atomically(path, buffer.getvalue())


def predicted_objectives(table: pd.DataFrame, objectives: Sequence[str]) -> list[str]:
    """Return those objectives that a table gives as predictions: with intervals, as histories, or other quantiles."""

    def is_predicted(name: str) -> bool:
        if {name + bound for bound in BOUNDS} <= {*table.columns}:
            return bool((table[f"{name} low"] < table[f"{name} high"]).any())
        return any(str(column).startswith(f"{name}.q") for column in table.columns)  # of nasrlm.prediction.columns_of

    return [name for name in objectives if is_predicted(name)]


def median_first(quantiles: FloatArray) -> FloatArray:
    """Reorder (..., 3) low, median, high to the order of ``BOUNDS``."""
    return quantiles[..., [1, 0, 2]]


def ascending(bounds: FloatArray) -> FloatArray:
    """Reorder (..., 3) from the order of ``BOUNDS`` to low, median, high."""
    return bounds[..., [1, 0, 2]]


def to_bounds(evaluation: Prediction, objectives: Sequence[str]) -> FloatArray:
    """Convert an evaluation to the values of a history.

    Returns:
        (N, M, 3): median, low and high of each of the M objectives.

    Raises:
        ValueError: the evaluator left an objective out, or gave an infinite number.
    """
    missing = [name for name in objectives if name not in evaluation.objectives]
    if missing:
        raise ValueError(
            f"evaluator: expected {', '.join(objectives)}, got no {', '.join(missing)}. It returns "
            f"{', '.join(evaluation.objectives)}."
        )
    columns = [evaluation.objectives.index(name) for name in objectives]
    medians = evaluation.median[:, columns]
    if np.isinf(medians).any():
        row, column = np.argwhere(np.isinf(medians))[0]
        raise ValueError(
            f"evaluator: expected a finite number for {objectives[column]}, got {medians[row, column]}. Return NaN "
            "where there is no result."
        )
    return np.stack([evaluation.median, evaluation.low, evaluation.high], axis=2)[:, columns]
