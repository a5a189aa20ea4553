"""A search with real evaluations, guided by a checkpoint that learns from them."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from converters import to_measured_text
from converters.tables.counts import COUNTS
from nasrlm.predictor import Predictor
from spaces import SearchSpace
from spaces.registry import opened
from studies.config import SearchConfig
from studies.evaluators import RealEvaluator, TableEvaluator, UsersFunction, as_evaluator
from studies.guide import Guide
from studies.guided import guided_search
from studies.report import StudyResult
from studies.surrogates.memory import TextMemory
from studies.surrogates.process_adapter import ProcessAdapter, every_network

A = TypeVar("A", bound=Hashable)

JOURNAL_FILE = "journal.log"  # in the study's folder: the storage where none is named


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
    """Search with real evaluations, chosen by a model that learns from their results, as ``nasrlm search`` does.

    Args:
        config: what to search for, and by its guide how; by ``nasrlm.optuna.Guide()`` if it has none. Where it names no
            storage, that is a journal in the study's folder, unless all architectures are looked at.
        space: the search space, or its name.
        evaluator: gives real results: a function of a notation that returns a value for each objective by its name, or
            a ``studies.evaluators.TableEvaluator``, or the like.
        out: the study's folder, made when missing.
        predictor: a checkpoint's, of the space; the released one's if None. What it does not know it learns.
        to_text: architecture to the text that the predictor reads; ``nasrlm.to_measured_text`` if None.
        truth: true labels of ``config.objectives``, with which the front found is judged at the end.
        resume: go on with the study in ``out``, see ``guided_search``.
        progress: show bars on stderr.
        figures: draw the study in the end.

    Raises:
        StudyError: ``out`` holds a study that is not to, or cannot, be resumed, or that runs; its history is damaged.
        OSError: ``out`` cannot be written.
        ValueError: an unknown space, the config is of another, evaluator, predictor or truth lack an objective, or the
            evaluator's answer cannot be used.

    Example:
        >>> import nasrlm
        >>> goals = ["max:accuracy@cifar10", "min:latency_ms@raspi4"]
        >>> config = nasrlm.SearchConfig("nasbench201", goals, trials=50, twins="apart")
        >>> nasrlm.search_with_model(config, "nasbench201", train_and_measure, "study")  # doctest: +SKIP
    """
    named: SearchSpace[A] = opened(space)
    guide, objectives = config.guide or Guide(), config.objectives
    predictor = predictor or Predictor.from_pretrained().of_space(named.address)
    config = replace(config, guide=guide, checkpoint_sha256=predictor.checkpoint.sha256)
    real = as_evaluator(evaluator, config.searched(named), objectives)
    if not isinstance(real, RealEvaluator):
        raise ValueError(f"search: expected an evaluator that tells known and modelled, got {type(real).__name__}.")
    texts = TextMemory.of(to_text or partial(to_measured_text, named))
    storage, adapt = config.storage, None
    if storage is None and not guide.exhaustive:  # a storage keeps nothing that it prunes
        storage = str(Path(out) / JOURNAL_FILE)
    if guide.adapt_every:
        learned = [name for name in objectives if name not in (*real.modelled, *COUNTS)]
        networks = partial(every_network, config, named, real.known, progress=progress) if guide.exhaustive else None
        adapt = ProcessAdapter(named, predictor, learned, to_text=texts, networks=networks, progress=progress)
    options: dict[str, Any] = {"truth": truth, "resume": resume, "progress": progress, "figures": figures}
    return guided_search(
        config, named, real, predictor, Path(out), to_text=texts, adapt=adapt, storage=storage, **options
    )
