"""Checks of arguments, as ``nasrlm.arguments`` has them, which converters do not import."""

from __future__ import annotations

from numbers import Integral
from typing import Any


def checked_whole(what: str, number: Any, least: int) -> int:
    """Return an integer of Python or NumPy as an int; ``what`` starts the error message.

    Raises:
        ValueError: it is no integer, or below ``least``.
    """
    if not isinstance(number, Integral):
        raise ValueError(f"{what}: expected a whole number, got {number!r}.")
    if number < least:
        raise ValueError(f"{what}: expected {least} or more, got {number}.")
    return int(number)
