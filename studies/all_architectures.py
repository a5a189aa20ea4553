"""Every architecture that a search may look at."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

from spaces import SearchSpace

A = TypeVar("A", bound=Hashable)

MAX_LOOKED_AT = 1_000_000  # architectures of a space, of which some ten thousand are comfortable


def every_architecture(space: SearchSpace[A], known: Iterable[A] | None = None) -> dict[str, A]:
    """By key, the representatives of all architectures that are known, or else of the space.

    Raises:
        ValueError: none are known, and the space has too many to look at.
    """
    if known is None and space.size > MAX_LOOKED_AT:
        raise ValueError(
            f"exhaustive: expected a space of at most {MAX_LOOKED_AT:,} architectures, got {space.name} with "
            f"{space.size:.2g}. Search without it."
        )
    architectures = map(space.representative, space.enumerate() if known is None else known)
    return {space.architecture_key(architecture): architecture for architecture in architectures}
