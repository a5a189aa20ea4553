"""Names of spaces."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, Protocol

from nasrlm.callers import warn_caller

TEXT_SPACE = "text"  # the space of rows that name none

_REGISTERED = re.compile(r"[\w-]+")  # excludes users' own spaces, which are named by a file


class Space(Protocol):
    """A search space; only its address is used."""

    @property
    def address(self) -> str: ...


def checked_space(space: Any, known: Collection[str]) -> str:
    """Return the name of a space.

    Args:
        space: its name, or the space itself.
        known: names that the model knows; any other name is taken for an unknown space.

    Warns if a known name differs only in spelling or the order of letters, or if only the file or the class of a user's
    own space is given.

    Raises:
        ValueError: neither a name nor a space.
    """
    name = name_of(space)
    if name not in known and _REGISTERED.fullmatch(name):
        for other in known:
            if _letters(name) in map(_letters, file_and_class(other).split(".py:")) and _letters(name):
                what = (
                    f"space: expected {other}, got {name}, which the model does not know: predictions may be "
                    "unreliable. Use the known name."
                )
                warn_caller(what)
    return known_as(name, known)


def name_of(space: Any) -> str:
    """Return the name of a space, given the name or the space itself.

    Raises:
        ValueError: neither a name nor a space.
    """
    name = getattr(space, "address", space)
    if not isinstance(name, str) or isinstance(space, type):
        raise ValueError(f"space: expected a space or its name, got {space!r:.60}. Load one with spaces.get_space.")
    return name


def known_as(name: str, known: Collection[str]) -> str:
    """Return the name among ``known`` that means the space ``name``, or ``name`` itself if none does.

    A user's own space, ``path/to/file.py:ClassName``, matches by file name and class, whatever the path, if only one of
    ``known`` has the same, and unless both files exist and differ.
    """
    if name in known:
        return name
    alike = [other for other in known if file_and_class(other) == file_and_class(name) and not _are_two(other, name)]
    return alike[0] if len(alike) == 1 else name


def file_and_class(name: str) -> str:
    """Return file name and class of a user's own space, without the path to the file; any other name unchanged."""
    return name.rpartition("/")[2] if ".py:" in name else name


def _are_two(first: str, second: str) -> bool:
    """Return whether the files of two spaces both exist and are different files."""
    files = [Path(os.path.expanduser(name.rpartition(":")[0])) for name in (first, second)]  # Path's fails on ~nobody
    return all(file.is_file() for file in files) and not files[0].samefile(files[1])


def _letters(name: str) -> list[str]:
    """Return the sorted letters and digits of a name, which are the same for fbnte and FBNet."""
    return sorted(re.sub(r"[\W_]", "", name.casefold()))
