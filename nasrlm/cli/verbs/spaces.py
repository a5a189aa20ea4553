"""The verb spaces: list the search spaces."""

from __future__ import annotations

from typing import Any

from nasrlm.cli.options import JsonOption
from nasrlm.cli.output import print_json, print_table, warn
from spaces import SearchSpace, UnknownSpaceError, get_space, space_names


def run(json: JsonOption = False) -> None:
    """List the search spaces, their sizes and published objectives."""
    spaces = _open_spaces()
    if json:
        print_json([{"name": s.name, "size": s.size, "objectives": list(s.objectives)} for s in spaces])
    else:
        print_table(["space", "size", "objectives"], [[s.name, s.size, ", ".join(s.objectives)] for s in spaces])


def _open_spaces() -> list[SearchSpace[Any]]:
    """Return all spaces by name; one of an installed package that fails to load is only reported."""
    spaces = []
    for name in space_names():
        try:
            spaces.append(get_space(name))
        except UnknownSpaceError as e:
            warn(str(e))
    return spaces
