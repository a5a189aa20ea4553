"""The ledger: all predictions, prunings and evaluations of a guided search in order, and its Parquet file.

N architectures, M objectives, G genes.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from nasrlm.arrays import FloatArray
from spaces import SearchSpace
from studies.columns import ARCHITECTURE, DECIDED, SPACE
from studies.config import SearchConfig
from studies.constraints import feasible_mask
from studies.history import BOUNDS, CHOSEN, EVALUATED, PRUNED, History, damaged, write_frame

A = TypeVar("A", bound=Hashable)


@dataclass(frozen=True)
class Entry:
    """One architecture that a guided search has pruned, chosen or evaluated.

    Attributes:
        architecture: its notation.
        key: its architecture key.
        genotype: G integers.
        batch: the batch in which it was pruned or chosen, counted from 0.
        status: "pruned" by the gate, "chosen" to be evaluated, or "evaluated".
        stage: the gate's stage that pruned it; 0 if it was not pruned.
        reason: why it was pruned; "" if it was not.
        predicted: (M, 3) median, low and high in own units; NaN if not decoded.
        real: (M,) results in own units; NaN if there is none.
        feasible: whether its results may join the front; false if they break constraints of the user's own study.
    """

    architecture: str
    key: str
    genotype: tuple[int, ...]
    batch: int
    status: str
    stage: int
    reason: str
    predicted: FloatArray
    real: FloatArray
    feasible: bool = True

    @classmethod
    def of(
        cls,
        space: SearchSpace[A],
        architecture: A,
        num_objectives: int,
        *,
        key: str | None = None,
        batch: int = 0,
        status: str = CHOSEN,
        stage: int = 0,
        reason: str = "",
        predicted: FloatArray | None = None,
        real: FloatArray | None = None,
        feasible: bool = True,
    ) -> "Entry":
        """Create the entry of an architecture; the key is computed, and predictions and results are NaN, by default."""
        return cls(
            architecture=space.format(architecture),
            key=space.architecture_key(architecture) if key is None else key,
            genotype=tuple(space.encode(architecture)),
            batch=batch,
            status=status,
            stage=stage,
            reason=reason,
            predicted=np.full((num_objectives, len(BOUNDS)), np.nan) if predicted is None else predicted,
            real=np.full(num_objectives, np.nan) if real is None else real,
            feasible=feasible,
        )


class Ledger:
    """The entries of a guided search, one per architecture key, in the order in which they were pruned or chosen."""

    def __init__(self, config: SearchConfig, entries: Iterable[Entry] = ()) -> None:
        self.config = config
        entries = tuple(entries)
        self._entries = {entry.key: entry for entry in entries}
        assert len(self._entries) == len(entries), "expected one entry a key"

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, in order."""
        return tuple(self._entries.values())

    @property
    def evaluated(self) -> tuple[Entry, ...]:
        """The evaluated entries, in order; some may have no result."""
        return tuple(entry for entry in self.entries if entry.status == EVALUATED)

    @property
    def tried(self) -> tuple[Entry, ...]:
        """The entries that are evaluated or chosen to be, by any process."""
        return tuple(entry for entry in self.entries if entry.status != PRUNED)

    @property
    def answered(self) -> tuple[Entry, ...]:
        """The evaluated entries with a result for at least one objective."""
        return tuple(entry for entry in self.evaluated if not np.isnan(entry.real).all())

    @property
    def chosen(self) -> tuple[Entry, ...]:
        """The entries still to be evaluated, in order."""
        return tuple(entry for entry in self.entries if entry.status == CHOSEN)

    @property
    def next_batch(self) -> int:
        """The index of the next batch."""
        return max((entry.batch for entry in self.entries), default=-1) + 1

    @property
    def barren_batches(self) -> int:
        """The number of batches since the last one with something to evaluate."""
        chosen = (entry.batch for entry in self.entries if entry.status != PRUNED)
        return self.next_batch - 1 - max(chosen, default=-1)

    @property
    def results(self) -> FloatArray:
        """The (N, M) real results of the evaluated entries, in own units."""
        return self._stacked([entry.real for entry in self.evaluated])

    def add(self, entries: Iterable[Entry]) -> None:
        """Append the entries of a batch; a chosen architecture may have been pruned before."""
        for entry in entries:
            earlier = self._entries.pop(entry.key, None)
            assert earlier is None or earlier.status == PRUNED, f"{entry.key} is {entry.status} already"
            self._entries[entry.key] = entry

    def record(self, key: str, real: FloatArray) -> None:
        """Set the (M,) real results of a chosen architecture."""
        entry = self._entries[key]
        assert entry.status == CHOSEN, f"{key} is {entry.status}"
        self._entries[key] = replace(entry, status=EVALUATED, real=real)

    def labels(self, count: int) -> pd.DataFrame:
        """Return the first ``count`` answered entries as a table: space, architecture, and a column per objective."""
        first = self.answered[:count]
        names = {SPACE: self.config.space, ARCHITECTURE: [entry.architecture for entry in first]}
        values = self._stacked([entry.real for entry in first])
        return pd.DataFrame(names | dict(zip(self.config.objectives, values.T, strict=True)))

    def history(self) -> History:
        """Return the history that every kind of study has, with real results; NaN for entries not evaluated."""
        config, entries = self.config, self.entries
        real = self._stacked([entry.real for entry in entries])
        return History(
            config.objectives,
            [entry.architecture for entry in entries],
            [entry.key for entry in entries],
            [entry.genotype for entry in entries],
            list(np.repeat(real[:, :, None], len(BOUNDS), axis=2)),
            feasible_mask(config.objectives, config.constraints, real).tolist(),
            evaluated=[entry.status == EVALUATED for entry in entries],
        )

    def save(self, path: Path) -> None:
        """Write history.parquet atomically: the columns of ``History``, then decisions and predictions."""
        decided = {name: [getattr(entry, name) for entry in self.entries] for name in DECIDED}
        frame = self.history().to_frame().assign(**decided)
        names = _predicted_columns(self.config)
        predicted = np.array([entry.predicted for entry in self.entries]).reshape(len(frame), len(names))
        write_frame(pd.concat([frame, pd.DataFrame(predicted, columns=names)], axis=1), path, interval=None)

    @classmethod
    def load(cls, path: Path, config: SearchConfig) -> "Ledger":
        """Read what ``save`` wrote.

        Raises:
            StudyError: the file is truncated, not a Parquet file, or lacks columns.
        """
        history = History.load(path, config.objectives)
        try:
            frame = pd.read_parquet(path, columns=[*DECIDED, *_predicted_columns(config)])
        except (pa.ArrowException, KeyError, ValueError) as error:
            raise damaged(path, "a guided search", error) from error
        predicted = frame[_predicted_columns(config)].to_numpy(dtype=np.float64)
        decided = [frame[name].tolist() for name in DECIDED]
        entries = [
            Entry(
                architecture=history.architectures[row],
                key=history.keys[row],
                genotype=history.genotypes[row],
                batch=batch,
                status=status,
                stage=stage,
                reason=reason,
                predicted=predicted[row].reshape(len(config.objectives), len(BOUNDS)),
                real=history.values[row][:, 0],
            )
            for row, (status, batch, stage, reason) in enumerate(zip(*decided, strict=True))
        ]
        return cls(config, entries)

    def _stacked(self, rows: list[FloatArray]) -> FloatArray:
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.config.objectives))


def _predicted_columns(config: SearchConfig) -> list[str]:
    """Return the names of the columns of predictions: median, low and high of every objective."""
    return [f"{name} predicted{bound}" for name in config.objectives for bound in BOUNDS]
