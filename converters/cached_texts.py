"""Caches of spaces by name and of texts by notation, because tables and requests repeat them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from converters.convert import to_measured_text, to_onnx_text
from spaces import SearchSpace, get_space

CACHED_TEXTS = 8192  # in each process, about 20 MB


def cached_space(name: str) -> SearchSpace[Any]:
    """Return ``get_space(name)``; the result or failure for a name is cached.

    Raises:
        ValueError: there is no such space.
    """
    space = _opened(name)
    if isinstance(space, str):
        raise ValueError(space)
    return space


@lru_cache(maxsize=CACHED_TEXTS)
def cached_text(space: str, notation: str, *, measured: bool) -> str:
    """Return the measured or canonical text of an architecture.

    Raises:
        ValueError: there is no such space, or the notation is malformed.
    """
    opened = cached_space(space)
    return (to_measured_text if measured else to_onnx_text)(opened, opened.parse(notation))


@lru_cache(maxsize=64)
def _opened(name: str) -> SearchSpace[Any] | str:
    """Return the space, or the error message if there is none; failing anew for every row would be slow."""
    try:
        return get_space(name)
    except ValueError as e:
        return str(e)
