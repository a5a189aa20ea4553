"""Importers by name; the module of a benchmark is imported only when it is needed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
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
OF_SPACES = frozenset({"code-regression"})  # benchmarks of which a single space can be read, as all are too large


def read_benchmark(name: str, path: Path, *, progress: bool = False, space: str | None = None) -> pd.DataFrame:
    """Return the table of an official benchmark file.

    Args:
        name: one of ``IMPORTERS``.
        path: the file, or the folder if the benchmark is a folder.
        progress: show a bar on stderr.
        space: read only the rows of this space; not all benchmarks support it.

    Raises:
        ValueError: there is no such benchmark or file, or the benchmark does not support ``space``.
        BenchmarkFileError: the file is damaged or of another kind.
    """
    if name not in IMPORTERS:
        raise ValueError(f"import: expected one of {', '.join(IMPORTERS)}, got {name!r}.")
    if not path.exists():
        raise ValueError(f"{path}: expected the files of {name}, got no such file or folder.")
    if space is not None and name not in OF_SPACES:
        raise ValueError(
            f"import {name}: expected no space, got {space}. Only {', '.join(OF_SPACES)} can be imported for one space."
        )
    chosen = {} if space is None else {"space": space}
    return cast("pd.DataFrame", importlib.import_module(IMPORTERS[name]).read(path, progress=progress, **chosen))
