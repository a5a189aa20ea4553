"""Options of ``nasrlm search`` that have no effect beside others: refused, for whoever gives one expects it."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from nasrlm.cli.idle_options import refuse_given

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
        refuse_given(context, ("acquisition", *_OF_THE_MODEL), _REAL, "surrogate")
    elif chosen["acquisition"] == "none":
        refuse_given(context, _OF_THE_MODEL, _GUIDED, "none")
        if chosen["evaluator"] != "measure":
            refuse_given(context, ("checkpoint",), f"{_GUIDED}, or --evaluator measure,", "neither")
    elif chosen["acquisition"] == "median":
        refuse_given(context, ("samples", "joint"), "--acquisition hypervolume", "median")
    if chosen["exhaustive"]:
        refuse_given(context, ("engine", "sampler", "generations"), "no --exhaustive", "it")


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
