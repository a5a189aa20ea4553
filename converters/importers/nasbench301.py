"""Importer of NAS-Bench-301's training results: one results_*.json for every DARTS network.

Source:
    automl/nasbench301, surrogate_models/utils.py (ConfigLoader: ``optimized_hyperparamater_config``,
    ``info[0].val_accuracy``, ``test_accuracy``, ``runtime``) and the record in its tests, results_0.json.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from converters.importers.reading import BenchmarkFileError, field, reading
from converters.importers.table import to_table
from spaces.darts import DARTS

NAME = re.compile(r"(?:.*/)?results_\d+\.json")
CONFIG = "optimized_hyperparamater_config"  # misspelled so in the files
EPOCHS = "SimpleLearningrateSchedulerSelector:cosine_annealing:T_max"
STANDARD_EPOCHS = 100


def read(path: Path, *, progress: bool = False) -> pd.DataFrame:
    """Return the table of a folder of results with all subfolders, of its zip file, or of a single result.

    ``accuracy@cifar10`` and ``valid_accuracy@cifar10`` are test and validation accuracy after the published 100
    epochs. Results for other numbers of epochs have columns of their own, such as ``accuracy_50ep@cifar10``.
    ``params_with_aux`` includes the auxiliary head, which our networks do not have.

    Raises:
        BenchmarkFileError: there are no results, or one is damaged or of another kind; the message names it.
    """
    rows = []
    for name, text in tqdm(_results(path), desc="nasbench301", unit="network", disable=not progress):
        with reading(name, "a result of NAS-Bench-301"):
            rows.append(_row(json.loads(text), name))
    return to_table(DARTS.name, rows, path)


def _results(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        for file in sorted(path.rglob("results_*.json")):
            yield str(file), file.read_bytes()
    elif path.suffix == ".zip":
        with reading(path, "a zip file of results"), zipfile.ZipFile(path) as archive:
            for member in sorted(filter(NAME.fullmatch, archive.namelist())):
                yield f"{path}, {member}", archive.read(member)
    else:
        yield str(path), path.read_bytes()


def _row(record: Any, place: str) -> dict[str, Any]:
    config, info = field(record, CONFIG, dict, place), field(record, "info", list, place)
    if not info:
        raise BenchmarkFileError(f"{place}: expected one entry in 'info', got none.")
    epochs = field(config, EPOCHS, int, place)
    kind = "" if epochs == STANDARD_EPOCHS else f"_{epochs}ep"
    space = DARTS()
    return {
        "architecture": space.format(space.parse(json.dumps(config))),
        f"accuracy{kind}@cifar10": record.get("test_accuracy", math.nan),
        f"valid_accuracy{kind}@cifar10": field(info[0], "val_accuracy", (float, int), place),
        f"train_time{kind}_s@nasbench301": record.get("runtime", math.nan),
        "params_with_aux": info[0].get("model_parameters", math.nan),
    }
