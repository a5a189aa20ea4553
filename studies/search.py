"""A search: an engine proposes architectures, an evaluator evaluates them, and a folder holds the study."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tqdm import tqdm
from typing_extensions import TypeIs

from converters import to_measured_text
from nasrlm.arguments import check_kind, checked_folder
from spaces import SearchSpace
from spaces.registry import opened
from studies.config import SearchConfig
from studies.evaluators import Evaluator, TableEvaluator, UsersFunction, as_evaluator, config_with_evaluator
from studies.folder import HISTORY_FILE
from studies.history import History
from studies.history_writer import HistoryWriter
from studies.problem import Problem, load_engine
from studies.report import StudyResult
from studies.study import check_architectures, close_study, open_study
from studies.surrogates.surrogate import Surrogate

if TYPE_CHECKING:
    from nasrlm.predictor import Predictor  # only for types: a search of a table does without torch

A = TypeVar("A", bound=Hashable)


def search(
    config: SearchConfig,
    space: SearchSpace[A] | str,
    evaluator: Evaluator[A] | Predictor | UsersFunction,
    out: Path | str,
    *,
    truth: TableEvaluator[A] | None = None,
    known: Sequence[A] | None = None,
    resume: bool = False,
    progress: bool = False,
    figures: bool = True,
) -> StudyResult:
    """Search, and write front.csv, history.parquet, study.json and the figures of ``studies.figures.plots.plot_study``.

    Args:
        config: the configuration, without a guide.
        space: the search space or its name.
        evaluator: gives ``config.objectives``: a ``nasrlm.Predictor``, a ``Surrogate`` (a predictor with your own
            texts), a ``TableEvaluator``, your own evaluator, or a function that returns, for a notation, a mapping from
            objective names to values.
        out: the study's folder, created if missing.
        truth: true labels of ``config.objectives``, to judge the final front.
        known: the only architectures to propose, such as a table's; None for the whole space.
        resume: continue the study in ``out``, possibly with more trials than before. The same seed proposes the same
            architectures again, whose results are taken from the history, so the result equals that of an uninterrupted
            run.
        progress: show a bar on stderr.
        figures: draw the study's figures at the end.

    Returns:
        The front and its measures, as in ``study.json``.

    Raises:
        StudyError: ``out`` holds a study that is running, cannot be resumed, or should not be (``resume`` is false); or
            its history is damaged.
        OSError: ``out`` cannot be written.
        ValueError: the evaluator or the truth lacks an objective; the config has another space, a warm start that is
            not known, or a guide, which is for ``search_with_model``; ``evaluator`` is not an evaluator; or ``out`` is
            no path.

    Example:
        >>> import nasrlm
        >>> goals = ["max:accuracy@cifar10", "min:latency_ms@raspi4"]
        >>> config = nasrlm.SearchConfig("nasbench201", goals, trials=1000)
        >>> predictor = nasrlm.Predictor.from_pretrained()  # doctest: +SKIP
        >>> nasrlm.search(config, "nasbench201", predictor, "study")  # doctest: +SKIP
        StudyResult(1,000 evaluated, 49 on the front; see front, hypervolume)

    Cost:
        Apart from the evaluator, a trial of NAS-Bench-201 takes 0.4 ms with pymoo and 0.8 ms with Optuna (NSGA-II,
        5,000 trials, one busy core, including isomorphism keys and writing). TPE takes 17 ms at 1,000 trials; GP takes
        1.5 s with two goals and 4 s with three at only 38 trials, and more with every trial.
    """
    check_kind("search", config, SearchConfig)
    if config.guide is not None:
        raise ValueError("search: expected a config without a guide, got one. Use search_with_model.")
    named: SearchSpace[A] = opened(space)
    if _is_predictor(evaluator):
        predictor = evaluator.of_space(named.address)
        config = replace(config, checkpoint_sha256=predictor.checkpoint.sha256)
        to_text = partial(to_measured_text, named)
        evaluator = Surrogate(named, predictor, objectives=config.objectives, to_text=to_text)
    answers = as_evaluator(evaluator, config.searched(named), config.objectives)
    config = config_with_evaluator(config, answers)
    out = checked_folder("search", out).absolute()  # an evaluator may change the working directory
    with open_study(config, named, out, truth=truth, known=known, resume=resume) as (config, searched, choice):
        path = out / HISTORY_FILE
        recorded = History.load(path, config.objectives) if path.exists() else None
        if recorded is not None:
            check_architectures(searched, recorded.architectures, path)
        started = time.monotonic()
        history, stopped = _run(config, searched, answers, path, recorded, choice, progress)
        seconds = time.monotonic() - started
        return close_study(config, history, out, truth=truth, stopped=stopped, seconds=seconds, figures=figures)


def _is_predictor(given: object) -> TypeIs[Predictor]:
    return hasattr(given, "of_space") and hasattr(given, "predict")  # a checkpoint has only the first


def _run(
    config: SearchConfig,
    space: SearchSpace[A],
    evaluator: Evaluator[A],
    path: Path,
    recorded: History | None,
    known: Mapping[str, A] | None,
    progress: bool,
) -> tuple[History, str | None]:
    writer = HistoryWriter(path)
    with tqdm(total=config.trials, desc="search", unit="architecture", disable=not progress) as bar:

        def after_batch(problem: Problem[A]) -> None:
            bar.update(problem.evaluations - bar.n)
            # While a resumed search repeats its earlier trials, the file has more of them than the problem.
            if len(problem.history) > problem.num_recorded:
                writer.offer(problem.history)

        def after_answer(history: History) -> None:
            history.save(path)

        one_at_a_time = after_answer if getattr(evaluator, "one_at_a_time", False) else None
        problem = Problem(
            config, space, evaluator, recorded=recorded, known=known, on_batch=after_batch, on_answer=one_at_a_time
        )
        if recorded is None:
            problem.history.save(path)
        try:
            load_engine(config.engine)(problem)
        finally:
            if len(problem.history) >= problem.num_recorded:
                problem.history.save(path)
    return problem.history, problem.stopped
