"""Options that have no effect beside others: whoever gives one expects it to have."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def refuse_given(context: typer.Context, names: Sequence[str], needed: str, found: str) -> None:
    """Complain of an option that stands on the command line.

    Args:
        context: of the verb.
        names: parameters that have no effect.
        needed: options beside which they would.
        found: what is there instead.

    Raises:
        ValueError: naming the first of them.
    """
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = "no-gate" if name == "gate" and not context.params[name] else name.replace("_", "-")
            raise ValueError(f"--{option}: expected {needed} beside it, got {found}. It has no effect: leave it out.")
