"""The verb search: studies on predictions, or with real evaluations."""

from __future__ import annotations

from typing import Annotated

import typer

from nasrlm.cli import search_options as option
from nasrlm.cli.notations import read_notations
from nasrlm.cli.options import CheckpointOption, JsonOption, SeedOption, SpaceOption, require_space
from nasrlm.cli.output import print_json, say, warn
from nasrlm.cli.search_options import options_given, refuse_idle
from nasrlm.cli.verbs import LIST
from nasrlm.objective import Goal
from studies.config import SearchConfig, twins_of
from studies.constraints import Constraint, objectives_of
from studies.folder import FRONT_FILE, HISTORY_FILE, STUDY_FILE, config_given, holds_study
from studies.guide import RISK, Guide, parse_risk

TRIALS = 1000  # default of a new study
MOST_OF_GP = 64  # proposals of sampler gp on predictions; they take about a minute


def run(
    context: typer.Context,
    out: option.Out,
    objectives: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Objectives to optimize, max:NAME or min:NAME, separated by commas."),
    ] = None,
    space: SpaceOption = None,
    trials: option.Trials = None,
    engine: option.Engine = "optuna",
    sampler: option.Sampler = "nsga2",
    constraint: option.Constraint = None,
    evaluator: option.Evaluator = "surrogate",
    on_error: option.OnError = "stop",
    truth: option.Truth = None,
    storage: option.Storage = None,
    population: option.Population = 32,
    acquisition: option.Acquisition = Guide.acquisition,
    gate: option.Gate = Guide.gate,
    risk: option.Risk = str(RISK),
    batch: option.Batch = Guide.batch_size,
    generations: option.Generations = Guide.generations,
    adapt_every: option.AdaptEvery = Guide.adapt_every,
    samples: option.Samples = Guide.samples,
    joint: option.Joint = Guide.joint,
    exhaustive: option.Exhaustive = Guide.exhaustive,
    warm_start: option.WarmStart = None,
    results: option.Results = None,
    twins: option.Twins = None,
    resume: option.Resume = False,
    checkpoint: CheckpointOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Search a space for its Pareto front."""
    refuse_idle(context)
    if resume and space is None:
        got = "another" if holds_study(out) else "none"
        raise ValueError(
            f"{out}: expected a study of `nasrlm search`, which stores its options, got {got}. Give --space."
        )
    if resume and not holds_study(out):
        warn(f"{out}: expected a study to resume, got none: a new one is started.")
    chosen = require_space(space, "search")
    if objectives is None:
        raise ValueError(
            "search: expected --objectives, got none. Example: max:accuracy@cifar10,min:latency_ms@pixel3."
        )
    guide = None
    if evaluator != "surrogate" and acquisition != "none":
        guide = Guide(
            acquisition=acquisition,
            gate=gate,
            risk=parse_risk(risk),
            batch_size=batch,
            generations=generations,
            adapt_every=adapt_every,
            samples=samples,
            exhaustive=exhaustive,
            joint=joint,
        )
    goals = tuple(Goal.parse(goal) for goal in objectives.split(","))
    constraints = tuple(dict.fromkeys(map(Constraint.parse, constraint or [])))
    if twins is None:
        twins = "once" if evaluator == "surrogate" else twins_of(chosen, objectives_of(goals, constraints))
    recorded = config_given(out) if resume else {}
    begin_with = recorded.get("warm_start", ())
    if warm_start is not None and not (begin_with and results):
        begin_with = read_notations(warm_start, chosen)
    config = SearchConfig(
        space=chosen.name,
        goals=goals,
        trials=trials or recorded.get("trials") or TRIALS,
        engine=engine,
        sampler=sampler,
        constraints=constraints,
        population_size=population,
        seed=seed,
        evaluator=evaluator,
        storage=storage,
        guide=guide,
        twins=twins,
        warm_start=tuple(begin_with),
        options=options_given(context),
    )
    _warn_of_slow_proposals(config)

    from nasrlm.cli.searching import print_front, run_search  # here: takes seconds

    result = run_search(config, chosen, out, checkpoint, on_error, truth, results, resume=resume)
    if result.failed and not result.evaluations:
        warn(f"{out}: expected results, got none for {result.failed:,} architectures.")
    if json:
        print_json(result.to_dict())
    else:
        print_front(result, config.objectives)
        say(f"{FRONT_FILE}, {HISTORY_FILE}, {STUDY_FILE}, report.html and figures: {out}")


def _warn_of_slow_proposals(config: SearchConfig) -> None:
    if config.sampler != "gp" or config.guide is None or config.guide.exhaustive:
        return
    proposed = config.population_size * config.guide.generations
    if proposed > MOST_OF_GP:
        warn(
            f"--sampler gp: each batch needs {proposed} proposals, which take a second or more each. Give fewer "
            "--generations, a smaller --population, or --acquisition none, which needs one proposal per evaluation."
        )
