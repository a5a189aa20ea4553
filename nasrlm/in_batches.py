"""Compute results for texts batch by batch, on request in several threads. N texts."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from nasrlm.arrays import FloatArray
from nasrlm.model.encoded import Encoded
from nasrlm.reader import TEXTS_PER_PLAN, TextBatch, TextReader
from nasrlm.unreadable_texts import naming_rows

AHEAD = 4  # items queued per worker

T = TypeVar("T")
R = TypeVar("R")


def in_batches(
    reader: TextReader,
    texts: Sequence[str],
    shape: Sequence[int],
    answer: Callable[[Encoded, NDArray[np.intp]], Tensor],
    num_workers: int = 1,
    progress: bool = False,
    *,
    rows_per_text: int | None = None,
    summed: Callable[[Sequence[str]], tuple[NDArray[np.intp], Tensor]] | None = None,
) -> FloatArray:
    """Return (N, *shape) results for N texts, computed in batches.

    Args:
        reader: encodes the texts.
        texts: N texts.
        shape: of the results of one text.
        answer: computes the results of a batch from its encoded texts and their row indices.
        num_workers: number of threads, each of which processes one batch at a time.
        progress: show a bar on stderr.
        rows_per_text: numbers that the decoder writes for each text, which limits the batch size; the size of
            ``shape`` if None.
        summed: computes results of texts that need not be encoded, see ``Answerer.summed``.

    Raises:
        UnreadableTextError: a text is empty or too long; its row is its index among the N.
    """
    values, is_left = np.empty((len(texts), *shape)), np.ones(len(texts), dtype=np.bool_)
    with tqdm(total=len(texts), desc="predict", unit="text", disable=not progress) as bar:
        if summed is not None:
            for start in range(0, len(texts), TEXTS_PER_PLAN):
                rows, sums = summed(texts[start : start + TEXTS_PER_PLAN])
                values[start + rows], is_left[start + rows] = sums.numpy(), False
                bar.update(len(rows))
        left = np.flatnonzero(is_left)

        def work(batch: TextBatch) -> NDArray[np.intp]:
            rows = left[batch.rows]
            values[rows] = answer(reader.read(batch), rows).cpu().numpy()
            return rows

        batches = reader.batches([texts[row] for row in left.tolist()], rows_per_text or math.prod(shape))
        with naming_rows(left.__getitem__):
            for rows in in_threads(work, batches, num_workers):
                bar.update(len(rows))
    return values


def in_threads(work: Callable[[T], R], things: Iterable[T], num_workers: int) -> Iterator[R]:
    """Yield the result of ``work`` for every item, in order; items are taken from the iterable as workers become free.

    After an error, or if the iterator is closed, queued items are cancelled.
    """
    if num_workers == 1:
        yield from map(work, things)
        return
    pool, pending = ThreadPoolExecutor(num_workers), deque[Future[R]]()
    try:
        for thing in things:
            pending.append(pool.submit(work, thing))
            if len(pending) >= AHEAD * num_workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
