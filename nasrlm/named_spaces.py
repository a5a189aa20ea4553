"""Names of the spaces that networks are of."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any, Protocol

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

    Warns of one that is known in another spelling, or with letters in another order, and of the file or class alone of
    a user's own.

    Raises:
        ValueError: neither a name nor a space.
    """
    name = getattr(space, "address", space)
    if not isinstance(name, str) or isinstance(space, type):
        raise ValueError(f"space: expected a space or its name, got {space!r:.60}. spaces.get_space opens one.")
    if name not in known and _REGISTERED.fullmatch(name):
        for other in known:
            if _letters(name) in map(_letters, file_and_class(other).split(".py:")) and _letters(name):
                what = f"space: expected {other}, got {name}: answers are guesses. Spell it alike."
                warnings.warn(what, stacklevel=3)
    return known_as(name, known)


def known_as(name: str, known: Collection[str]) -> str:
    """The one of the names ``known`` that means the space ``name``, or ``name`` itself if none does.

    The space of a user's own, ``path/to/file.py:ClassName``, is known by file and class, whatever the path, if only one
    of ``known`` has these; unless the files of both exist and are two different ones.
    """
    alike = [other for other in known if file_and_class(other) == file_and_class(name) and not _are_two(other, name)]
    return alike[0] if name not in known and len(alike) == 1 else name


def file_and_class(name: str) -> str:
    """The file name and class of a user's own space, without the path to its file; any other name as it is."""
    return name.rpartition("/")[2] if ".py:" in name else name


def _are_two(first: str, second: str) -> bool:
    """Whether the files of two spaces are there, and are not the same."""
    files = [Path(name.rpartition(":")[0]).expanduser() for name in (first, second)]
    return all(file.is_file() for file in files) and not files[0].samefile(files[1])


def _letters(name: str) -> list[str]:
    """Letters and digits in any order, as of fbnte and FBNet."""
    return sorted(re.sub(r"[\W_]", "", name.casefold()))
