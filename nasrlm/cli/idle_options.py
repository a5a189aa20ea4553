"""Refuse options that have no effect in combination with others."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def refuse_given(context: typer.Context, names: Sequence[str], needed: str, found: str) -> None:
    """Refuse options that were given on the command line and have no effect.

    Args:
        context: of the verb.
        names: parameters that have no effect.
        needed: options with which they would have one.
        found: what was given instead.

    Raises:
        ValueError: any was given; the message names all of them.
    """
    given = [name for name in names if _is_on_command_line(context, name)]
    if not given:
        return
    options = ", ".join(_spelled(context, name) for name in given)
    it, has = ("it", "It has no effect: leave it") if len(given) == 1 else ("them", "They have no effect: leave them")
    raise ValueError(f"{options}: expected {needed} with {it}, got {found}. {has} out.")


def _is_on_command_line(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _spelled(context: typer.Context, name: str) -> str:
    return "--no-gate" if name == "gate" and not context.params[name] else f"--{name.replace('_', '-')}"
