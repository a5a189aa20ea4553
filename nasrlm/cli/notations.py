"""Read the notations of architectures that a search starts from, from a table or a text file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nasrlm.files import TABLE_ENDINGS
from spaces.space import SearchSpace


def read_notations(path: Path, space: SearchSpace[Any]) -> tuple[str, ...]:
    """Read the notations in a table's rows of the space, or in the lines of a text file.

    Raises:
        ValueError: the file cannot be read, has no architecture of the space, or one is malformed; the message gives
            its row or line.
    """
    notations = _of_rows(path, space) if path.suffix.lower() in TABLE_ENDINGS else _of_lines(path)
    for place, notation in notations.items():
        try:
            space.parse(notation)
        except ValueError as e:
            raise ValueError(f"{path}, {place}: {e}") from e
    if not notations:
        raise ValueError(f"{path}: expected architectures of {space.name} to start from, got none.")
    return tuple(notations.values())


def _of_rows(path: Path, space: SearchSpace[Any]) -> dict[str, str]:
    from studies.tables.files import read_table  # here: these take half a second, and a text file does not need them
    from studies.tables.rows import rows_of_space, spelled_notation

    table = read_table(path)
    if "architecture" not in table or table["architecture"].isna().any():
        raise ValueError(f"{path}: expected a column architecture, filled in every row. See --warm-start.")
    rows = rows_of_space(table, space)["architecture"]
    return {f"row {row}": spelled_notation(notation) for row, notation in rows.items()}


def _of_lines(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected architectures, one per line, got {error}.") from error
    return {f"line {number}": line.strip() for number, line in enumerate(lines, start=1) if line.strip()}
