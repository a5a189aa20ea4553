"""Reads published notations in JSON, with errors that give the position of the mistake."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from spaces.shown import shown
from spaces.space import ArchitectureError


def read_json(space: str, notation: str, remedy: str) -> Any:
    """Return the JSON value of a notation.

    Args:
        space: name of the space, with which error messages start.
        notation: JSON text.
        remedy: sentence with which error messages end.

    Raises:
        ArchitectureError: the notation is no valid JSON.
    """
    try:
        return json.loads(notation)
    except (ValueError, RecursionError) as error:
        raise ArchitectureError(f"{space} notation: expected JSON, got {shown(notation)}, {error}. {remedy}") from error


def read_object(
    space: str, notation: str, remedy: str, *, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the JSON object of a notation.

    Raises:
        ArchitectureError: it is no object, lacks a required key, or has a key that is neither required nor optional.
    """
    value = read_json(space, notation, remedy)
    check_keys(space, value, remedy, required=required, optional=optional)
    return dict(value)


def check_keys(space: str, value: Any, remedy: str, *, required: Sequence[str], optional: Sequence[str] = ()) -> None:
    """Raise ArchitectureError unless ``value`` is a JSON object with these keys."""
    wanted = f"an object with {', '.join(required)}"
    if not isinstance(value, dict):
        raise ArchitectureError(f"{space} notation: expected {wanted}, got {shown(value)}. {remedy}")
    for key in required:
        if key not in value:
            raise ArchitectureError(f"{space} notation: expected {wanted}, got no {key} in {shown(value)}. {remedy}")
    for key in value:
        if key not in required and key not in optional:
            raise ArchitectureError(f"{space} notation: expected {wanted}, got also {shown(key)}. {remedy}")


def check_list(space: str, name: str, value: Any, lengths: Sequence[int], remedy: str) -> list[Any]:
    """Return ``value`` if it is a list of one of these lengths; raise ArchitectureError otherwise."""
    if not isinstance(value, list) or len(value) not in lengths:
        got = f"{len(value)} of them" if isinstance(value, list) else shown(value)
        wanted = " or ".join(map(str, dict.fromkeys(lengths)))
        raise ArchitectureError(f"{space} notation: expected a list of {wanted} in {name}, got {got}. {remedy}")
    return value


def choice_index(space: str, name: str, value: object, choices: Sequence[object], remedy: str) -> int:
    """Return the position of ``value`` among ``choices``; ``true`` does not count as 1."""
    if isinstance(value, bool) or value not in choices:
        wanted = ", ".join(map(str, choices))
        raise ArchitectureError(f"{space}: expected {name} to be one of {wanted}, got {shown(value)}. {remedy}")
    return choices.index(value)


def read_integer(space: str, name: str, value: Any, minimum: int, remedy: str) -> int:
    """Return ``value`` if it is an integer of at least ``minimum``; ``true`` is none."""
    if type(value) is not int or value < minimum:
        raise ArchitectureError(
            f"{space} notation: expected {name} to be an integer of {minimum} or more, got {shown(value)}. {remedy}"
        )
    return int(value)
