"""The verbs of the command line, one module each, imported only when run, since all together take seconds."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword
from types import ModuleType
from typing import Any

import typer
import typer.core

# The help of every verb in ``nasrlm --help``, by panel; the docstring of the verb begins with it.
PANELS = {
    "Networks": {
        "spaces": "List the search spaces, their sizes and published objectives.",
        "sample": (
            "Draw architectures; print one per line in the space's published notation or write a table to learn from."
        ),
        "convert": "Print the canonical ONNX text of a network or write it to a file; or convert several, or a table.",
        "stats": "Count parameters, multiply-accumulates and more; live_ counts are those of the canonical graph.",
        "measure": "Measure latencies in ONNX Runtime on this machine: warm, interleaved runs; median and quartiles.",
    },
    "Predict and search": {
        "predict": "Predict objectives with calibrated intervals.",
        "search": "Search a space for its Pareto front.",
        "plot": "Draw the figures of a finished or running study, or compare several studies.",
        "serve": "Serve predictions over HTTP: POST /predict, POST /convert, GET /health; /docs describes them.",
    },
    "Train and adapt": {
        "adapt": "Learn new objectives from a few labels; all others are predicted as before. Test rows are not used.",
        "refine": (
            "Predict costs as sums over operators where sums fit rows of split valid better. Test rows are not used."
        ),
        "train": "Train a model; the same command resumes a stopped run. Works with torchrun and accelerate launch.",
        "teach": (
            "Draw architectures and label them with predictions of graph-feature models fitted to the train rows."
        ),
        "import": "Convert an official benchmark file to a table of architectures, or of source code, and labels.",
    },
    "Evaluate": {
        "evaluate": "Compare predictions with the labels of tables: rank correlation, error and coverage.",
        "benchmark": (
            "Compare methods that rank test rows of a space from a few labels; the same command resumes a stopped run."
        ),
        "info": "Print versions, torch devices, and what the checkpoint was trained on.",
    },
}
VERBS = {name: help_ for panel in PANELS.values() for name, help_ in panel.items()}

LIST = "A,B,…"  # metavar of options with several values in one word
# Options that some verbs take several times, or whose files one might expect to be read together.
REPEATED = frozenset({"--space", "--table", "--results", "--warm-start"})


class Verbs(typer.core.TyperGroup):
    """A group that has an entry with name and help for every verb, and loads the one that is run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the name, command and remaining words of the verb that is run."""
        name, command, words = super().resolve_command(ctx, args)
        if name in VERBS:
            command = load_verb(name)
            _refuse_repeated(command, words)
        return name, command, words


def _refuse_repeated(command: Any, words: Sequence[str]) -> None:
    """Refuse a repeated option that is one of ``REPEATED`` or takes a list: only the last would count.

    For other options the last one counts, so that words appended to a script's command can override it.
    """
    for option in command.params:
        given = sum(word.partition("=")[0] in option.opts for word in words)
        is_list = getattr(option, "metavar", None) == LIST
        if given > 1 and (is_list or not REPEATED.isdisjoint(option.opts)) and not option.multiple:
            advice = " Separate several names with commas." if is_list else ""
            raise ValueError(f"{option.opts[0]}: expected it once, got it {given} times.{advice}")


def load_verb(name: str) -> Any:
    """Return the command of a verb, with its options."""
    from nasrlm.cli.output import results_alone  # here: takes a tenth of a second

    app = typer.Typer()
    app.command(name)(_module(name).run)
    app.callback()(_entry)  # without a callback, a single verb would not be a group
    command = typer.main.get_group(app).commands[name]
    assert command.callback is not None, "a verb does something"
    command.callback = results_alone()(command.callback)
    return command


def register(app: typer.Typer) -> None:
    """Add an entry for every verb."""
    for panel, verbs in PANELS.items():
        for name, help_ in verbs.items():
            app.command(name, help=help_, rich_help_panel=panel)(_entry)


def _module(name: str) -> ModuleType:
    """Import the module of a verb, whose function ``run`` is the command."""
    return import_module(f"{__name__}.{name}_" if iskeyword(name) else f"{__name__}.{name}")


def _entry() -> None:
    """Stand for a verb until it is run."""
