"""Importer of NATS-Bench's topology space (TSS): the cells of NAS-Bench-201, in compressed pickles.

Source:
    D-X-Y/NATS-Bench, nats_bench/api_topology.py and api_utils.py: one file like NAS-Bench-201's but with epochs as
    keys, or a folder ``NATS-tss-v1_0-3ffb9-simple`` with ``meta.pickle.pbz2`` (notations) and ``000000.pickle.pbz2``,
    … (dictionaries from epochs to the state of an ArchResults).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from converters.importers.nasbench201 import to_row
from converters.importers.pickles import read_pickle
from converters.importers.reading import BenchmarkFileError, by_number, field, reading
from converters.importers.table import to_table
from spaces.nasbench201 import NASBench201

ENDING = ".pickle.pbz2"


def read(path: Path, *, progress: bool = False) -> pd.DataFrame:
    """Return the table of NATS-tss-v1_0, with the columns of ``nasbench201.read``.

    Cost: a folder is read file by file; a single file is in memory as a whole.

    Raises:
        BenchmarkFileError: a file is damaged or of another kind, or it is a pickle with more than data.
    """
    count, results, notations = _from_folder(path) if path.is_dir() else _from_file(path)
    rows = []
    for index, states in tqdm(results, total=count, desc="natsbench", unit="cell", disable=not progress):
        with reading(f"{path}, architecture {index}", "results by number of epochs"):
            rows.append(to_row(index, notations[index], states))
    return to_table(NASBench201.name, rows, path)


Results = tuple[int, Iterator[tuple[int, Any]], list[str]]


def _from_file(path: Path) -> Results:
    if not path.name.endswith(ENDING):
        raise BenchmarkFileError(f"{path}: expected a folder or a file ending in {ENDING}, got another ending.")
    contents = read_pickle(path)
    infos = field(contents, "arch2infos", dict, path)
    popped = ((index, infos.pop(index)) for index in by_number(infos, path))
    return len(infos), popped, _notations(contents, path)


def _from_folder(path: Path) -> Results:
    meta = path / f"meta{ENDING}"
    if not meta.is_file():
        raise BenchmarkFileError(f"{path}: expected {meta.name} inside, got none. Give the folder of the simple files.")
    files = {int(name): file for file in path.iterdir() if (name := file.name.removesuffix(ENDING)).isdecimal()}
    results = ((index, read_pickle(files[index])) for index in sorted(files))
    return len(files), results, _notations(read_pickle(meta), meta)


def _notations(contents: Any, place: Path) -> list[str]:
    notations: list[str] = field(contents, "meta_archs", list, place)
    if notations and "~" not in str(notations[0]):
        raise BenchmarkFileError(
            f"{place}: expected cells of the topology space, got {notations[0]!r}. The size space (sss) is not "
            "supported."
        )
    return notations
