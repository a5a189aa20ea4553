"""Spaces by their names and texts by notation, remembered: tables and requests name the same ones again and again."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from converters.convert import to_measured_text, to_onnx_text
from spaces import SearchSpace, get_space

CACHED_TEXTS = 8192  # of a process, about 20 MB


def cached_space(name: str) -> SearchSpace[Any]:
    """``get_space``, called once for each name, whether there is such a space or not.

    Raises:
        ValueError: there is none.
    """
    space = _opened(name)
    if isinstance(space, str):
        raise ValueError(space)
    return space


@lru_cache(maxsize=CACHED_TEXTS)
def cached_text(space: str, notation: str, *, measured: bool) -> str:
    """The text of an architecture, as measured or canonical.

    Raises:
        ValueError: there is no such space, or the notation is malformed.
    """
    opened = cached_space(space)
    return (to_measured_text if measured else to_onnx_text)(opened, opened.parse(notation))


@lru_cache(maxsize=64)
def _opened(name: str) -> SearchSpace[Any] | str:
    """The space, or why there is none: asking again for every row would be slow."""
    try:
        return get_space(name)
    except ValueError as e:
        return str(e)
