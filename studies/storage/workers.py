"""The loop of one worker; any number of workers evaluate a guided search together."""

import time
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TypeVar

from nasrlm.arrays import FloatArray
from studies.ledger import Entry, Ledger
from studies.storage.shared_study import SharedStudy, TakenTrial

A = TypeVar("A", bound=Hashable)

NextBatch = Callable[[Ledger], Sequence[Entry] | None]  # ledger to the next batch; None at the end of the search
Evaluate = Callable[[str], FloatArray]  # notation to (M,) real results

PATIENCE = 3  # consecutive batches without anything to evaluate before a search gives up
NOTHING_LEFT = f"the last {PATIENCE} batches had nothing to evaluate: all candidates were pruned or already evaluated"
PAUSE = 0.2  # seconds between checks of an idle worker whether another one has died
MESSAGE_SECONDS = 60.0  # between messages about what an idle worker waits for


def why_over(ledger: Ledger) -> str | None:
    """Return why a search ended before its trials were spent, or None."""
    return NOTHING_LEFT if len(ledger.evaluated) < ledger.config.trials else None


def work(
    next_batch: NextBatch,
    evaluate: Evaluate,
    study: SharedStudy[A],
    after_change: Callable[[Ledger], None],
    tell: Callable[[str], None] = lambda line: None,
) -> str | None:
    """Evaluate waiting trials, or propose a batch if there are none, until all workers have spent the trials.

    Workers take turns to propose and to take trials, and evaluate in parallel. Trials of other workers are in the
    ledger as chosen, so nothing is proposed or evaluated twice. A worker that waits for others calls ``tell`` once a
    minute.

    Returns:
        Why the search ended before its trials were spent, or None.
    """
    seen = list[tuple[str, int, str]]()

    def in_turn() -> tuple[TakenTrial | None, Ledger, bool]:
        """Take a turn: return the trial to evaluate now, the ledger, and whether the search proposes no more."""
        nonlocal seen
        with study.turn() as ledger:
            taken, is_over = study.take(), False
            if taken is None:
                batch = next_batch(ledger)
                is_over = batch is None
                if batch is not None:
                    study.add(batch)
                    taken = study.take()
                    ledger = study.ledger()
            if (now := [(entry.key, entry.batch, entry.status) for entry in ledger.entries]) != seen:
                seen = now
                after_change(ledger)
            return taken, ledger, is_over

    told = time.monotonic()
    while True:
        taken, ledger, is_over = study.patiently(in_turn)
        if taken is None and ledger.chosen and time.monotonic() - told >= MESSAGE_SECONDS:
            tell(f"waiting for {study.patiently(study.awaited)}")
            told = time.monotonic()
        if taken is not None:
            study.patiently(partial(study.tell, taken, evaluate(taken.architecture)))
            told = time.monotonic()
        elif ledger.chosen:
            time.sleep(PAUSE)
        elif is_over:
            return why_over(ledger)
