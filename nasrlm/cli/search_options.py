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
        min=1, help="Distinct architectures to evaluate; 1000 if left out, or what a resumed study was given."
    ),
]
Engine = Annotated[str, typer.Option(help=f"{' or '.join(SAMPLERS)}.")]
Sampler = Annotated[
    str, typer.Option(help="; ".join(f"{name}: {', '.join(known)}" for name, known in SAMPLERS.items()) + ".")
]
Constraint = Annotated[
    list[str] | None,
    typer.Option(help="A bound, such as macs@onnx<=5e7; a preference with soft: before it. May be repeated."),
]
Evaluator = Annotated[
    str,
    typer.Option(
        help="What evaluates: the model (surrogate), or real results of table:PATH, module:function or measure.",
        rich_help_panel=_EVALUATED,
    ),
]
OnError = Annotated[
    Literal["stop", "skip"],
    typer.Option(
        help="What to do if module:function raises or its answer is unusable; skip leaves that network out.",
        rich_help_panel=_EVALUATED,
    ),
]
Truth = Annotated[
    Path | None, typer.Option(help="Table of true values to judge the front by.", rich_help_panel=_EVALUATED)
]
Storage = Annotated[
    str | None,
    typer.Option(
        help="Optuna storage, a URL or a journal file, that several workers of a guided search may share.",
        rich_help_panel=_EVALUATED,
    ),
]
Population = Annotated[int, typer.Option(min=2, help="Architectures proposed at a time.")]
Acquisition = Annotated[
    str,
    typer.Option(
        help="By what the model chooses networks to evaluate: hypervolume or median; none: without the model.",
        rich_help_panel=_GUIDED_BY,
    ),
]
Gate = Annotated[
    bool, typer.Option(help="Prune networks that are unlikely to move the front.", rich_help_panel=_GUIDED_BY)
]
Risk = Annotated[
    str,
    typer.Option(
        help="The gate goes by values that a network beats with this chance at most; or objective=risk,….",
        rich_help_panel=_GUIDED_BY,
    ),
]
Batch = Annotated[
    int,
    typer.Option(
        min=1, help="Real evaluations after which candidates are predicted again.", rich_help_panel=_GUIDED_BY
    ),
]
Generations = Annotated[
    int, typer.Option(min=1, help="Populations proposed on predictions for each batch.", rich_help_panel=_GUIDED_BY)
]
AdaptEvery = Annotated[
    int,
    typer.Option(
        min=0,
        help="Real results after which the predictions learn from all of them; 0: never.",
        rich_help_panel=_GUIDED_BY,
    ),
]
Samples = Annotated[
    int,
    typer.Option(
        min=1,
        help="Draws from each candidate's predictions, to estimate its expected hypervolume.",
        rich_help_panel=_GUIDED_BY,
    ),
]
Joint = Annotated[
    bool,
    typer.Option(
        "--joint",
        help="Draw objectives jointly, as the model does until it learns from results.",
        rich_help_panel=_GUIDED_BY,
    ),
]
Exhaustive = Annotated[
    bool,
    typer.Option(
        "--exhaustive",
        help="Consider every architecture for each batch, in spaces of up to some ten thousand.",
        rich_help_panel=_GUIDED_BY,
    ),
]
WarmStart = Annotated[
    Path | None,
    typer.Option(help="Known architectures to evaluate first: one a line, or a table.", rich_help_panel=_EVALUATED),
]
Results = Annotated[
    Path | None,
    typer.Option(
        help="Table of results known already: taken instead of asking the function; they count as trials.",
        rich_help_panel=_EVALUATED,
    ),
]
Twins = Annotated[
    str | None,
    typer.Option(
        help="Evaluate isomorphic architectures once, or apart (default if real costs differ).",
        rich_help_panel=_EVALUATED,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with the study in --out; options left out are as they were.",
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
            f"{', '.join(modelled)} from the model as certain. It has no effect: leave it out."
        )
    if unknown:
        raise ValueError(
            f"--joint: expected objectives of the checkpoint, got {', '.join(unknown)}, which it is yet to learn. "
            "It has no effect: leave it out."
        )
