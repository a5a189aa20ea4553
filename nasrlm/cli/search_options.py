"""The options of ``nasrlm search``; those that have no effect in combination with others are refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from nasrlm.cli.idle_options import refuse_given
from nasrlm.named_function import FUNCTION_NAME
from studies.config import SAMPLERS, without_password
from studies.folder import config_given

_OF_ONE_RUN = ("out", "resume", "json")
_OF_CONFIG = ("trials", "warm_start")  # options whose final values are in the config
_EVALUATED = "Real evaluations"  # panels of the help
_GUIDED_BY = "How the model guides real evaluations"


def _as_before(context: typer.Context, option: typer.CallbackParam, value: Any) -> Any:
    """Once both --out and --resume are parsed, take options that are left out from the study."""
    read = {**context.params, str(option.name): value}
    if read.get("resume") and "out" in read:
        context.default_map = config_given(Path(read["out"])).get("options", {})
    return value


Out = Annotated[Path, typer.Option(help="Folder of the study.", is_eager=True, callback=_as_before)]
Trials = Annotated[
    int | None,
    typer.Option(
        min=1, help="Number of distinct architectures to evaluate; default: 1000, or that of the study that is resumed."
    ),
]
Engine = Annotated[str, typer.Option(help=f"Search library: {' or '.join(SAMPLERS)}.")]
Sampler = Annotated[
    str,
    typer.Option(
        help="Samplers of " + "; of ".join(f"{name}: {', '.join(known)}" for name, known in SAMPLERS.items()) + "."
    ),
]
Constraint = Annotated[
    list[str] | None,
    typer.Option(
        help="Bound on an objective, such as macs@onnx<=5e7; with the prefix soft: only a preference. May be repeated."
    ),
]
Evaluator = Annotated[
    str,
    typer.Option(
        help="Source of results: the model (surrogate), a table (table:PATH), a Python function (module:function), or "
        "latencies measured on this machine (measure).",
        rich_help_panel=_EVALUATED,
    ),
]
OnError = Annotated[
    Literal["stop", "skip"],
    typer.Option(
        help="What to do if module:function raises an error or returns an unusable result: stop, or skip the network.",
        rich_help_panel=_EVALUATED,
    ),
]
Truth = Annotated[
    Path | None, typer.Option(help="Table of true values to evaluate the front with.", rich_help_panel=_EVALUATED)
]
Storage = Annotated[
    str | None,
    typer.Option(
        help="Optuna storage (URL or journal file) that several workers of a guided search can share.",
        rich_help_panel=_EVALUATED,
    ),
]
Population = Annotated[int, typer.Option(min=2, help="Number of architectures proposed at a time.")]
Acquisition = Annotated[
    str,
    typer.Option(
        help="How the model chooses networks: by expected hypervolume improvement (hypervolume) or the improvement of "
        "predicted medians (median); none: search without the model.",
        rich_help_panel=_GUIDED_BY,
    ),
]
Gate = Annotated[
    bool, typer.Option(help="Prune networks that are unlikely to improve the front.", rich_help_panel=_GUIDED_BY)
]
Risk = Annotated[
    str,
    typer.Option(
        help="Largest probability that a network is better than the optimistic values that the gate assumes for it; or "
        "one per objective: objective=risk,….",
        rich_help_panel=_GUIDED_BY,
    ),
]
Batch = Annotated[
    int,
    typer.Option(
        min=1, help="Number of real evaluations before candidates are predicted again.", rich_help_panel=_GUIDED_BY
    ),
]
Generations = Annotated[
    int,
    typer.Option(
        min=1, help="Number of populations evaluated by predictions to choose each batch.", rich_help_panel=_GUIDED_BY
    ),
]
AdaptEvery = Annotated[
    int,
    typer.Option(
        min=0,
        help="Number of new real results after which the model learns from all results; 0: never.",
        rich_help_panel=_GUIDED_BY,
    ),
]
Samples = Annotated[
    int,
    typer.Option(
        min=1,
        help="Number of samples of each candidate's predictions, to estimate its expected hypervolume improvement.",
        rich_help_panel=_GUIDED_BY,
    ),
]
Joint = Annotated[
    bool,
    typer.Option(
        "--joint",
        help="Sample objectives jointly; once the model has learned from results, it samples them independently.",
        rich_help_panel=_GUIDED_BY,
    ),
]
Exhaustive = Annotated[
    bool,
    typer.Option(
        "--exhaustive",
        help="Consider every architecture for each batch; for spaces of up to about ten thousand.",
        rich_help_panel=_GUIDED_BY,
    ),
]
WarmStart = Annotated[
    Path | None,
    typer.Option(
        help="File of known architectures to evaluate first: one per line, or a table.", rich_help_panel=_EVALUATED
    ),
]
Results = Annotated[
    Path | None,
    typer.Option(
        help="Table of known results, used instead of calling the function; they count as trials.",
        rich_help_panel=_EVALUATED,
    ),
]
Twins = Annotated[
    str | None,
    typer.Option(
        help="once: evaluate isomorphic architectures only once; apart: each of them (default if real costs differ).",
        rich_help_panel=_EVALUATED,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue the study in --out; options that are left out keep their values from the study.",
        is_eager=True,
        callback=_as_before,
    ),
]

_OF_THE_MODEL = ("gate", "risk", "batch", "generations", "adapt_every", "samples", "joint", "exhaustive")
_REAL = "--evaluator table:PATH, module:function or measure"
_GUIDED = "--acquisition hypervolume or median"


def options_given(context: typer.Context) -> dict[str, Any]:
    """Return the options of the command line and of the study that it resumes, as stored in JSON, without passwords."""
    given: dict[str, Any] = {}
    for name, value in context.params.items():
        source = context.get_parameter_source(name)
        if source is None or source.name == "DEFAULT" or name in (*_OF_ONE_RUN, *_OF_CONFIG):
            continue
        if name == "storage" and without_password(value) != value:
            continue
        given[name] = str(value.absolute()) if isinstance(value, Path) else value
    return given


def refuse_idle(context: typer.Context) -> None:
    """Refuse an option on the command line that has no effect.

    Raises:
        ValueError: there is one; the message names it and what it needs.
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
    if not FUNCTION_NAME.fullmatch(chosen["evaluator"]):
        refuse_given(context, ("on_error", "results"), "--evaluator module:function", chosen["evaluator"])
    if chosen["exhaustive"]:
        refuse_given(context, ("engine", "sampler", "generations"), "no --exhaustive", "it")


def refuse_idle_joint(evaluator: str, modelled: Sequence[str], unknown: Sequence[str]) -> None:
    """Refuse ``--joint`` if no samples would be drawn jointly.

    Args:
        evaluator: in words.
        modelled: objectives that it takes from the model.
        unknown: objectives that the checkpoint does not know.

    Raises:
        ValueError: no samples would be drawn jointly; the message says why.
    """
    if modelled:
        raise ValueError(
            f"--joint: expected real results of every objective, got --evaluator {evaluator}, which takes "
            f"{', '.join(modelled)} from the model without uncertainty. It has no effect: leave it out."
        )
    if unknown:
        raise ValueError(
            f"--joint: expected objectives that the checkpoint knows, got {', '.join(unknown)}, which it must "
            "learn first. It has no effect: leave it out."
        )
