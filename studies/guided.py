"""A search with real evaluations: the model proposes, the gate prunes, the evaluator decides."""

import functools
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Generic, TypeVar

import pandas as pd
from tqdm import tqdm

from spaces import SearchSpace
from studies.config import SearchConfig
from studies.evaluators import RealEvaluator, TableEvaluator
from studies.folder import HISTORY_FILE, open_folder
from studies.guide import Guide
from studies.history import to_bounds
from studies.ledger import Ledger
from studies.memory import PredictorMemory, SamplingPredictor
from studies.modelled import CertainPredictor
from studies.plots import plot_study
from studies.proposal import Model, propose
from studies.report import StudyResult, summarise, true_labels, write_report

A = TypeVar("A", bound=Hashable)

Adapt = Callable[[pd.DataFrame], SamplingPredictor]  # real results so far, to a predictor that has learned from them
PATIENCE = 3  # batches in a row without anything to evaluate before a search gives up


def guided_search(
    config: SearchConfig,
    space: SearchSpace[A],
    evaluator: RealEvaluator[A],
    predictor: SamplingPredictor,
    out: Path,
    *,
    to_text: Callable[[A], str],
    adapt: Adapt | None = None,
    adapt_every: int = 10,
    truth: TableEvaluator[A] | None = None,
    resume: bool = False,
    progress: bool = False,
) -> StudyResult:
    """Search with ``config.trials`` real evaluations, and write what ``search`` writes.

    For each batch the engine searches on the predictions, beginning with the real front; of what the gate lets
    through, the candidates expected to add most hypervolume are evaluated. ``history.parquet`` also has what was
    predicted for every architecture that was pruned or chosen, and why it was pruned.

    Args:
        config: what to search for; with a guide.
        space: the search space.
        evaluator: gives real results, one architecture at a time.
        predictor: knows ``config.objectives``; a ``nasrlm.Predictor``.
        out: the study's folder, made when missing.
        to_text: architecture to the text that the predictor reads.
        adapt: gives a better predictor from a table of the real results so far: columns space, architecture and one
            an objective. The same table has to give the same predictor.
        adapt_every: real results after which it is called again.
        truth: true labels of ``config.objectives``, with which the front found is judged at the end.
        resume: go on with the study in ``out``. A batch follows from the results before it alone, and every result
            is written before the next evaluation begins: whenever the process is killed, only the evaluation that
            was running then is lost, and the result equals that of an uninterrupted run.
        progress: show a bar on stderr.

    Raises:
        StudyError: ``out`` holds a study that is not to be, or cannot be, resumed; its history is damaged.
        OSError: ``out`` cannot be written.
        ValueError: there is no guide, or evaluator, predictor or truth lack an objective.
    """
    if config.guide is None:
        raise ValueError("guided search: expected a config with a guide, got none. Set guide.")
    missing = [name for name in config.objectives if name not in predictor.objectives]
    if missing:
        raise ValueError(
            f"guided search: expected a predictor of {', '.join(config.objectives)}, got none of {', '.join(missing)}. "
            "Adapt the checkpoint to it first."
        )
    if truth is not None:
        true_labels(config, truth)  # complains now, not after the search
    open_folder(out, config, resume=resume)
    path = out / HISTORY_FILE
    started = time.monotonic()
    ledger = Ledger.load(path, config) if path.exists() else Ledger(config)
    begun = path.exists()
    ledger.save(path)
    store = _storing(config, space, is_new=not begun)
    models = _Models(evaluator, predictor, to_text, adapt, adapt_every)
    with tqdm(total=config.trials, initial=len(ledger.evaluated), unit="evaluation", disable=not progress) as bar:

        def after_change() -> None:
            ledger.save(path)
            store(ledger)
            bar.update(len(ledger.evaluated) - bar.n)

        stopped = _run(config, config.guide, space, evaluator, models, ledger, after_change)
    history = ledger.history()
    result = summarise(config, history, truth=truth, stopped=stopped, seconds=time.monotonic() - started)
    write_report(out, config, history, result)
    plot_study(out)
    return result


def _run(
    config: SearchConfig,
    guide: Guide,
    space: SearchSpace[A],
    evaluator: RealEvaluator[A],
    models: "_Models[A]",
    ledger: Ledger,
    after_change: Callable[[], None],
) -> str | None:
    """Evaluate batch after batch until the trials are spent; why it stopped before, or None."""
    attempt = 0
    while True:
        for entry in ledger.chosen:
            answer = to_bounds(evaluator.evaluate([space.parse(entry.architecture)]), config.objectives)
            ledger.record(entry.key, answer[0, :, 0])
            after_change()
        count = min(guide.batch_size, config.trials - len(ledger.evaluated))
        if count == 0:
            return None
        if ledger.barren_batches + attempt >= PATIENCE:
            return f"the last {PATIENCE} batches had nothing to evaluate: all was evaluated before, or pruned"
        model = models.after(ledger)
        batch = propose(config, guide, space, model, ledger, count=count, known=evaluator.known, attempt=attempt)
        attempt = 0 if batch else attempt + 1
        ledger.add(batch)
        after_change()


def _storing(config: SearchConfig, space: SearchSpace[A], *, is_new: bool) -> Callable[[Ledger], None]:
    """Copies new results into ``config.storage``, if there is one."""
    if config.storage is None:
        return lambda ledger: None
    from studies.optuna_storage import StoredStudy, to_trial  # here: pymoo alone needs no Optuna

    stored = StoredStudy(config, is_new=is_new)

    def store(ledger: Ledger) -> None:
        new = ledger.evaluated[stored.given :]
        trials = [to_trial(config, space.sampled_sizes, entry.genotype, entry.real) for entry in new]
        stored.extend(trials, [entry.architecture for entry in new])

    return store


class _Models(Generic[A]):
    """The model to ask, renewed as results come in."""

    def __init__(
        self,
        evaluator: RealEvaluator[A],
        predictor: SamplingPredictor,
        to_text: Callable[[A], str],
        adapt: Adapt | None,
        adapt_every: int,
    ) -> None:
        self._modelled = evaluator.modelled
        self._to_text = functools.cache(to_text)
        self._adapt = adapt
        self._adapt_every = adapt_every
        self._num_learned = 0
        self._model = self._make(predictor)

    def after(self, ledger: Ledger) -> Model[A]:
        """The model that has learned from the results that it should have by now."""
        learned = len(ledger.evaluated) // self._adapt_every * self._adapt_every
        if self._adapt is not None and learned > self._num_learned:
            self._model = self._make(self._adapt(ledger.labels(learned)))
            self._num_learned = learned
        return self._model

    def _make(self, predictor: SamplingPredictor) -> Model[A]:
        certain = CertainPredictor(predictor, self._modelled) if self._modelled else predictor
        return Model(certain, PredictorMemory(certain), self._to_text)
