"""A guided search: a surrogate proposes candidates, the gate prunes them, and real evaluations give their results."""

import functools
import sys
import time
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from converters.tables.counts import COUNTS
from nasrlm.arrays import FloatArray
from nasrlm.callers import warn_caller
from spaces import SearchSpace
from studies.all_architectures import every_architecture
from studies.config import SearchConfig
from studies.evaluators import RealEvaluator, TableEvaluator, config_with_evaluator
from studies.folder import HISTORY_FILE
from studies.gate import Gate
from studies.guide import Guide
from studies.history import to_bounds
from studies.ledger import Entry, Ledger
from studies.proposal import begin, propose, warm_start
from studies.report import StudyResult
from studies.storage.shared_study import SharedStudy
from studies.storage.workers import PATIENCE, Evaluate, NextBatch, why_over, work
from studies.study import check_architectures, close_study, open_study
from studies.surrogates.learning import Adapt, LearningModel
from studies.surrogates.memory import SamplingPredictor, TextMemory, of_space

A = TypeVar("A", bound=Hashable)


def guided_search(
    config: SearchConfig,
    space: SearchSpace[A],
    evaluator: RealEvaluator[A],
    predictor: SamplingPredictor,
    out: Path,
    *,
    to_text: Callable[[A], str],
    adapt: Adapt | None = None,
    truth: TableEvaluator[A] | None = None,
    resume: bool = False,
    progress: bool = False,
    storage: str | None = None,
    figures: bool = True,
) -> StudyResult:
    """Search with ``config.trials`` real evaluations, and write the same files as ``search``.

    For each batch the engine searches on the predictions, starting from the real front. Of the candidates that the
    gate keeps, those with the largest expected hypervolume improvement are evaluated. ``history.parquet`` also holds
    the predictions for every pruned or chosen architecture, and why it was pruned.

    Args:
        config: the configuration, with a guide.
        space: the search space.
        evaluator: gives real results, one architecture at a time.
        predictor: a ``nasrlm.Predictor``, whose ``of_space`` predicts. It may lack some of ``config.objectives`` if
            ``adapt`` teaches them; until then corners of the space and random architectures are evaluated.
        out: the study's folder, created if missing.
        to_text: converts an architecture to the text that the predictor reads.
        adapt: returns a better predictor, given a table of the real results so far with columns space, architecture
            and one per objective. It must be deterministic, as ``ProcessAdapter`` is.
        truth: true labels of ``config.objectives``, to judge the final front.
        resume: continue the study in ``out``, possibly with more trials than before. A batch depends only on the
            results before it, and each result is saved before the next evaluation begins. So a killed process loses
            only the running evaluation, and a resumed study equals an uninterrupted one up to rounding of predictions.
        progress: show a bar on stderr.
        storage: Optuna storage, a URL or a journal file, that holds the study; ``config.storage`` if None. Every
            process with the same config and storage works on this study, each with its own folder, and takes over the
            trials of processes that died. Without a storage, one process keeps the study in ``out``.
        figures: draw the study's figures at the end.

    Raises:
        StudyError: ``out`` holds a study that is running, cannot be resumed, or should not be (``resume`` is false); or
            its history is damaged.
        OSError: ``out`` cannot be written.
        ValueError: the config has no guide or another space; evaluator, predictor or truth lack an objective; or the
            evaluator has no results for an architecture of ``config.warm_start``.
    """
    config, predictor = config_with_evaluator(config, evaluator), of_space(predictor, space)
    guide = _checked_guide(config, predictor, adapt)
    gate = Gate(config.goals, config.constraints, risk=guide.risk)
    out = out.absolute()  # an evaluator may change the working directory
    opened = open_study(config, space, out, truth=truth, known=evaluator.known, resume=resume)
    with opened as (config, searched, known):
        started = time.monotonic()
        ledger = _begun_ledger(config, searched, out / HISTORY_FILE)
        texts = TextMemory.of(to_text)
        learning = LearningModel(searched, predictor, texts, config.objectives, evaluator.modelled)
        if adapt is not None and guide.adapt_every:
            learning.learn_by(adapt, guide.adapt_every)
        gate.guessed = learning.guessed
        next_batch = _proposer(config, guide, searched, evaluator, known, learning, gate, progress)
        shared = storage or config.storage

        def evaluate(notation: str) -> FloatArray:
            return to_bounds(evaluator.evaluate([searched.parse(notation)]), config.objectives)[0, :, 0]

        done = len(ledger.evaluated)
        with tqdm(total=config.trials, initial=done, desc="search", unit="evaluation", disable=not progress) as bar:

            def after_change(changed: Ledger) -> None:
                changed.save(out / HISTORY_FILE)
                bar.update(len(changed.evaluated) - bar.n)

            if shared is None:
                stopped = _run(next_batch, evaluate, ledger, after_change)
            else:
                with SharedStudy(config, searched, shared, ledger) as study:
                    tell = functools.partial(tqdm.write, file=sys.stderr) if progress else lambda line: None
                    stopped = work(next_batch, evaluate, study, after_change, tell)
                    ledger = study.patiently(study.ledger)
        history, seconds = ledger.history(), time.monotonic() - started
        return close_study(config, history, out, truth=truth, stopped=stopped, seconds=seconds, figures=figures)


def _checked_guide(config: SearchConfig, predictor: SamplingPredictor, adapt: Adapt | None) -> Guide:
    if config.guide is None:
        raise ValueError("guided search: expected a config with a guide, got none. Set guide in the config.")
    missing = [name for name in config.objectives if name not in (*predictor.objectives, *COUNTS)]
    if missing and (adapt is None or not config.guide.adapt_every):
        raise ValueError(
            f"guided search: expected a predictor that knows {', '.join(config.objectives)}, got one without "
            f"{', '.join(missing)}. Adapt the checkpoint to them first, or during the search."
        )
    return config.guide


def _begun_ledger(config: SearchConfig, space: SearchSpace[A], path: Path) -> Ledger:
    """Return the ledger that an earlier run saved, or an empty one, and save it."""
    ledger = Ledger.load(path, config) if path.exists() else Ledger(config)
    check_architectures(space, [entry.architecture for entry in ledger.entries], path)
    ledger.save(path)
    return ledger


def _run(
    next_batch: NextBatch, evaluate: Evaluate, ledger: Ledger, after_change: Callable[[Ledger], None]
) -> str | None:
    """Evaluate batch after batch until the trials are spent; return why it stopped earlier, or None."""
    while True:
        for entry in ledger.chosen:
            ledger.record(entry.key, evaluate(entry.architecture))
            after_change(ledger)
        batch = next_batch(ledger)
        if batch is None:
            return why_over(ledger)
        ledger.add(batch)
        after_change(ledger)


def _proposer(
    config: SearchConfig,
    guide: Guide,
    space: SearchSpace[A],
    evaluator: RealEvaluator[A],
    known: Mapping[str, A] | None,
    learning: LearningModel[A],
    gate: Gate,
    progress: bool,
) -> NextBatch:
    """Return a function that chooses the next batch with a model that has learned from the results so far."""
    choice = every_architecture(space) if guide.exhaustive and known is None else known

    def batch(ledger: Ledger, count: int, attempt: int) -> list[Entry]:
        if given := warm_start(space, ledger, count=count, known=known):
            return given
        model = learning.learn(ledger)
        if all(name in model.predictor.objectives for name in config.objectives):
            if guide.exhaustive:
                learning.to_text.write((choice or {}).values(), progress=progress)
            return propose(
                guide, space, model, ledger, gate, count=count, known=choice, attempt=attempt, progress=progress
            )
        check = functools.partial(model.check, gate) if guide.gate and config.hard_constraints else None
        return begin(space, evaluator, ledger, count=count, known=known, attempt=attempt, check=check)

    attempts = 0  # consecutive ones without any candidate

    def next_batch(ledger: Ledger) -> list[Entry] | None:
        nonlocal attempts
        for told in learning.odd_units(ledger.answered):
            warn_caller(told)
        left = config.trials - len(ledger.evaluated) - len(ledger.chosen)
        if left <= 0 or ledger.barren_batches + attempts >= PATIENCE:
            return None
        found = batch(ledger, min(guide.batch_size, left), attempts)
        attempts = 0 if found else attempts + 1
        return found

    return next_batch
