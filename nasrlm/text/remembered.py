"""Cache functions of strings, within bounds of memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

LONGEST_KEPT = 2048  # characters

F = TypeVar("F", bound=Callable[..., Any])


def remembered(function: F, size: int = 16_384) -> F:
    """Cache the results of a function for the last ``size`` strings.

    Strings longer than ``LONGEST_KEPT`` characters are not cached, since a few could fill the memory of a server.
    """
    kept = lru_cache(maxsize=size)(function)

    @wraps(function)
    def remembering(text: str, *arguments: Hashable) -> Any:
        return kept(text, *arguments) if len(text) <= LONGEST_KEPT else function(text, *arguments)

    return cast(F, remembering)
