"""Official benchmark files to tables: one module a benchmark, each with ``read(path, progress=...)``.

A table has the columns ``space`` and ``architecture`` (our canonical spelling), labels named ``metric_unit@context``
(accuracies in percent, missing = NaN) and facts such as ``params``. Files are read as data: none can run code.
"""

from converters.importers.reading import BenchmarkFileError
from converters.importers.registry import IMPORTERS, importer_names, read_benchmark

__all__ = ["IMPORTERS", "BenchmarkFileError", "importer_names", "read_benchmark"]
