"""Importer of NAS-Bench-201's .pth: 15,625 cells, up to three seeds, on three data sets, 12 and 200 epochs.

Source:
    D-X-Y/NAS-Bench-201, the package nas-bench-201 (nas_201_api): a dictionary of ``meta_archs`` (notations by index)
    and ``arch2infos`` (index to {"less": 12 epochs, "full": 200 epochs}, each the state of an ArchResults).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from nas_201_api import ArchResults
from tqdm import tqdm

from converters.importers.pickles import read_torch
from converters.importers.reading import by_number, field, mean, reading
from converters.importers.table import to_table
from spaces.nasbench201 import DATASETS, NASBench201

# label: (epochs, training data, evaluation data)
LABELS = {
    "accuracy@cifar10": ("200", "cifar10", "ori-test"),
    "valid_accuracy@cifar10": ("200", "cifar10-valid", "x-valid"),
    "accuracy@cifar100": ("200", "cifar100", "x-test"),
    "valid_accuracy@cifar100": ("200", "cifar100", "x-valid"),
    "accuracy@imagenet16-120": ("200", "ImageNet16-120", "x-test"),
    "valid_accuracy@imagenet16-120": ("200", "ImageNet16-120", "x-valid"),
    "valid_accuracy_12ep@cifar10": ("12", "cifar10-valid", "x-valid"),
}
LATENCY = "latency_ms@gpu_256"  # on the benchmark's own GPU with batch 256 on CIFAR-10
CIFAR10_RUNS = ("cifar10-valid", "cifar10")
CLASSIFIER_BIAS = DATASETS["cifar10"][1]  # the benchmark adds the classifier's biases to the multiply-accumulates


def read(path: Path, *, progress: bool = False) -> pd.DataFrame:
    """Return the table of NAS-Bench-201-v1_0 or v1_1.

    Labels are the means over the seeds after the last epoch; see LABELS. ``params`` and ``macs`` are those of the
    CIFAR-10 network. Weights in the file, if any, are not read.

    Cost: at first the whole dictionary is in memory, about four times the size of the file.

    Raises:
        BenchmarkFileError: the file is damaged or of another kind, or it is a pickle with more than data.
    """
    contents = read_torch(path)
    notations = field(contents, "meta_archs", list, path)
    infos = field(contents, "arch2infos", dict, path)
    rows = []
    for index in tqdm(by_number(infos, path), desc="nasbench201", unit="cell", disable=not progress):
        with reading(f"{path}, architecture {index}", "results of 12 and 200 epochs"):
            info = infos.pop(index)  # free the memory of each result once it is read
            rows.append(to_row(index, notations[index], {"12": info["less"], "200": info["full"]}))
    return to_table(NASBench201.name, rows, path)


def to_row(index: int, notation: str, states: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the row of one architecture.

    Args:
        index: official number of the architecture.
        notation: official string of the architecture.
        states: state of an ArchResults by number of epochs, "12" and "200"; others are ignored.
    """
    space = NASBench201()
    results = {epochs: ArchResults.create_from_state_dict(dict(states[epochs])) for epochs in states}
    return {
        "architecture": space.format(space.parse(notation)),
        "index": int(index),
        **{name: _accuracy(results.get(epochs), *run) for name, (epochs, *run) in LABELS.items()},
        LATENCY: _latency(results),
        **_costs(results),
    }


def _trials(results: Any, run: str) -> list[Any]:
    return list(results.query(run).values()) if results is not None and run in results.dataset_seed else []


def _accuracy(results: Any, run: str, split: str) -> float:
    trials = _trials(results, run)
    return mean(trial.eval_acc1es.get(f"{split}@{trial.epochs - 1}") for trial in trials)


def _cifar10_trials(results: Mapping[str, Any]) -> list[Any]:
    return [trial for found in results.values() for run in CIFAR10_RUNS for trial in _trials(found, run)]


def _latency(results: Mapping[str, Any]) -> float:
    """Return the latency in milliseconds; the file has seconds, and -1 or nothing if not measured."""
    seconds = [trial.get_latency() for trial in _cifar10_trials(results)]
    return 1000 * mean(value for value in seconds if value > 0)


def _costs(results: Mapping[str, Any]) -> dict[str, float]:
    trials = _cifar10_trials(results)
    if not trials:
        return {"params": math.nan, "macs": math.nan}
    return {"params": round(trials[0].params * 1e6), "macs": round(trials[0].flop * 1e6) - CLASSIFIER_BIAS}
