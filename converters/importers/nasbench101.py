"""Importer of NAS-Bench-101's .tfrecord: 423,624 modules, three runs each, for 108 or for 4, 12, 36 and 108 epochs.

Source:
    google-research/nasbench, nasbench/api.py: a record is a JSON list of module hash, epochs, adjacency (digits row by
    row), operations (joined by commas) and a ModelMetrics message in base64; fields of ModelMetrics and EvaluationData
    in nasbench/lib/model_metrics.proto. Of its three evaluations the last is the end of training.
"""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from converters.importers.protobuf import read_fields
from converters.importers.reading import mean, reading
from converters.importers.table import to_table
from converters.importers.tfrecord import read_records
from spaces.nasbench101 import NASBench101

EVALUATION_DATA, TRAINABLE_PARAMETERS = 1, 2  # fields of ModelMetrics
TRAINING_TIME, VALIDATION_ACCURACY, TEST_ACCURACY = 2, 4, 5  # fields of EvaluationData
NUM_EVALUATIONS = 3  # before training, halfway, at the end
FULL, SHORT = 108, 12  # numbers of epochs for which there are labels


@dataclass(slots=True)
class ModuleRuns:
    """One module and its runs, in the order of the file.

    Attributes:
        runs: for each number of epochs, the last EvaluationData of every run, as a dictionary by field number.
    """

    adjacency: str
    operations: list[str]
    params: int
    runs: dict[int, list[dict[int, float]]] = field(default_factory=lambda: {FULL: [], SHORT: []})


def read(path: Path, *, progress: bool = False) -> pd.DataFrame:
    """Return the table of nasbench_only108.tfrecord or nasbench_full.tfrecord, after checking all checksums.

    ``accuracy@cifar10`` and ``valid_accuracy_mean@cifar10`` are the means over the runs for 108 epochs. As in the
    published tables, ``valid_accuracy@cifar10``, ``train_time_s@tpuv2`` and, for 12 epochs (full file only),
    ``valid_accuracy_12ep@cifar10`` are those of the first run.

    Raises:
        BenchmarkFileError: the file is truncated, damaged or of another kind; the message has the record, counted
            from 0.
    """
    modules: dict[str, ModuleRuns] = {}
    for index, record in enumerate(read_records(path, progress=progress)):
        with reading(f"{path}, record {index}", "a run of NAS-Bench-101"):
            _add_run(modules, record)
    rows = []
    for key, module in tqdm(modules.items(), desc="nasbench101", unit="module", disable=not progress):
        with reading(f"{path}, module {key}", "a module of NAS-Bench-101"):
            rows.append(_row(key, module))
    return to_table(NASBench101.name, rows, path)


def _add_run(modules: dict[str, ModuleRuns], record: bytes) -> None:
    key, epochs, adjacency, operations, metrics = json.loads(record)
    if epochs not in (FULL, SHORT):
        return
    params, final = _read_metrics(base64.b64decode(metrics, validate=False))
    if key not in modules:
        modules[key] = ModuleRuns(adjacency, operations.split(","), params)
    modules[key].runs[epochs].append(final)


def _read_metrics(message: bytes) -> tuple[int, dict[int, float]]:
    """Return the number of parameters and the fields of the last evaluation."""
    fields = list(read_fields(message))
    evaluations = [value for number, value in fields if number == EVALUATION_DATA and isinstance(value, bytes)]
    if len(evaluations) != NUM_EVALUATIONS:
        raise ValueError(f"{len(evaluations)} evaluations instead of {NUM_EVALUATIONS}")
    final = {number: value for number, value in read_fields(evaluations[-1]) if isinstance(value, float)}
    return int(dict(fields)[TRAINABLE_PARAMETERS]), final


def _row(key: str, module: ModuleRuns) -> dict[str, Any]:
    space = NASBench101()
    notation = json.dumps({"adjacency": module.adjacency, "operations": module.operations})
    full, short = module.runs[FULL], module.runs[SHORT]
    return {
        "architecture": space.format(space.parse(notation)),
        "module_hash": key,
        "params": module.params,
        "accuracy@cifar10": 100 * mean(run.get(TEST_ACCURACY) for run in full),
        "valid_accuracy@cifar10": 100 * _first(full, VALIDATION_ACCURACY),
        "valid_accuracy_mean@cifar10": 100 * mean(run.get(VALIDATION_ACCURACY) for run in full),
        "valid_accuracy_12ep@cifar10": 100 * _first(short, VALIDATION_ACCURACY),
        "train_time_s@tpuv2": _first(full, TRAINING_TIME),
    }


def _first(runs: list[dict[int, float]], number: int) -> float:
    return runs[0].get(number, math.nan) if runs else math.nan
