"""The batches of training: rows with texts of similar length, and some labels of each. Every step has its own seed.

A row is a text with its labels.

N rows of a batch, K objectives decoded per row, M objectives in all, T number tokens, L text tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasrlm.arrays import FloatArray
from nasrlm.model.number import NumberCode
from nasrlm.reader import TokenIds, pad

# Function from rows and a random generator to the token ids of the rows' augmented texts.
Redraw = Callable[[Sequence[int], np.random.Generator], Sequence[TokenIds]]

BATCHES_SORTED_TOGETHER = 16  # rows are sorted by length within so many batches; with more, batches would repeat


@dataclass(frozen=True)
class Batch:
    """Tensors of one step.

    Attributes:
        text_ids: (N, L), 0 = padding.
        objectives: (N, K) ids, in decoding order.
        numbers: (N, K, T) number ids of the labels.
        values: (N, K) float64 labels in the objectives' own units; arbitrary where ``present`` is False.
        present: (N, K) bool, False where a row lacks the label.
        visible: (N, K, K) bool, True at (n, i, j) if number i of row n is decoded given number j.
    """

    text_ids: Tensor
    objectives: Tensor
    numbers: Tensor
    values: Tensor
    present: Tensor
    visible: Tensor

    def to(self, device: str) -> Batch:
        """Copy the batch to a device."""
        return Batch(*[x.to(device) for x in vars(self).values()])

    def part(self, index: int, count: int) -> Batch:
        """Return one of ``count`` parts that together have every row once.

        If there are fewer rows than parts, the remaining parts are one row whose labels do not count, so that the
        processes that compute them stay in step with the others.
        """
        if index >= len(self.text_ids):
            first = self.part(0, len(self.text_ids))
            return replace(first, present=torch.zeros_like(first.present))
        return Batch(*[x[index::count] for x in vars(self).values()])


class Batches:
    """Batches by step number; a step always gives the same batch, in whatever order steps are requested.

    Args:
        token_ids: ids of every text.
        labels: (rows, M), NaN where a row has none.
        weights: (M,) relative frequency with which each objective is drawn.
        code: turns labels to number ids.
        batch_size: N.
        objectives_per_row: the largest K.
        alone_probability: share of the rows whose numbers do not see each other.
        seed: of everything drawn.
        row_weights: (rows,) relative frequency with which each row is drawn; if all are equal or None, every row is
            drawn once per epoch.
        redraw: computes the ids of a batch's augmented texts, which replace ``token_ids``.
    """

    def __init__(
        self,
        token_ids: Sequence[TokenIds],
        labels: FloatArray,
        weights: FloatArray,
        code: NumberCode,
        *,
        batch_size: int,
        objectives_per_row: int,
        alone_probability: float,
        seed: int,
        row_weights: FloatArray | None = None,
        redraw: Redraw | None = None,
    ) -> None:
        self._token_ids, self._row_weights, self._redraw = token_ids, row_weights, redraw
        self._known = np.isfinite(labels)
        self._values = np.where(self._known, labels, 0.0)  # no number code warns of 0
        self._numbers = _encoded(self._values, code)
        self._log_weights = np.log(weights)
        self._batch_size, self._seed = batch_size, seed
        self._objectives_per_row = min(objectives_per_row, labels.shape[1])
        self._alone_probability = alone_probability
        self._lengths = np.array([len(ids) for ids in token_ids])
        self._epoch, self._order = -1, [np.arange(0)]

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in one pass over the rows."""
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
        numbers, values = (x[rows[:, None], objectives] for x in (self._numbers, self._values))
        text_ids = pad(self._ids(rows.tolist(), step))
        drawn = (objectives, numbers.astype(np.int64), values, present, visible)
        return Batch(text_ids, *map(torch.from_numpy, drawn))

    def _ids(self, rows: Sequence[int], step: int) -> Sequence[TokenIds]:
        if self._redraw is not None:
            return self._redraw(rows, np.random.default_rng((self._seed, 2, step)))
        return [self._token_ids[row] for row in rows]

    def _shuffle(self, epoch: int) -> list[NDArray[np.intp]]:
        """Return the batches of one epoch: random rows, sorted by length within groups of batches, in random order."""
        rng = np.random.default_rng((self._seed, 0, epoch))
        order = self._draw_rows(rng)
        group = self._batch_size * BATCHES_SORTED_TOGETHER
        batches: list[NDArray[np.intp]] = []
        for start in range(0, len(order), group):
            rows = order[start : start + group]
            rows = rows[np.argsort(self._lengths[rows], kind="stable")]
            batches += [rows[first : first + self._batch_size] for first in range(0, len(rows), self._batch_size)]
        return [batches[index] for index in rng.permutation(len(batches))]

    def _draw_rows(self, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw as many rows as there are, in random order, each in proportion to its weight, rounded up or down."""
        order = rng.permutation(len(self._token_ids))
        if self._row_weights is None or np.ptp(self._row_weights) == 0:
            return order
        reach = np.cumsum(self._row_weights[order] / self._row_weights.max())
        places = (np.arange(len(order)) + rng.random()) / len(order) * reach[-1]
        found = np.searchsorted(reach, places, side="right").clip(max=len(order) - 1)
        return order[rng.permutation(found)]

    def _draw_objectives(self, rows: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw (N, K) objective ids, in decoding order: labelled ones by weight without replacement (Gumbel top-k).

        K is at most the largest number of labels that one of these rows has.
        """
        keys = self._log_weights + rng.gumbel(size=(len(rows), self._known.shape[1]))
        known = self._known[rows]
        keys = np.where(known, keys, -np.inf)
        K = min(self._objectives_per_row, max(1, int(known.sum(axis=1).max())))
        return np.sort(np.argsort(-keys, axis=1)[:, :K], axis=1)


def _encoded(values: FloatArray, code: NumberCode) -> NDArray[Any]:
    """Return (rows, M, T) number ids of the smallest integer type that fits, since there may be millions of rows."""
    ids = np.empty((*values.shape, code.length), dtype=np.min_scalar_type(code.vocabulary_size))
    for column in range(values.shape[1]):
        ids[:, column] = code.encode(values[:, column])
    return ids
