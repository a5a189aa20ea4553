"""Importers by name; a module is imported when its benchmark is first asked for."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import cast

import pandas as pd

IMPORTERS = {
    "code-regression": "converters.importers.code_regression",
    "hwnasbench": "converters.importers.hwnasbench",
    "hwnasbench-fbnet": "converters.importers.hwnasbench_fbnet",
    "nasbench101": "converters.importers.nasbench101",
    "nasbench201": "converters.importers.nasbench201",
    "nasbench301": "converters.importers.nasbench301",
    "natsbench": "converters.importers.natsbench",
    "nds": "converters.importers.nds",
}
OF_SPACES = frozenset({"code-regression"})  # too large to read whole and choose afterwards


def importer_names() -> tuple[str, ...]:
    """The registered names, sorted."""
    return tuple(sorted(IMPORTERS))


def read_benchmark(name: str, path: Path, *, progress: bool = False, space: str | None = None) -> pd.DataFrame:
    """The table of an official benchmark file.

    Args:
        name: one of ``importer_names()``.
        path: the file, or the folder where a benchmark is one.
        progress: show a bar on stderr.
        space: only its rows, of a benchmark that is read by spaces.

    Raises:
        ValueError: no such benchmark or file, or one that is not read by spaces.
        BenchmarkFileError: the file is damaged or of another kind.
    """
    if name not in IMPORTERS:
        raise ValueError(f"import: expected one of {', '.join(importer_names())}, got {name!r}.")
    if not path.exists():
        raise ValueError(f"{path}: expected the files of {name}, got no such file or folder.")
    if space is not None and name not in OF_SPACES:
        raise ValueError(
            f"import {name}: expected no space, got {space}. Only {', '.join(OF_SPACES)} is read by spaces."
        )
    chosen = {} if space is None else {"space": space}
    return cast(pd.DataFrame, importlib.import_module(IMPORTERS[name]).read(path, progress=progress, **chosen))
