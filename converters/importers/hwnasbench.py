"""Importer of the NAS-Bench-201 part of HW-NAS-Bench's pickle: latency and energy on six devices.

Source:
    GATECH-EIC/HW-NAS-Bench, hw_nas_bench_api/hw_nas_bench_api.py:
    ``contents["nasbench201"][data set][metric][index]`` with NAS-Bench-201's indices, and under "config" the networks;
    units (ms, mJ) in its README.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from converters.importers.pickles import read_pickle
from converters.importers.reading import BenchmarkFileError, field, positive, reading
from converters.importers.table import to_table
from spaces.nasbench201 import NASBench201

METRICS = {
    "edgegpu_latency": "latency_ms@edgegpu",
    "raspi4_latency": "latency_ms@raspi4",
    "edgetpu_latency": "latency_ms@edgetpu",
    "pixel3_latency": "latency_ms@pixel3",
    "eyeriss_latency": "latency_ms@eyeriss",
    "fpga_latency": "latency_ms@fpga",
    "edgegpu_energy": "energy_mj@edgegpu",
    "eyeriss_energy": "energy_mj@eyeriss",
    "fpga_energy": "energy_mj@fpga",
    "eyeriss_arithmetic_intensity": "arithmetic_intensity@eyeriss",
}
DATASETS = {"cifar10": "", "cifar100": "_cifar100", "ImageNet16-120": "_imagenet16-120"}  # data set: label suffix


def read(path: Path, *, progress: bool = False) -> pd.DataFrame:
    """Return the table of all cells: ``latency_ms@pixel3`` on CIFAR-10, ``latency_ms@pixel3_cifar100`` and so on.

    Values that are not positive count as not measured: NaN.

    Raises:
        BenchmarkFileError: the file is damaged or of another kind, or it is a pickle with more than data.
    """
    contents = field(read_pickle(path), NASBench201.name, dict, path)
    known = [dataset for dataset in DATASETS if dataset in contents]
    if not known:
        got = sorted(map(str, contents))[:8]
        raise BenchmarkFileError(f"{path}: expected results on {', '.join(DATASETS)}, got {got}.")
    results = {dataset: field(contents, dataset, dict, path) for dataset in known}
    labels = {
        f"{label}{DATASETS[dataset]}": columns[metric]
        for dataset, columns in results.items()
        for metric, label in METRICS.items()
        if metric in columns
    }
    configs = results[known[0]].get("config")
    rows = []
    for index in tqdm(range(_count(labels, path)), desc="hwnasbench", unit="cell", disable=not progress):
        with reading(f"{path}, architecture {index}", "numbers"):
            values = {label: positive(column[index]) for label, column in labels.items()}
            rows.append({"architecture": _notation(index, configs), "index": index, **values})
    return to_table(NASBench201.name, rows, path)


def _count(labels: dict[str, Any], path: Path) -> int:
    kinds = {label: len(column) for label, column in labels.items() if _is_list(column)}
    if len(kinds) < len(labels) or len(set(kinds.values())) != 1:
        raise BenchmarkFileError(f"{path}: expected one list for every metric, equally long, got lengths {kinds}.")
    return next(iter(kinds.values()))


def _is_list(column: Any) -> bool:
    return column.ndim > 0 if isinstance(column, np.ndarray) else isinstance(column, list | tuple)


def _notation(index: int, configs: Any) -> str:
    """Return the cell with an index; raise ValueError if the file has another cell at this index."""
    space = NASBench201()
    notation = space.format(space.from_official_index(index))
    if configs is not None and configs[index]["arch_str"] != notation:
        raise ValueError(f"{configs[index]['arch_str']} where NAS-Bench-201 has {notation}")
    return notation
