"""Names of the spaces that networks are of."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from difflib import get_close_matches
from typing import Any, Protocol

ALIKE = 0.79  # how similar names of one space are at least; "fbnte" and "fbnet" have 0.8
TEXT_SPACE = "text"  # of rows that name none

_REGISTERED = re.compile(r"[\w-]+")  # not the file of a user's own


class Space(Protocol):
    """A search space of which only its address is used."""

    @property
    def address(self) -> str: ...


def checked_space(space: Any, known: Collection[str]) -> str:
    """The name of a space.

    Args:
        space: its name, or the space itself.
        known: names that the model knows; any other is taken to be of a space that it does not know.

    Warns of one that is nearly one of these.

    Raises:
        ValueError: neither a name nor a space.
    """
    name = getattr(space, "address", space)
    if not isinstance(name, str) or isinstance(space, type):
        raise ValueError(f"space: expected a space or its name, got {space!r:.60}. spaces.get_space opens one.")
    if name not in known and _REGISTERED.fullmatch(name):
        spelled = {_letters(other): other for other in known if _digits(other) == _digits(name)}
        for other in get_close_matches(_letters(name), [*filter(None, spelled)], n=1, cutoff=ALIKE):
            what = f"space: expected {spelled[other]}, got {name}: answers are guesses. Spell it alike."
            warnings.warn(what, stacklevel=3)
    return name


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def _digits(name: str) -> str:
    """What tells apart spaces of one kind, such as nasbench101 and nasbench201."""
    return re.sub(r"\D", "", name)
