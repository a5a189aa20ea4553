"""Reads published notations, most of them in JSON, with errors that give the position of the mistake."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spaces.shown import shown
from spaces.space import ArchitectureError


@dataclass(frozen=True)
class NotationReader:
    """Reads and checks the values in notations of one space; all methods raise ArchitectureError.

    Attributes:
        space: name of the space, with which error messages start.
        remedy: sentence with which error messages end.
    """

    space: str
    remedy: str

    def read_json(self, notation: str) -> Any:
        """Return the value of a notation in JSON."""
        text = checked_text(self.space, notation)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.error("JSON", f"{shown(notation)}, {error}") from error

    def read_object(self, notation: str, *, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
        """Return the JSON object of a notation that has the required keys and no others than the optional ones."""
        value = self.read_json(notation)
        self.check_keys(value, required=required, optional=optional)
        return dict(value)

    def check_keys(self, value: Any, *, required: Sequence[str], optional: Sequence[str] = ()) -> None:
        """Check that a value is a JSON object with these keys."""
        wanted = f"an object with {', '.join(required)}"
        if not isinstance(value, dict):
            raise self.error(wanted, shown(value))
        for key in required:
            if key not in value:
                raise self.error(wanted, f"no {key} in {shown(value)}")
        for key in value:
            if key not in required and key not in optional:
                raise self.error(wanted, f"also {shown(key)}")

    def check_list(self, name: str, value: Any, lengths: Sequence[int]) -> list[Any]:
        """Return ``value`` if it is a list of one of these lengths; ``name`` is its position for error messages."""
        if not isinstance(value, list) or len(value) not in lengths:
            got = f"{len(value)} of them" if isinstance(value, list) else shown(value)
            wanted = " or ".join(map(str, dict.fromkeys(lengths)))
            raise self.error(f"a list of {wanted} in {name}", got)
        return value

    def choice_index(self, name: str, value: object, choices: Sequence[object]) -> int:
        """Return the position of ``value`` among ``choices``; ``true`` does not count as 1."""
        return choice_index(f"{self.space} notation", name, value, choices, self.remedy)

    def read_integer(self, name: str, value: Any, minimum: int) -> int:
        """Return ``value`` if it is an integer of at least ``minimum``; ``true`` is none."""
        if type(value) is not int or value < minimum:
            raise self.error(f"{name} to be an integer of {minimum} or more", shown(value))
        return int(value)

    def error(self, expected: str, got: str) -> ArchitectureError:
        """Return the error that a notation has ``got`` in place of ``expected``."""
        return ArchitectureError(f"{self.space} notation: expected {expected}, got {got}. {self.remedy}")


def checked_text(space: str, notation: object) -> str:
    """Return a notation if it is a string.

    Raises:
        ArchitectureError: it is something else, such as None or the architecture itself.
    """
    if not isinstance(notation, str):
        raise ArchitectureError(f"{space} notation: expected a string, got {shown(notation)}.")
    return notation


def check_count(place: str, name: str, values: Sequence[object], count: int, remedy: str) -> None:
    """Check that there are ``count`` values; ``name`` is what they are, such as "blocks".

    Raises:
        ArchitectureError: there are more or fewer; the message starts with ``place`` and ends with ``remedy``.
    """
    if len(values) != count:
        raise ArchitectureError(f"{place}: expected {count} {name}, got {len(values)} of them. {remedy}")


def choice_index(place: str, name: str, value: object, choices: Sequence[object], remedy: str) -> int:
    """Return the position of ``value`` among ``choices``; ``true`` does not count as 1.

    Raises:
        ArchitectureError: it is none of them; the message starts with ``place`` and ends with ``remedy``.
    """
    if isinstance(value, bool) or value not in choices:
        wanted = ", ".join(map(str, choices))
        raise ArchitectureError(f"{place}: expected {name} to be one of {wanted}, got {shown(value)}. {remedy}")
    return choices.index(value)
