"""Options of ``nasrlm search`` that have no effect beside others: refused, for whoever gives one expects it."""

from __future__ import annotations

from collections.abc import Sequence

import typer

_OF_THE_MODEL = ("gate", "risk", "batch", "generations", "adapt_every", "samples", "joint", "exhaustive")
_REAL = "--evaluator table:PATH, module:function or measure"
_GUIDED = "--acquisition hypervolume or median"


def refuse_idle(context: typer.Context) -> None:
    """Complain of an option on the command line that changes nothing.

    Raises:
        ValueError: naming it, and beside what it would.
    """
    chosen = context.params
    if chosen["evaluator"] == "surrogate":
        _refuse(context, ("acquisition", *_OF_THE_MODEL), _REAL, "surrogate")
    elif chosen["acquisition"] == "none":
        _refuse(context, _OF_THE_MODEL, _GUIDED, "none")
        if chosen["evaluator"] != "measure":
            _refuse(context, ("checkpoint",), f"{_GUIDED}, or --evaluator measure,", "neither")
    elif chosen["acquisition"] == "median":
        _refuse(context, ("samples", "joint"), "--acquisition hypervolume", "median")
    if chosen["exhaustive"]:
        _refuse(context, ("engine", "sampler", "generations"), "no --exhaustive", "it")


def _refuse(context: typer.Context, names: Sequence[str], needed: str, found: str) -> None:
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = "no-gate" if name == "gate" and not context.params[name] else name.replace("_", "-")
            raise ValueError(f"--{option}: expected {needed} beside it, got {found}. It has no effect: leave it out.")


def refuse_idle_joint(evaluator: str, modelled: Sequence[str], unknown: Sequence[str]) -> None:
    """Complain of ``--joint`` where no sample would be drawn jointly.

    Args:
        evaluator: in words.
        modelled: objectives that it takes from the model.
        unknown: objectives that the checkpoint does not know.

    Raises:
        ValueError: naming them.
    """
    if modelled:
        raise ValueError(
            f"--joint: expected real results of every objective, got --evaluator {evaluator}, which takes "
            f"{', '.join(modelled)} from the model as certain. It has no effect: leave it out."
        )
    if unknown:
        raise ValueError(
            f"--joint: expected objectives of the checkpoint, got {', '.join(unknown)}, which it is yet to learn. "
            "It has no effect: leave it out."
        )
