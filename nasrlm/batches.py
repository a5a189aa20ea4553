"""What a training step sees: rows of similar length, and for each row some of its labels. Seeded step by step.

N rows of a batch, K objectives decoded in a row, M objectives in all, T number tokens, L text tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasrlm.number import NumberCode
from nasrlm.objective import FloatArray
from nasrlm.predictor import pad

BATCHES_SORTED_TOGETHER = 16  # rows are sorted by length within so many batches; more would repeat the same batches


@dataclass(frozen=True)
class Batch:
    """Tensors of one step.

    Attributes:
        text_ids: (N, L), 0 = padding.
        objectives: (N, K) ids, in decoding order.
        numbers: (N, K, T) number ids of the labels.
        present: (N, K) bool, False where a row has fewer than K labels.
        visible: (N, K, K) bool, which numbers a number is decoded after.
    """

    text_ids: Tensor
    objectives: Tensor
    numbers: Tensor
    present: Tensor
    visible: Tensor

    def to(self, device: str) -> Batch:
        """The same batch on another device."""
        return Batch(*[x.to(device) for x in vars(self).values()])


class Batches:
    """Batches by step number; the same step gives the same batch, whatever was asked before.

    Args:
        token_ids: ids of every text.
        labels: (rows, M), NaN where there is none.
        weights: (M,) how often an objective is drawn beside the others.
        objectives_per_row: K.
        alone_probability: share of the rows whose numbers do not see each other.
    """

    def __init__(
        self,
        token_ids: Sequence[Sequence[int]],
        labels: FloatArray,
        weights: FloatArray,
        code: NumberCode,
        *,
        batch_size: int,
        objectives_per_row: int,
        alone_probability: float,
        seed: int,
    ) -> None:
        self._token_ids = token_ids
        self._known = np.isfinite(labels)
        filled = np.where(self._known, labels, 1.0)
        self._numbers = code.encode(filled.ravel()).reshape(*filled.shape, code.length)
        self._log_weights = np.log(weights)
        self._batch_size, self._seed = batch_size, seed
        self._objectives_per_row = min(objectives_per_row, labels.shape[1])
        self._alone_probability = alone_probability
        self._lengths = np.array([len(ids) for ids in token_ids])
        self._epoch, self._order = -1, [np.arange(0)]

    @property
    def steps_per_epoch(self) -> int:
        """Batches in one pass over the rows."""
        return -(-len(self._token_ids) // self._batch_size)

    def __getitem__(self, step: int) -> Batch:
        epoch, index = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self._shuffle(epoch)
        rows = self._order[index]
        rng = np.random.default_rng((self._seed, 1, step))
        objectives = self._draw_objectives(rows, rng)
        present = self._known[rows[:, None], objectives]
        alone = rng.random(len(rows)) < self._alone_probability
        before = np.tril(np.ones((objectives.shape[1],) * 2, dtype=bool), -1)
        visible = before & present[:, None, :] & ~alone[:, None, None]
        numbers = self._numbers[rows[:, None], objectives]
        text_ids = pad([self._token_ids[row] for row in rows.tolist()])
        return Batch(text_ids, *map(torch.from_numpy, (objectives, numbers, present, visible)))

    def _shuffle(self, epoch: int) -> list[NDArray[np.intp]]:
        """Batches of one epoch: random rows, sorted by length within groups of batches, in random order."""
        rng = np.random.default_rng((self._seed, 0, epoch))
        order = rng.permutation(len(self._token_ids))
        group = self._batch_size * BATCHES_SORTED_TOGETHER
        batches: list[NDArray[np.intp]] = []
        for start in range(0, len(order), group):
            rows = order[start : start + group]
            rows = rows[np.argsort(self._lengths[rows], kind="stable")]
            batches += [rows[first : first + self._batch_size] for first in range(0, len(rows), self._batch_size)]
        return [batches[index] for index in rng.permutation(len(batches))]

    def _draw_objectives(self, rows: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int64]:
        """(N, K) ids in decoding order: labelled ones by weight without replacement (Gumbel top-k)."""
        keys = self._log_weights + rng.gumbel(size=(len(rows), self._known.shape[1]))
        keys = np.where(self._known[rows], keys, -np.inf)
        return np.sort(np.argsort(-keys, axis=1)[:, : self._objectives_per_row], axis=1)
