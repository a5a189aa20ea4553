"""One of any number of workers that evaluate a guided search together."""

import time
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TypeVar

from nasrlm.arrays import FloatArray
from studies.ledger import Entry, Ledger
from studies.storage.shared_study import SharedStudy, TakenTrial

A = TypeVar("A", bound=Hashable)

NextBatch = Callable[[Ledger], Sequence[Entry] | None]  # of what is known; None where nothing more is to be chosen
Evaluate = Callable[[str], FloatArray]  # a notation to (M,) real results

PATIENCE = 3  # batches in a row without anything to evaluate before a search gives up
NOTHING_LEFT = (
    f"the last {PATIENCE} batches had nothing to evaluate: all that was looked at was evaluated before, or pruned"
)
PAUSE = 0.2  # seconds until a worker without work looks again whether another one has died
TELL_SECONDS = 60.0  # between lines on what a worker without work waits for


def why_over(ledger: Ledger) -> str | None:
    """Why a search ended before its trials were spent, or None."""
    return NOTHING_LEFT if len(ledger.evaluated) < ledger.config.trials else None


def work(
    next_batch: NextBatch,
    evaluate: Evaluate,
    study: SharedStudy[A],
    after_change: Callable[[Ledger], None],
    tell: Callable[[str], None] = lambda line: None,
) -> str | None:
    """Evaluate what waits, and propose where nothing does, until all workers have spent the trials.

    Workers take turns at proposing and at taking trials, and evaluate at the same time. What others evaluate now is
    chosen already, so nothing is proposed, or evaluated, twice. Who has nothing to do but to wait for others ``tell``s
    so once a minute.

    Returns:
        Why the search ended before its trials were spent, or None.
    """
    seen = list[tuple[str, int, str]]()

    def in_turn() -> tuple[TakenTrial | None, Ledger, bool]:
        """What to evaluate now, what is known, and whether nothing more is to be proposed."""
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
        if taken is None and ledger.chosen and time.monotonic() - told >= TELL_SECONDS:
            tell(f"waiting for {study.patiently(study.awaited)}")
            told = time.monotonic()
        if taken is not None:
            study.patiently(partial(study.tell, taken, evaluate(taken.architecture)))
            told = time.monotonic()
        elif ledger.chosen:
            time.sleep(PAUSE)
        elif is_over:
            return why_over(ledger)
