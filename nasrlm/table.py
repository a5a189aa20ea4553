"""Tables of labelled architectures or texts: Parquet, CSV or JSONL, read with clear errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from nasrlm.objective import Objective

_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".parquet": pd.read_parquet,
    ".csv": pd.read_csv,
    ".jsonl": lambda path: pd.read_json(path, lines=True),
}
_FACTS = ("params", "macs", "mparams", "mmacs", "mflops")  # labels that need no context


def read_table(path: Path | str, *, require: Sequence[str] = ()) -> pd.DataFrame:
    """Read a table with a column ``architecture`` or ``text``.

    Args:
        path: file ending in .parquet, .csv or .jsonl.
        require: further columns that must be there.

    Raises:
        ValueError: no such file, another ending, damaged contents, or a column is missing; one line, naming it.
    """
    path = Path(path)
    reader = _READERS.get(path.suffix)
    if reader is None:
        raise ValueError(f"{path}: expected a table ending in {', '.join(_READERS)}, got {path.suffix or 'no ending'}.")
    if not path.is_file():
        raise ValueError(f"{path}: expected a table, got no such file.")
    try:
        frame = reader(path)
    except Exception as e:  # pyarrow and pandas raise many kinds
        reason = " ".join(str(e).split())[:200]
        raise ValueError(f"{path}: expected a readable {path.suffix[1:]} table, got {reason}. Is it truncated?") from e
    if "architecture" not in frame and "text" not in frame:
        raise ValueError(f"{path}: expected a column architecture or text, got {', '.join(map(str, frame.columns))}.")
    missing = [name for name in require if name not in frame]
    if missing:
        raise ValueError(
            f"{path}: expected a column {', '.join(missing)}, got labels {', '.join(label_columns(frame)) or 'none'}."
        )
    for name in require:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            raise ValueError(f"{path}: expected numbers in column {name}, got {frame[name].dtype}.")
    return frame


def label_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """Numeric columns named ``metric_unit@context``, and facts such as ``params``, in the table's order."""
    return tuple(
        str(name)
        for name in frame.columns
        if pd.api.types.is_numeric_dtype(frame[name]) and ("@" in str(name) or name in _FACTS)
    )


def objective_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """Label columns with a context: what a model learns by default.

    Raises:
        ValueError: a column name with @ is no objective.
    """
    return tuple(Objective.parse(name).name for name in label_columns(frame) if "@" in name)
