"""Importer of the json files of NDS on CIFAR-10: NASNet, AmoebaNet, PNAS, ENAS and DARTS cells, many widths and depths.

Source:
    facebookresearch/nds, notebooks/nas.ipynb (names of the files, ``params``, ``flops``, ``min_test_top1``);
    microsoft/nni, its import of NDS (``net``, ``train_ep_top1``, ``test_ep_top1``, errors in percent, ``iter_time``).
    Radosavovic et al. 2019, "On Network Design Spaces for Visual Recognition".
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from converters.importers.reading import BenchmarkFileError, field, reading
from converters.importers.table import to_table
from spaces import get_space

SPACES = {
    "Amoeba": "nds_amoebanet",
    "DARTS": "nds_darts",
    "ENAS": "nds_enas",
    "NASNet": "nds_nasnet",
    "PNAS": "nds_pnas",
}
FIXED = "_fix-w-d"  # in the names of files with a single width and depth


def read(path: Path, *, progress: bool = False) -> pd.DataFrame:
    """Return the table of one file; the space follows from its published name: DARTS.json, DARTS_fix-w-d.json, ….

    ``accuracy@cifar10`` is 100 minus the test error of the last epoch. ``best_accuracy@cifar10`` is 100 minus the
    lowest test error of all epochs, so it is selected on the test set. ``params`` and ``macs`` (``flops`` in the file)
    are those of the file.

    NOTE: these files are refused: networks for ImageNet (_in) have another skeleton, those with _lr-wd were trained
    differently, and ResNet, ResNeXt and Vanilla are no cells.

    Raises:
        BenchmarkFileError: the file is damaged, of another kind or has another name; the message has the record,
            counted from 0.
    """
    space = get_space(SPACES[_family(path)])
    with reading(path, "a JSON list of trained networks"):
        records = json.loads(path.read_bytes())
    if not isinstance(records, list):
        raise BenchmarkFileError(f"{path}: expected a JSON list of trained networks, got {type(records).__name__}.")
    rows = []
    for index, record in enumerate(tqdm(records, desc=path.stem, unit="network", disable=not progress)):
        place = f"{path}, record {index}"
        with reading(place, "a trained network"):
            net = field(record, "net", dict, place)
            notation = space.format(space.parse(json.dumps(net)))
            rows.append({"architecture": notation, **_labels(record, place)})
    return to_table(space.name, rows, path)


def _family(path: Path) -> str:
    family = path.stem.removesuffix(FIXED)
    if family not in SPACES:
        names = ", ".join(f"{name}.json" for name in SPACES)
        raise BenchmarkFileError(
            f"{path}: expected {names} or one of them with {FIXED}, got {path.name}. Keep the published name; files "
            "for ImageNet, training settings or other families are not supported."
        )
    return family


def _labels(record: dict[str, Any], place: str) -> dict[str, float]:
    test, train = (_errors(record, f"{split}_ep_top1", place) for split in ("test", "train"))
    return {
        "accuracy@cifar10": 100 - test[-1],
        "best_accuracy@cifar10": 100 - min((x for x in test if not math.isnan(x)), default=math.nan),
        "test_error_percent@cifar10": test[-1],
        "train_error_percent@cifar10": train[-1],
        "iteration_s@cifar10": _number(record, "iter_time", place),
        "params": _number(record, "params", place),
        "macs": _number(record, "flops", place),
    }


def _errors(record: dict[str, Any], key: str, place: str) -> list[float]:
    """Return the errors of every epoch in percent; NaN after training failed."""
    errors = [float(x) for x in field(record, key, list, place)]
    if wrong := [x for x in errors if x < 0 or x > 100]:
        raise BenchmarkFileError(f"{place}: expected errors in percent, 0 to 100, in {key!r}, got {wrong[0]:g}.")
    return errors


def _number(record: dict[str, Any], key: str, place: str) -> float:
    number = float(field(record, key, (int, float), place))
    if number < 0:
        raise BenchmarkFileError(f"{place}: expected {key!r} of 0 or more, got {number:g}.")
    return number
