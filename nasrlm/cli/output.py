"""Results on stdout: a table for people, one JSON document for machines."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nasrlm.files import to_json

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything drawn.")]


def show_progress() -> bool:
    """Bars are for people: only where stderr is a terminal."""
    return sys.stderr.isatty()


def print_json(value: Any) -> None:
    """One JSON document; NaN becomes null."""
    print(to_json(value, indent=1))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], title: str | None = None) -> None:
    """A table as wide as it needs to be; numbers to four significant digits, right-aligned."""
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*[Text(_spell(value)) for value in row])  # Text: brackets in it are no markup
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def spell_interval(answer: Mapping[str, float]) -> str:
    """``median (low to high)``."""
    return f"{answer['median']:.4g} ({answer['low']:.4g} to {answer['high']:.4g})"


def _spell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
