"""All architectures of a search: those that are known, or the whole space."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

from nasrlm.arguments import has_order
from spaces import SearchSpace

A = TypeVar("A", bound=Hashable)

LARGEST_SPACE = 1_000_000  # architectures to enumerate; some ten thousand are fast
MOST_LOOKED_AT = 20_000  # most architectures to convert and predict all without being asked to; takes minutes


def every_architecture(space: SearchSpace[A], known: Iterable[A] | None = None) -> dict[str, A]:
    """Return the representatives of all known architectures by key, or of the whole space if ``known`` is None.

    Raises:
        ValueError: ``known`` is None, and the space is too large; or ``known`` is no list, or of notations.
    """
    if known is not None:
        listed = list(known) if has_order(known) else None
        if listed is None or any(isinstance(architecture, str) for architecture in listed):
            raise ValueError(f"known: expected a list of architectures, got {known!r:.60}. Parse notations beforehand.")
        known = listed
    if known is None and space.size > LARGEST_SPACE:
        raise ValueError(
            f"exhaustive: expected a space of at most {LARGEST_SPACE:,} architectures, got {space.name} with "
            f"{space.size:.2g}. Search without exhaustive."
        )
    architectures = map(space.representative, space.enumerate() if known is None else known)
    return {space.architecture_key(architecture): architecture for architecture in architectures}
