"""The verb search: studies on predictions, or with real evaluations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import typer

from converters import to_measured_text
from converters.tables.counts import COUNTS
from nasrlm.cli import search_options as option
from nasrlm.cli.fronts import print_front
from nasrlm.cli.notations import read_notations
from nasrlm.cli.options import CheckpointOption, JsonOption, SeedOption, SpaceOption, require_space
from nasrlm.cli.output import print_json, say, warn
from nasrlm.cli.real_evaluators import complete_results, real_evaluator, table_evaluator
from nasrlm.cli.search_options import options_given, refuse_idle, refuse_idle_joint
from nasrlm.cli.space_predictions import warn_of_guesses
from nasrlm.cli.verbs import LIST
from nasrlm.objective import Goal
from nasrlm.predictor import Predictor
from spaces.space import SearchSpace
from studies.config import SearchConfig, twins_of
from studies.constraints import Constraint, objectives_of
from studies.evaluators import RealEvaluator, TableEvaluator, WithResults
from studies.folder import FRONT_FILE, HISTORY_FILE, STUDY_FILE, config_given, holds_study
from studies.guide import RISK, Guide, parse_risk
from studies.report import StudyResult
from studies.search import search
from studies.surrogates.memory import TextMemory
from studies.surrogates.surrogate import Surrogate

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
    searched = config.searched(chosen)
    true_values = None if truth is None else table_evaluator(searched, truth, config.objectives)
    known_results = None if results is None else complete_results(searched, results, config.objectives)
    if known_results is not None and not recorded:
        config = _begun_with(config, known_results)
    options: dict[str, Any] = {"truth": true_values, "resume": resume, "progress": True}
    result = _search(config, chosen, out, checkpoint, on_error, known_results, **options)
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


def _begun_with(config: SearchConfig, results: TableEvaluator[Any]) -> SearchConfig:
    """Return the config of a search that starts from known results.

    Raises:
        ValueError: the search needs no further results, or there are too many to start without a model.
    """
    count = len({results.space.architecture_key(architecture) for architecture in results.known})
    if count >= config.trials:
        raise ValueError(
            f"--trials: expected more than the {count} results of {results.name}, which count as trials, "
            f"got {config.trials}."
        )
    if config.guide is None and count + len(config.warm_start) > config.population_size:
        raise ValueError(
            f"--results: expected at most one population ({config.population_size}) to start from with --acquisition "
            f"none, got {count + len(config.warm_start)} architectures. Make --population larger."
        )
    notations = map(results.space.format, results.known)
    return replace(config, warm_start=tuple(dict.fromkeys([*notations, *config.warm_start])))


def _search(
    config: SearchConfig,
    space: SearchSpace[Any],
    out: Path,
    checkpoint: Path | None,
    on_error: str,
    results: TableEvaluator[Any] | None,
    **options: Any,
) -> StudyResult:
    """Search on predictions, with real results guided by the model, or with real results alone."""
    predictor = cache(lambda: Predictor.from_pretrained(checkpoint).of_space(space.address))
    write = partial(to_measured_text, space)
    if config.evaluator == "surrogate":
        surrogate = Surrogate(space, predictor(), objectives=config.objectives, to_text=write)
        config = _with_checkpoint(config, space, predictor())
        return search(config, space, surrogate, out, **options)
    to_text = TextMemory(write)
    searched, names = config.searched(space), config.objectives
    evaluator = real_evaluator(config.evaluator, searched, names, to_text, predictor, on_error)
    if results is not None:
        evaluator = WithResults(evaluator, results)
    guide = _usable_guide(config, evaluator, predictor)
    if guide is not None or evaluator.modelled:
        config = _with_checkpoint(config, space, predictor())
    if guide is None:
        return search(replace(config, guide=None), space, evaluator, out, known=evaluator.known, **options)
    from studies.search_with_model import search_with_model  # here: takes two seconds

    return search_with_model(config, space, evaluator, out, predictor=predictor(), to_text=to_text, **options)


def _with_checkpoint(config: SearchConfig, space: SearchSpace[Any], predictor: Predictor) -> SearchConfig:
    """Return the config with the checkpoint that predicts; warn of predictions that are guesses."""
    if known := [name for name in config.objectives if name in predictor.objectives and name not in COUNTS]:
        warn_of_guesses(predictor, [space.address], known)
    return replace(config, checkpoint_sha256=predictor.checkpoint.sha256)


def _usable_guide(
    config: SearchConfig, evaluator: RealEvaluator[Any], predictor: Callable[[], Predictor]
) -> Guide | None:
    """Return the config's guide; None, with a warning, if the model lacks an objective and will not learn it."""
    if config.guide is None:
        return None
    unknown = [name for name in config.objectives if name not in (*predictor().objectives, *COUNTS)]
    if config.guide.joint:
        refuse_idle_joint(config.evaluator, evaluator.modelled, unknown)
    if unknown and not config.guide.adapt_every:
        warn(f"the checkpoint does not know {', '.join(unknown)}; the search continues without it.")
        return None
    return config.guide
