"""Importers by name; a module is imported when its benchmark is first asked for."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import cast

import pandas as pd

IMPORTERS = {
    "hwnasbench": "converters.importers.hwnasbench",
    "hwnasbench-fbnet": "converters.importers.hwnasbench_fbnet",
    "nasbench101": "converters.importers.nasbench101",
    "nasbench201": "converters.importers.nasbench201",
    "nasbench301": "converters.importers.nasbench301",
    "natsbench": "converters.importers.natsbench",
    "nds": "converters.importers.nds",
}


def importer_names() -> tuple[str, ...]:
    """The registered names, sorted."""
    return tuple(sorted(IMPORTERS))


def read_benchmark(name: str, path: Path, *, progress: bool = False) -> pd.DataFrame:
    """The table of an official benchmark file.

    Args:
        name: one of ``importer_names()``.
        path: the file, or the folder where a benchmark is one.
        progress: show a bar on stderr.

    Raises:
        ValueError: no such benchmark or file.
        BenchmarkFileError: the file is damaged or of another kind.
    """
    if name not in IMPORTERS:
        raise ValueError(f"import: expected one of {', '.join(importer_names())}, got {name!r}.")
    if not path.exists():
        raise ValueError(f"{path}: expected the files of {name}, got no such file or folder.")
    return cast(pd.DataFrame, importlib.import_module(IMPORTERS[name]).read(path, progress=progress))
