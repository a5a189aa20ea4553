"""A search with real evaluations: the model proposes, the gate prunes, the evaluator decides."""

import functools
import sys
import time
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from converters.tables.counts import COUNTS
from nasrlm.arrays import FloatArray
from spaces import SearchSpace
from studies.all_architectures import every_architecture
from studies.config import SearchConfig
from studies.evaluators import RealEvaluator, TableEvaluator, told_config
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
from studies.surrogates.memory import SamplingPredictor, TextMemory
from studies.surrogates.without_guesses import guessed_objectives, without_guesses

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
    """Search with ``config.trials`` real evaluations, and write what ``search`` writes.

    For each batch the engine searches on the predictions, beginning with the real front; of what the gate lets
    through, the candidates expected to add most hypervolume are evaluated. ``history.parquet`` also has what was
    predicted for every architecture that was pruned or chosen, and why it was pruned.

    Args:
        config: what to search for; with a guide.
        space: the search space.
        evaluator: gives real results, one architecture at a time.
        predictor: a ``nasrlm.Predictor``. As long as it lacks one of ``config.objectives``, which ``adapt`` then has to
            teach it, corners of the space and random architectures are evaluated.
        out: the study's folder, made when missing.
        to_text: architecture to the text that the predictor reads.
        adapt: gives a better predictor from a table of the real results so far: columns space, architecture and one
            an objective. The same table has to give the same predictor. ``ProcessAdapter`` does.
        truth: true labels of ``config.objectives``, with which the front found is judged at the end.
        resume: go on with the study in ``out``. A batch follows from the results before it alone, and every result
            is written before the next evaluation begins: whenever the process is killed, only the evaluation that
            was running then is lost, and the result equals that of an uninterrupted run, but for rounding of what
            is predicted. A study may be given more trials than before.
        progress: show a bar on stderr.
        storage: Optuna storage, a URL or a journal file; ``config.storage`` if None. The study then lives there: every
            process with the same config and storage works for it, each with a folder of its own, and takes over the
            trials of those that died. Without any, all is in ``out``, and of one process.
        figures: draw the study in the end.

    Raises:
        StudyError: ``out`` holds a study that is not to, or cannot, be resumed, or that runs; its history is damaged.
        OSError: ``out`` cannot be written.
        ValueError: there is no guide, the config is of another space, evaluator, predictor or truth lack an objective,
            or the evaluator knows no results of an architecture to begin with.
    """
    config = told_config(config, evaluator)
    guide = _checked_guide(config, predictor, adapt)
    real = [name for name in config.objectives if name not in (*evaluator.modelled, *COUNTS)]
    guessed, learns = guessed_objectives(predictor, space, real), adapt is not None and guide.adapt_every
    gate = Gate(config.goals, config.constraints, risk=guide.risk, guessed=() if learns else guessed)
    predictor = without_guesses(predictor, guessed) if learns else predictor
    out = out.absolute()  # an evaluator may change the working directory
    opened = open_study(config, space, out, truth=truth, known=evaluator.known, resume=resume)
    with opened as (config, searched, known):
        started = time.monotonic()
        ledger = _begun_ledger(config, searched, out / HISTORY_FILE)
        texts = TextMemory.of(to_text)
        learning = LearningModel(searched, predictor, texts, config.objectives, evaluator.modelled)
        if adapt is not None and guide.adapt_every:
            learning.learn_by(adapt, guide.adapt_every)
        next_batch = _proposer(config, guide, searched, evaluator, known, learning, gate, progress)
        shared = storage or config.storage

        def evaluate(notation: str) -> FloatArray:
            return to_bounds(evaluator.evaluate([searched.parse(notation)]), config.objectives)[0, :, 0]

        with _saved_changes(ledger, out / HISTORY_FILE, progress) as after_change:
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
        raise ValueError("guided search: expected a config with a guide, got none. Set guide.")
    missing = [name for name in config.objectives if name not in (*predictor.objectives, *COUNTS)]
    if missing and (adapt is None or not config.guide.adapt_every):
        raise ValueError(
            f"guided search: expected a predictor of {', '.join(config.objectives)}, got none of {', '.join(missing)}. "
            "Adapt the checkpoint to it first, or while searching."
        )
    return config.guide


def _begun_ledger(config: SearchConfig, space: SearchSpace[A], path: Path) -> Ledger:
    """What an earlier run has saved, or an empty one; saved from now on."""
    ledger = Ledger.load(path, config) if path.exists() else Ledger(config)
    check_architectures(space, [entry.architecture for entry in ledger.entries], path)
    ledger.save(path)
    return ledger


@contextmanager
def _saved_changes(ledger: Ledger, path: Path, progress: bool) -> Iterator[Callable[[Ledger], None]]:
    """What to call after each change of a ledger: it saves the file, and moves the bar if one is shown."""
    total, done = ledger.config.trials, len(ledger.evaluated)
    with tqdm(total=total, initial=done, desc="search", unit="evaluation", disable=not progress) as bar:

        def after_change(known: Ledger) -> None:
            known.save(path)
            bar.update(len(known.evaluated) - bar.n)

        yield after_change


def _run(
    next_batch: NextBatch, evaluate: Evaluate, ledger: Ledger, after_change: Callable[[Ledger], None]
) -> str | None:
    """Evaluate batch after batch until the trials are spent; why it stopped before, or None."""
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
    """Chooses the next batch by the model that has learned from what is known."""
    choice = every_architecture(space) if guide.exhaustive and known is None else known

    def batch(ledger: Ledger, count: int, attempt: int) -> list[Entry]:
        if given := warm_start(space, ledger, count=count, known=known):
            return given
        model = learning.learn(ledger)
        if all(name in model.predictor.objectives for name in config.objectives):
            if guide.exhaustive:
                learning.to_text.write((choice or {}).values(), progress=progress)
            return propose(guide, space, model, ledger, gate, count=count, known=choice, attempt=attempt)
        return begin(space, evaluator, ledger, count=count, known=known, attempt=attempt)

    attempts = 0  # in a row that had nothing

    def next_batch(ledger: Ledger) -> list[Entry] | None:
        nonlocal attempts
        for told in learning.odd_units(ledger.answered):
            warnings.warn(told, stacklevel=2)
        left = config.trials - len(ledger.evaluated) - len(ledger.chosen)
        if left <= 0 or ledger.barren_batches + attempts >= PATIENCE:
            return None
        found = batch(ledger, min(guide.batch_size, left), attempts)
        attempts = 0 if found else attempts + 1
        return found

    return next_batch
