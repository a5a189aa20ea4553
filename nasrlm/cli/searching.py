"""Search with the evaluator and the guide of a config, on predictions, real results or both; print the front."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from converters import to_measured_text
from converters.tables.counts import COUNTS
from nasrlm.cli.guesses import warn_of_guesses
from nasrlm.cli.output import print_table, say, warn
from nasrlm.cli.real_evaluators import complete_results, real_evaluator, table_evaluator
from nasrlm.cli.search_options import refuse_idle_joint
from nasrlm.prediction import spell_interval
from nasrlm.predictor import Predictor
from spaces.space import SearchSpace
from studies.columns import SOFT_MET
from studies.config import SearchConfig
from studies.evaluators import RealEvaluator, TableEvaluator, WithResults
from studies.folder import config_given
from studies.guide import Guide
from studies.report import StudyResult
from studies.search import search
from studies.surrogates.memory import TextMemory


def run_search(
    config: SearchConfig,
    space: SearchSpace[Any],
    out: Path,
    checkpoint: Path | None,
    on_error: str,
    truth: Path | None,
    results: Path | None,
    *,
    resume: bool,
) -> StudyResult:
    """Search on predictions, with real results guided by the model, or with real results alone; with a bar on stderr.

    Args:
        config: of the search.
        space: that is searched.
        out: folder of the study.
        checkpoint: folder; None for the released one.
        on_error: "skip" if the search continues after an error in the user's function.
        truth: table of true values to evaluate the front with.
        results: table of known results, from which a new search starts.
        resume: whether the study in the folder is continued.

    Raises:
        ValueError: a table or the evaluator cannot be used, or an option has no effect.
        StudyError: the folder cannot be used.
    """
    searched = config.searched(space)
    true_values = None if truth is None else table_evaluator(searched, truth, config.objectives)
    known_results = None if results is None else complete_results(searched, results, config.objectives)
    if known_results is not None and not (resume and config_given(out)):
        config = _begun_with(config, known_results)
    options: dict[str, Any] = {"truth": true_values, "resume": resume, "progress": True}
    predictor = cache(lambda: Predictor.from_pretrained(checkpoint).of_space(space.address))
    if config.evaluator == "surrogate":
        return search(_with_checkpoint(config, space, predictor()), space, predictor(), out, **options)
    to_text = TextMemory(partial(to_measured_text, space))
    evaluator = real_evaluator(config.evaluator, searched, config.objectives, to_text, predictor, on_error)
    if known_results is not None:
        evaluator = WithResults(evaluator, known_results)
    guide = _usable_guide(config, evaluator, predictor)
    if guide is not None or evaluator.modelled:
        config = _with_checkpoint(config, space, predictor())
    if guide is None:
        return search(replace(config, guide=None), space, evaluator, out, known=evaluator.known, **options)
    from studies.search_with_model import search_with_model  # here: takes two seconds, for these searches alone

    return search_with_model(config, space, evaluator, out, predictor=predictor(), to_text=to_text, **options)


def print_front(result: StudyResult, objectives: Sequence[str]) -> None:
    """Print the front as a table, sorted by the first goal, then its hypervolume."""
    rows = [[row["architecture"], *[_spell(row[name]) for name in objectives]] for row in result.front]
    columns = ["architecture", *objectives]
    if any(SOFT_MET in row for row in result.front):
        columns.append("soft constraints")
        rows = [[*cells, "met" if row[SOFT_MET] else "broken"] for cells, row in zip(rows, result.front, strict=True)]
    print_table(columns, rows, title=f"Pareto front, {_counted(len(rows), 'architecture')}")
    line = f"{_counted(result.evaluations, 'evaluation')}, "
    line += f"{result.failed:,} more without a result, " if result.failed else ""
    line += f"{result.pruned:,} pruned"
    line += f", hypervolume {result.hypervolume:.4g} (relative to the worst values found)"
    if result.truth is not None and not math.isnan(result.truth.hypervolume_ratio):
        line += f", {result.truth.hypervolume_ratio:.4f} of the true front's"
    unmet = [] if result.front else ["no architecture has all objectives known and all constraints met"]
    strange = result.truth.unknown if result.truth is not None else 0
    unknown = (
        f"{strange:,} of {_counted(len(rows), 'architecture')} of the front have no true values" if strange else None
    )
    words = [f"{line}, {result.seconds:.0f} s", result.stopped, unknown, *unmet, *result.unmet]
    say("; ".join(filter(None, words)))


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


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _spell(answer: Mapping[str, float]) -> float | str:
    """Format a prediction with its interval, and a real result, which has none, as a number."""
    return answer["median"] if answer["low"] == answer["high"] else spell_interval(answer)
