"""Verbs about studies: search, plot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from converters import to_measured_text
from nasrlm.cli.inputs import CheckpointOption, SpaceOption, require_space
from nasrlm.cli.output import JsonOption, SeedOption, print_json, print_table, show_progress, spell_interval
from nasrlm.objective import Goal
from nasrlm.predictor import Predictor
from nasrlm.table import read_table
from spaces.space import SearchSpace
from studies.config import Constraint, SearchConfig
from studies.evaluators import Evaluator, TableEvaluator
from studies.plots import plot_studies, plot_study
from studies.report import StudyResult
from studies.search import search
from studies.surrogate import Surrogate


def register(app: typer.Typer) -> None:
    """Add the verbs of this file."""
    app.command("search")(search_space)
    app.command("plot")(plot)


def search_space(
    objectives: Annotated[str, typer.Option(help="max:… or min:… goals, separated by commas.")],
    out: Annotated[Path, typer.Option(help="Folder of the study.")],
    space: SpaceOption = None,
    trials: Annotated[int, typer.Option(min=1, help="Distinct architectures to evaluate.")] = 1000,
    engine: Annotated[str, typer.Option(help="optuna or pymoo.")] = "optuna",
    sampler: Annotated[str, typer.Option(help="nsga2; with optuna also nsga3, tpe, random.")] = "nsga2",
    constraint: Annotated[list[str] | None, typer.Option(help="For example latency_ms@pixel3<=10.")] = None,
    evaluator: Annotated[str, typer.Option(help="surrogate, or table:PATH to answer from labels.")] = "surrogate",
    truth: Annotated[Path | None, typer.Option(help="Table of true values to judge the front by.")] = None,
    storage: Annotated[str | None, typer.Option(help="Optuna storage, a URL or a journal file.")] = None,
    population: Annotated[int, typer.Option(min=2, help="Architectures proposed at a time.")] = 32,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the study in --out.")] = False,
    checkpoint: CheckpointOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Search a space for its Pareto front."""
    chosen = require_space(space, "search")
    config = SearchConfig(
        space=chosen.name,
        goals=tuple(Goal.parse(goal) for goal in objectives.split(",")),
        trials=trials,
        engine=engine,
        sampler=sampler,
        constraints=tuple(Constraint.parse(text) for text in constraint or []),
        population_size=population,
        seed=seed,
        evaluator=evaluator,
        storage=storage,
    )
    true_values = None
    if truth is not None:
        true_values = TableEvaluator(chosen, read_table(truth, require=config.objectives), objectives=config.objectives)
    answers = _evaluator(evaluator, chosen, config.objectives, checkpoint)
    result = search(config, chosen, answers, out, truth=true_values, resume=resume, progress=show_progress())
    if json:
        print_json(result.to_dict())
    else:
        print_front(result, config.objectives)
        print(f"front.csv, front.png, front.html, history.parquet, study.json: {out}")


def plot(
    folders: Annotated[list[Path], typer.Argument(help="A study's folder; several are compared.")],
    out: Annotated[Path | None, typer.Option(help="Where to write; the first study's folder if left out.")] = None,
    json: JsonOption = False,
) -> None:
    """Draw the figures of a finished or running study, or compare several."""
    target = out or folders[0]
    made = plot_study(folders[0], target) if len(folders) == 1 else plot_studies(folders, target)
    if json:
        print_json([str(path) for path in made])
    else:
        print("\n".join(map(str, made)))


def print_front(result: StudyResult, objectives: Sequence[str]) -> None:
    """The front as a table, best in the first goal first, then its hypervolume."""
    rows = [[row["architecture"], *[spell_interval(row[name]) for name in objectives]] for row in result.front]
    print_table(["architecture", *objectives], rows, title=f"Pareto front, {len(rows)} architectures")
    line = f"{result.evaluations:,} evaluations, {result.pruned} pruned, hypervolume {result.hypervolume:.4g}"
    if result.truth is not None:
        line += f", {result.truth.hypervolume_ratio:.4f} of the true front's"
    print(f"{line}, {result.seconds:.0f} s" + (f"; {result.stopped}" if result.stopped else ""))


def _evaluator(
    name: str, space: SearchSpace[Any], objectives: Sequence[str], checkpoint: Path | None
) -> Evaluator[Any]:
    if name == "surrogate":
        predictor = Predictor.from_pretrained(checkpoint)
        return Surrogate(space, predictor, objectives=objectives, to_text=partial(to_measured_text, space))
    kind, _, path = name.partition(":")
    if kind == "table" and path:
        return TableEvaluator(space, read_table(path, require=objectives), objectives=objectives)
    raise ValueError(f"--evaluator: expected surrogate or table:PATH, got {name!r}.")
