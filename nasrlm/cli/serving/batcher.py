"""Predict waiting requests for the same space, objectives and quantiles in one call of the model.

N texts, M objectives, Q quantiles.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from nasrlm.unreadable_texts import naming_rows

TEXTS_AT_A_TIME = 128  # predicted without interruption, which takes seconds for DARTS; 512 took as long per text

Predict = Callable[[Sequence[str], Sequence[str], Sequence[float], str], Prediction]


class _Question(NamedTuple):
    """The part of a request that must be equal in requests that share a call of the model."""

    objectives: tuple[str, ...]
    quantiles: tuple[float, ...]
    space: str


@dataclass(frozen=True, eq=False)
class _Request:
    texts: Sequence[str]
    question: _Question
    answer: asyncio.Future[FloatArray] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Batcher:
    """A queue of requests that wait while the model works; requests with the same question are predicted together.

    Args:
        predict: takes texts, objectives, quantiles and a space; called by one thread at a time.
        max_texts: per call; a single request may have more.
    """

    def __init__(self, predict: Predict, max_texts: int) -> None:
        self._predict, self._max_texts = predict, max_texts
        self._waiting: deque[_Request] = deque()
        self._worker: asyncio.Task[None] | None = None

    async def predict(
        self, texts: Sequence[str], objectives: Sequence[str], quantiles: Sequence[float], space: str
    ) -> FloatArray:
        """Predict (N, M, Q) values of N texts, together with other requests that wait.

        Raises:
            ValueError: as ``predict`` of this request alone.
        """
        request = _Request(texts, _Question(tuple(objectives), tuple(quantiles), space))
        self._waiting.append(request)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await request.answer

    async def _work(self) -> None:
        while self._waiting:
            batch = self._take()
            outcomes = await asyncio.to_thread(self._answer, batch)
            for request, outcome in zip(batch, outcomes, strict=True):
                if request.answer.done():  # the client has gone
                    continue
                if isinstance(outcome, Exception):
                    request.answer.set_exception(outcome)
                else:
                    request.answer.set_result(outcome)

    def _take(self) -> list[_Request]:
        """Take the request that has waited longest, and as many with the same question as fit beside it."""
        question, num_texts = self._waiting[0].question, 0
        batch: list[_Request] = []
        for request in list(self._waiting):
            if request.question == question and (not batch or num_texts + len(request.texts) <= self._max_texts):
                batch.append(request)
                num_texts += len(request.texts)
                self._waiting.remove(request)
        return batch

    def _answer(self, batch: Sequence[_Request]) -> Sequence[FloatArray | Exception]:
        """Return the values or the error of each request; an error in one does not affect the others.

        If no client waits any more, such as at the end of the service, the rest is not computed.
        """
        texts = [text for request in batch for text in request.texts]
        parts: list[FloatArray] = []
        try:
            for start in range(0, len(texts), TEXTS_AT_A_TIME):
                if all(request.answer.done() for request in batch):
                    return [TimeoutError()] * len(batch)
                with naming_rows(start.__add__):
                    some = texts[start : start + TEXTS_AT_A_TIME]
                    parts.append(self._predict(some, *batch[0].question).values)
            ends = np.cumsum([len(request.texts) for request in batch])
            return np.split(np.concatenate(parts), ends[:-1])
        except Exception as e:
            return [e] if len(batch) == 1 else [self._answer([request])[0] for request in batch]
