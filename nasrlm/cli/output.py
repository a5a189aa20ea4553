"""Print results to stdout: a table for people, or one JSON document for programs."""

from __future__ import annotations

import io
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from decimal import Decimal
from pathlib import Path
from textwrap import wrap
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nasrlm.cli.progress_lines import ProgressLines
from nasrlm.files import check_not_read, check_table_path, to_json, write_table

WIDTH_OF_FILES = 160  # width, in characters, of a table that is not printed to a terminal
GAP = "  "  # between columns
NAMED = 3  # number of words that are listed in full, such as columns or objectives

_results: list[TextIO] = []  # the stream for results while a verb runs; if empty, stdout


@contextmanager
def results_alone() -> Iterator[None]:
    """Reserve stdout for ``say`` and the ``print_…`` functions in this context, so that programs can read it.

    All other output, such as that of users' code or of subprocesses, goes to stderr, because file descriptor 1 is
    redirected there. If stderr is no terminal, progress bars become lines.

    Raises:
        ValueError: stdout is closed.
    """
    if sys.stdout is None:
        raise ValueError("stdout: expected an open stream for the results, got a closed one.")
    try:
        is_own = sys.stdout.fileno() != 1
    except io.UnsupportedOperation:  # a buffer
        is_own = True
    sys.stdout.flush()
    others: Any = ProgressLines(sys.stderr) if sys.stderr and not sys.stderr.isatty() else sys.stderr
    stdout = os.dup(1)
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    _results.append(sys.stdout if is_own else os.fdopen(os.dup(1), "w", encoding=encoding, errors=errors))
    os.dup2(2, 1)
    try:
        with redirect_stderr(others), redirect_stdout(others):
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
        if not is_own:
            _results[-1].close()
        _results.pop()


def say(text: str) -> None:
    """Print a line of results, and flush it."""
    print(text, file=_stream(), flush=True)


def warn(message: str) -> None:
    """Print a warning as a line on stderr."""
    print(f"nasrlm: {message}", file=sys.stderr)


def check_table_out(out: Path, *given: Path | None) -> None:
    """Check, before long work, that a table can be written to ``out``; warn if it replaces a file.

    Args:
        out: path of the table.
        given: input files.

    Raises:
        ValueError: ``out`` does not end like a table, is a folder, or one of the input files.
        OSError: its folder cannot be written.
    """
    check_table_path(out)
    check_not_read(out, *given)
    if out.exists():
        warn(f"{out}: the existing table will be replaced.")


def write_rows(rows: Sequence[Mapping[Any, Any]], out: Path) -> None:
    """Write rows as a table, in the format of the ending of ``out``."""
    import pandas as pd  # here: takes half a second

    write_table(pd.DataFrame(rows), out)


def _stream() -> TextIO:
    return _results[-1] if _results else sys.stdout


def print_json(value: Any) -> None:
    """Print one JSON document; NaN becomes null."""
    say(to_json(value, indent=1))


def some(words: Sequence[str]) -> str:
    """List the first ``NAMED`` words, and say how many more there are: "a, b, c and 4 more"."""
    more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return f"{', '.join(words[:NAMED])}{more}"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], title: str | None = None) -> None:
    """Print a table with right-aligned numbers of four significant digits, whole numbers in full, and a dash for NaN.

    If only the first column makes it wider than the terminal, that column's cells become headings above their rows. If
    the other columns are too wide as well, each cell is printed on a line of its own, after its column's name.
    """
    console = Console(file=_stream(), width=None if _stream().isatty() else WIDTH_OF_FILES)
    columns = [_escaped(column, console.encoding) for column in columns]
    cells = [[_escaped(_spell(value), console.encoding) for value in row] for row in rows]
    numeric = [bool(rows) and all(isinstance(row[index], int | float) for row in rows) for index in range(len(columns))]
    widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    if cells and sum(widths) + 3 * len(widths) + 1 > console.width:
        fits = console.width >= sum(widths[1:]) + len(GAP) * len(widths[2:]) > 0
        rule = "─" if console.encoding.startswith("utf") else "-"  # as rich draws its boxes
        lines = _stacked(columns, cells, numeric, widths, rule) if fits else _listed(columns, cells, console.width)
        say("\n".join(([title] if title else []) + lines))
        return
    table = Table(title=title, title_justify="left")
    for column, is_number in zip(columns, numeric, strict=True):
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))  # Text: brackets are not parsed as markup
    console.print(table)


def _stacked(
    columns: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], widths: Sequence[int], rule: str
) -> list[str]:
    """Return the lines of a table in which cells of the first column are headings above the rows that share them."""

    def line(row: Sequence[str]) -> str:
        padded = []
        for cell, is_number, width in zip(row[1:], numeric[1:], widths[1:], strict=True):
            spaces = " " * (width - cell_len(cell))
            padded.append(spaces + cell if is_number else cell + spaces)
        return GAP.join(padded).rstrip()

    lines = [columns[0], line(columns), rule * (sum(widths[1:]) + len(GAP) * len(widths[2:]))]
    above = None
    for row in cells:
        lines += [*([row[0]] if row[0] != above else []), line(row)]
        above = row[0]
    return lines


def _listed(columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return the lines of a table with one wrapped cell per line, after its column's name, and gaps between rows."""
    lines: list[str] = []
    for row in cells:
        for column, cell in zip(columns, row, strict=True):
            lines += wrap(f"{column}: {cell}", width, subsequent_indent="  ")
        lines.append("")
    return lines[:-1]


def _spell(value: object) -> str:
    if isinstance(value, float) and abs(value) >= 10_000 and value.is_integer():
        value = int(value)  # a count
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**15 else f"{Decimal(value):.3e}"
    return str(value)


def _escaped(text: str, encoding: str) -> str:
    """Return a text as stdout will show it, see ``escape_other_characters``, so that columns are wide enough."""
    return text.encode(encoding, "backslashreplace").decode(encoding)
