"""Text shown to people: invalid values, shortened in the middle if they are long, and one-line names of networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SHOWN = 200  # characters


def shown(value: object) -> str:
    """Return the ``repr`` of a value, shortened if it is long."""
    return cut(repr(value))


def cut(text: str) -> str:
    """Return a text, or only its beginning and end if it is long."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} … {text[-SHOWN // 2 :]}"


def first_lines(names: Sequence[str], numbers: Sequence[Any]) -> list[str]:
    """Return one-line names of networks for display: of a text with several lines the first one, and the row.

    Args:
        names: notations or texts of the networks.
        numbers: row numbers in the table that they are from; empty without a table.
    """
    shown = []
    for index, name in enumerate(names):
        line, *others = name.strip().splitlines() or [""]
        row = f"row {numbers[index]}: " if len(numbers) else ""
        shown.append(f"{row}{line} …" if others else name.strip())
    return shown
