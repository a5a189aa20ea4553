"""What people are shown: refused values, cut in the middle where they are long, and networks by a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SHOWN = 200  # characters


def shown(value: object) -> str:
    """A value as Python spells it."""
    return cut(repr(value))


def cut(text: str) -> str:
    """A text's beginning and end."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} … {text[-SHOWN // 2 :]}"


def first_lines(names: Sequence[str], numbers: Sequence[Any] = ()) -> list[str]:
    """What networks are called in a table for people: of texts of several lines the first, and their row.

    Args:
        names: as they were given, notations or texts.
        numbers: of their rows in the table that they are from; none without a table.
    """
    shown = []
    for index, name in enumerate(names):
        line, *others = name.strip().splitlines() or [""]
        row = f"row {numbers[index]}: " if len(numbers) else ""
        shown.append(f"{row}{line} …" if others else name.strip())
    return shown
