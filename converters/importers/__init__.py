"""Importers of official benchmark files: one module per benchmark, each with ``read(path, progress=...)``.

The result is a table with the columns ``space`` and ``architecture`` (our canonical notation), labels named
``metric_unit@context`` (accuracies in percent, missing = NaN) and facts such as ``params``. That of Code-Regression has
source code in a column ``text`` instead of architectures. Files are read as data and cannot run code.
"""

from converters.importers.reading import BenchmarkFileError
from converters.importers.registry import IMPORTERS, read_benchmark

__all__ = ["IMPORTERS", "BenchmarkFileError", "read_benchmark"]
