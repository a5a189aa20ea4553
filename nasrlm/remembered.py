"""Functions of strings that keep what they gave for the last of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

LONGEST_KEPT = 2048  # characters

F = TypeVar("F", bound=Callable[..., Any])


def remembered(function: F, size: int = 16_384) -> F:
    """Keeps what it gave for the last short strings; few long ones would take all memory of a server."""
    kept = lru_cache(maxsize=size)(function)

    @wraps(function)
    def remembering(text: str, *arguments: Hashable) -> Any:
        return kept(text, *arguments) if len(text) <= LONGEST_KEPT else function(text, *arguments)

    return cast(F, remembering)
