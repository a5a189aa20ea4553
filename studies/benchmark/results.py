"""Results of the benchmark in a file of JSON lines."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from nasrlm.json_lines import append_line, finished_lines
from studies.benchmark.protocol import Judge


@dataclass(frozen=True)
class Record:
    """The quality of one method on one task.

    Attributes:
        settings: hash of what else the result depends on: table, checkpoint, steps.
        seconds: time of the method, including features and texts if it was the first to need them.
    """

    protocol: str
    space: str
    objective: str
    method: str
    size: int
    seed: int
    settings: str
    kendall_tau: float
    spearman_rho: float
    test_rows: int
    seconds: float

    @property
    def identity(self) -> tuple[str | int, ...]:
        """A key that is equal for results of the same method on the same task with the same settings."""
        return (self.protocol, self.space, self.objective, self.method, self.size, self.seed, self.settings)


class Results:
    """The records of a file.

    Raises:
        ValueError: a complete line of the file is not a record.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records: dict[tuple[str | int, ...], Record] = {}
        for number, line in enumerate(finished_lines(path), start=1):
            record = _read(line, f"{path}, line {number}")
            self._records[record.identity] = record

    def __contains__(self, identity: tuple[str | int, ...]) -> bool:
        return identity in self._records

    def __getitem__(self, identity: tuple[str | int, ...]) -> Record:
        return self._records[identity]

    def add(self, record: Record) -> None:
        """Append a record to the file."""
        append_line(self._path, asdict(record))
        self._records[record.identity] = record


def summary(records: Iterable[Record], judge: Judge) -> list[dict[str, Any]]:
    """Return mean and standard deviation over seeds for each objective, size and method, best method first.

    Returns:
        Rows with space, objective, size, method, ``judge``, spread (NaN for one seed), seeds, test_rows and seconds.
    """
    groups: dict[tuple[str, str, int, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.space, record.objective, record.size, record.method), []).append(record)
    rows = []
    for group, members in groups.items():
        values = [getattr(record, judge) for record in members]
        measures = {
            judge: mean(values),
            "spread": stdev(values) if len(values) > 1 else math.nan,
            "seeds": len(members),
            "test_rows": members[0].test_rows,
            "seconds": round(mean(record.seconds for record in members), 1),
        }
        rows.append(dict(zip(("space", "objective", "size", "method"), group, strict=True)) | measures)
    return sorted(rows, key=lambda row: (row["space"], row["objective"], row["size"], -row[judge]))


def _read(line: bytes, place: str) -> Record:
    try:
        values = json.loads(line)
        return Record(**{field.name: values[field.name] for field in fields(Record)})
    except (ValueError, KeyError, TypeError) as e:
        raise ValueError(f"{place}: expected a result of `nasrlm benchmark`, got {line[:80]!r}. Move the file.") from e
