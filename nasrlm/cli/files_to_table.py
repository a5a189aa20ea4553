"""Convert networks in files, given as words or listed in a table, to a table of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from converters.tables.batches import open_table
from converters.tables.columns import FILE, TEXT
from converters.tables.parts import errors_of
from nasrlm.cli.inputs import read_inputs
from nasrlm.cli.networks import Kind, kind_of
from nasrlm.cli.output import check_table_out, print_json, say, warn
from nasrlm.files import to_json, write_atomically, write_table

if TYPE_CHECKING:
    import pandas as pd


def lists_files(table: Path) -> bool:
    """Return whether a table has networks in files: a column ``file``, but neither notations nor texts.

    Raises:
        ValueError: the table cannot be read.
    """
    names = open_table(table, ()).names
    return FILE in names and "architecture" not in names and TEXT not in names


def convert_several(
    given: Sequence[str], space: str | None, input_shape: Sequence[str] | None, out: Path | None, *, json: bool
) -> None:
    """Write the texts of several networks, and how they were given; files that cannot be converted are left out.

    Raises:
        ValueError: a network cannot be found, or none can be converted; or ``out`` is no table.
    """
    import pandas as pd  # here: takes half a second

    if out is None:
        raise ValueError(
            f"convert: expected --out with a table (.parquet, .csv or .jsonl) for {len(given)} networks, got none."
        )
    check_table_out(out, *map(Path, given))
    inputs = read_inputs(given, None, space, input_shape)
    rows = [row | {TEXT: text} for row, text in zip(inputs.rows, inputs.texts, strict=True)]
    _write(pd.DataFrame(rows), inputs.failed, len(given), out, json=json)


def convert_listed(table: Path, space: str | None, input_shape: Sequence[str] | None, out: Path, *, json: bool) -> None:
    """Write the rows of a table that lists files, such as labels that were measured elsewhere, with their texts.

    A file is found by its path relative to the current folder or to the table; those that are missing or cannot be
    converted are left out.

    Raises:
        ValueError: a row has no file, none is found, or none can be converted; or ``out`` is no table.
    """
    check_table_out(out, table)
    frame = open_table(table, spell_mixed=True).whole().to_pandas()
    files = [_found(table, row, name) for row, name in enumerate(frame[FILE])]
    if not files:
        raise ValueError(f"{table}: expected rows, got none.")
    different, missing = list(dict.fromkeys(files)), dict[str, str]()
    for row, file in enumerate(files):
        if file not in missing and kind_of(file) is not Kind.MODULE and not Path(file).is_file():
            missing[file] = f"{table}, row {row}: expected a file, got {file!r}, which does not exist."
    if len(missing) == len(different):
        more = f" All {len(missing):,} files are missing." if len(missing) > 1 else ""
        raise ValueError(f"{missing[files[0]]}{more}")
    inputs = read_inputs([file for file in different if file not in missing], None, space, input_shape)
    texts = dict(zip(inputs.names, inputs.texts, strict=True))
    converted = [file in texts for file in files]
    kept = frame[converted].assign(**{TEXT: [texts[file] for file in files if file in texts]})
    if space is not None and "space" not in kept:
        kept["space"] = space
    _write(kept, {**missing, **inputs.failed}, len(frame), out, json=json)


def _found(table: Path, row: int, name: object) -> str:
    """Return the path of the file that a cell names, without blanks around it unless they belong to the name."""
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"{table}: expected a file in every row, got none in row {row}.")
    paths = [folder / spelled for spelled in (name, name.strip()) for folder in (Path(), table.parent)]
    return next((str(path) for path in paths if path.is_file()), name.strip())


def _write(rows: pd.DataFrame, failed: Mapping[str, str], total: int, out: Path, *, json: bool) -> None:
    """Write the converted ones of ``total`` rows and, beside them, which files could not be converted and why."""
    write_table(rows, out)
    errors, num_failed = errors_of(out), total - len(rows)
    if failed:
        lines = [to_json({FILE: name, "reason": reason}) for name, reason in failed.items()]
        write_atomically(errors, "".join(f"{line}\n" for line in lines).encode())
        warn(f"{num_failed:,} of {total:,} rows failed, with reasons in {errors}")
    else:
        errors.unlink(missing_ok=True)  # of an earlier run
    if json:
        print_json({"rows": len(rows), "failed": num_failed})
    else:
        say(f"{len(rows):,} rows: {out}")
