"""A search with real evaluations, guided by a checkpoint that learns from them."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from converters import to_measured_text
from converters.tables.counts import COUNTS
from nasrlm.arguments import check_kind, checked_folder
from nasrlm.predictor import Predictor
from spaces import SearchSpace
from spaces.registry import opened
from studies.all_architectures import MOST_LOOKED_AT
from studies.config import SearchConfig
from studies.evaluators import RealEvaluator, TableEvaluator, UsersFunction, as_evaluator
from studies.guide import Guide
from studies.guided import guided_search
from studies.report import StudyResult
from studies.surrogates.memory import TextMemory
from studies.surrogates.process_adapter import MIN_RESULTS_OF_GRAPHS, ProcessAdapter, every_network

A = TypeVar("A", bound=Hashable)

JOURNAL_FILE = "journal.log"  # default storage, in the study's folder


def search_with_model(
    config: SearchConfig,
    space: SearchSpace[A] | str,
    evaluator: RealEvaluator[A] | UsersFunction,
    out: Path | str,
    *,
    predictor: Predictor | None = None,
    to_text: Callable[[A], str] | None = None,
    truth: TableEvaluator[A] | None = None,
    resume: bool = False,
    progress: bool = False,
    figures: bool = True,
) -> StudyResult:
    """Search with real evaluations that are chosen by a model, which learns from their results, as ``nasrlm search``.

    Args:
        config: the configuration; its guide is ``nasrlm.optuna.Guide()`` if it has none. The default storage is a
            journal in the study's folder, or none if the guide is exhaustive.
        space: the search space or its name.
        evaluator: gives real results: a function that returns, for a notation, a mapping from objective names to
            values; a ``studies.evaluators.TableEvaluator``; or another real evaluator.
        out: the study's folder, created if missing.
        predictor: its ``of_space`` predicts; the released checkpoint if None. It learns unknown objectives.
        to_text: converts an architecture to the text that the predictor reads; ``nasrlm.to_measured_text`` if None.
        truth: true labels of ``config.objectives``, to judge the final front.
        resume: continue the study in ``out``, see ``guided_search``.
        progress: show bars on stderr.
        figures: draw the study's figures at the end.

    Raises:
        StudyError: ``out`` holds a study that is running, cannot be resumed, or should not be (``resume`` is false); or
            its history is damaged.
        OSError: ``out`` cannot be written.
        ValueError: the space is unknown or the config has another one; evaluator, predictor or truth lack an objective;
            ``out`` is no path; or a result is invalid.

    Example:
        >>> import nasrlm
        >>> goals = ["max:accuracy@cifar10", "min:latency_ms@raspi4"]
        >>> config = nasrlm.SearchConfig("nasbench201", goals, trials=50, twins="apart")
        >>> nasrlm.search_with_model(config, "nasbench201", train_and_measure, "study")  # doctest: +SKIP
    """
    check_kind("search", config, SearchConfig)
    if predictor is not None:
        check_kind("search", predictor, Predictor)
    out = checked_folder("search", out)
    named: SearchSpace[A] = opened(space)
    guide, objectives = config.guide or Guide(), config.objectives
    predictor = (predictor or Predictor.from_pretrained()).of_space(named.address)
    config = replace(config, guide=guide, checkpoint_sha256=predictor.checkpoint.sha256)
    real = as_evaluator(evaluator, config.searched(named), objectives)
    if not isinstance(real, RealEvaluator):
        raise ValueError(
            f"search: expected an evaluator with the attributes known and modelled, got {type(real).__name__}."
        )
    texts = TextMemory.of(to_text or partial(to_measured_text, named))
    storage, adapt = config.storage, None
    # Not for exhaustive searches, whose pruned architectures are not kept in a storage.
    if storage is None and not guide.exhaustive:
        storage = str(out / JOURNAL_FILE)
    if guide.adapt_every:
        learned = [name for name in objectives if name not in (*real.modelled, *COUNTS)]
        networks = None
        if reads_all_graphs(config, guide, named, real.known):
            networks = partial(every_network, named, config.searched(named), real.known, progress=progress)
        adapt = ProcessAdapter(named, predictor, learned, to_text=texts, networks=networks, progress=progress)
    return guided_search(
        config,
        named,
        real,
        predictor,
        out,
        to_text=texts,
        adapt=adapt,
        truth=truth,
        resume=resume,
        progress=progress,
        storage=storage,
        figures=figures,
    )


def reads_all_graphs(config: SearchConfig, guide: Guide, space: SearchSpace[A], known: Sequence[A] | None) -> bool:
    """Return whether unknown objectives are learned from the graphs of all networks, instead of from texts.

    Besides exhaustive searches, these are searches of few networks that run operations whose results are unused: texts
    do not tell what a compiler leaves of such networks. Short searches would end before graphs tell more than texts.
    """
    few = (space.size if known is None else len(known)) <= MOST_LOOKED_AT
    is_long = config.trials >= 2 * MIN_RESULTS_OF_GRAPHS
    return guide.exhaustive or (space.runs_lost_operations and few and is_long)
