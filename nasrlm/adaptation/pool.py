"""Texts with what a checkpoint predicts of them: what adapting learns from, and the choice of texts to measure.

N texts, M known objectives, S numbers of a summary, C counts, F of them that are sizes and differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from nasrlm.adaptation.averaged_process import AveragedProcess, prior_covariance
from nasrlm.adaptation.readout_fit import TextFeatures
from nasrlm.arrays import FloatArray, standardised
from nasrlm.checkpoints.checkpoint import Checkpoint, checked_checkpoint
from nasrlm.named_spaces import Space, checked_space
from nasrlm.objective import Objective
from nasrlm.predictor import MEMORY_BYTES, Predictor
from nasrlm.reader import checked_texts
from nasrlm.text.counts import NUM_COUNTS, NUM_SIZES, operator_counts

NOISE = 0.03  # variance that a label is expected to have of its own while texts are chosen, in units of all labels'
SIZES = 0.25  # variance of the networks' sizes, in units of that of the predictions
# Of a space of which nothing was learned: the same, the variance of predictions, and how probable it is that costs that
# follow something follow one of them (docs/log.md, 2026-11-27).
SIZES_BESIDE_GUESSES = 1.0
GUESSES = 0.1
GUESSES_FOLLOWED = 0.25


@dataclass(frozen=True)
class Pool:
    """Texts with what the model predicts of them.

    Attributes:
        texts: N texts.
        objectives: names of the M that the model predicts.
        features: (N, M) medians of the known objectives, on the scale on which they are learned, standardised.
        summaries: (N, S) a vector for each text, of its encoder states and the counts of its network; see
            ``Encoded.summaries``.
        guessed: those of the objectives that were not learned from networks of the texts' space.
    """

    texts: Sequence[str]
    objectives: Sequence[str]
    features: FloatArray
    summaries: FloatArray
    guessed: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"Pool({len(self.texts):,} texts, {len(self.objectives)} objectives; see texts, objectives, features)"

    @property
    def accuracies(self) -> FloatArray:
        """(N, up to M) predictions of accuracies alone."""
        return self.features[:, [Objective.parse(name).is_accuracy for name in self.objectives]]

    @property
    def learned(self) -> FloatArray:
        """(N, up to M) predictions that are no guesses."""
        return self.features[:, [not guess for guess in self._is_guess]]

    @property
    def counts(self) -> FloatArray:
        """(N, C) counts of the texts' networks, see ``text_counts``."""
        return self.summaries[:, -NUM_COUNTS:]

    @cached_property
    def _operators(self) -> tuple[FloatArray, FloatArray]:
        return operator_counts(self.texts)

    @property
    def logs_of_macs(self) -> FloatArray:
        """(N,) logarithms of the multiply-accumulates of the texts' networks."""
        return self._operators[1]

    @cached_property
    def followed(self) -> FloatArray:
        """(N, M + 1) what a new cost may follow, standardised: each prediction, and the logarithm of the multiply-
        accumulates, which is all there is in a space of which nothing was learned.
        """
        return np.concatenate([self.features, standardised(self.logs_of_macs[:, None])], axis=1)

    @property
    def follow_shares(self) -> FloatArray:
        """(M + 1,) prior probabilities that a cost follows each of ``followed`` rather than another.

        Guesses, of which there may be seventy, have ``GUESSES_FOLLOWED`` together.
        """
        guesses = np.array([*self._is_guess, False])
        if not guesses.any():
            return np.full(len(guesses), 1 / len(guesses))
        of_each = (1 - GUESSES_FOLLOWED) / np.count_nonzero(~guesses), GUESSES_FOLLOWED / np.count_nonzero(guesses)
        return np.where(guesses, of_each[1], of_each[0])

    @cached_property
    def inputs(self) -> FloatArray:
        """(N, M + F) what costs are learned from: predictions, and the networks' sizes and operators, standardised."""
        sizes = np.concatenate([self.counts[:, -NUM_SIZES:], self._operators[0]], axis=1)
        sizes = standardised(sizes[:, np.ptp(sizes, axis=0) > 0])
        of_sizes = SIZES_BESIDE_GUESSES if self.guessed else SIZES
        weight = math.sqrt(of_sizes * max(self.features.shape[1], 1) / max(sizes.shape[1], 1))
        trust = np.where(self._is_guess, math.sqrt(GUESSES), 1.0)
        return np.concatenate([trust * self.features, weight * sizes], axis=1)

    @property
    def _is_guess(self) -> list[bool]:
        return [name in self.guessed for name in self.objectives]

    @cached_property
    def text_features(self) -> TextFeatures:
        """What a readout compares the texts by."""
        return TextFeatures.of(torch.from_numpy(self.summaries))

    def process_of(self, rows: NDArray[np.intp], targets: FloatArray) -> AveragedProcess:
        """Fit a process to (n,) labels, of mean 0 and variance 1, of the texts ``rows``.

        It predicts from ``inputs`` and ``followed`` of other texts.
        """
        return AveragedProcess(self.inputs[rows], self.followed[rows], targets, self.follow_shares)

    def choose(self, samples: int) -> NDArray[np.intp]:
        """(samples,) rows of the texts whose labels would tell most about those of all texts, most telling first.

        See ``choose_diverse``, which can choose among some of the texts, or beside some that have labels already.

        Raises:
            ValueError: more samples than texts.

        Example:
            >>> pool = nasrlm.make_pool(checkpoint, onnx_texts, space="nasbench201")  # doctest: +SKIP
            >>> to_measure = [onnx_texts[row] for row in pool.choose(10)]  # doctest: +SKIP
        """
        return choose_diverse(self, np.arange(len(self.texts)), samples)

    def at(self, rows: NDArray[np.intp]) -> Pool:
        """Select texts, one with several labels several times; their features stay as this pool standardised them."""
        texts = [self.texts[row] for row in rows.tolist()]
        return replace(self, texts=texts, features=self.features[rows], summaries=self.summaries[rows])

    def pool_of(self, rows: NDArray[np.intp]) -> Pool:
        """Select texts as a pool of their own, whose features are standardised anew."""
        return replace(self.at(rows), features=standardised(self.features[rows]))

    def without(self, objective: str) -> Pool:
        """The pool of a model that does not know an objective."""
        kept = [column for column, name in enumerate(self.objectives) if name != objective]
        others = [self.objectives[column] for column in kept]
        return replace(self, objectives=others, features=self.features[:, kept], guessed=self.guessed - {objective})


def make_pool(checkpoint: Checkpoint, texts: Sequence[str], progress: bool = False, space: str | Space = "") -> Pool:
    """Texts with what a checkpoint predicts of them, for ``nasrlm.adapt``.

    Args:
        checkpoint: to be asked, and adapted later.
        texts: N.
        progress: show a bar on stderr.
        space: of the texts, or its name; only objectives that the checkpoint learned from this space are predicted. If
            the checkpoint does not know the space, all are predicted and, where the texts are networks, count as
            guesses. If empty, all are predicted and none counts as a guess.

    Raises:
        ValueError: no texts, one that is empty or longer than the model's context, no space, or a model that spells no
            digits.
    """
    check_adaptable(checkpoint)
    texts, space = checked_texts(texts), checked_space(space, checkpoint.spaces)
    if not texts:
        raise ValueError("adapt: expected a pool of texts, got none.")
    predictor = Predictor(checkpoint, "auto", MEMORY_BYTES).of_space(space)
    prediction = predictor.predict(texts, quantiles=(0.5,), progress=progress)
    columns = zip(prediction.objectives, prediction.median.T, strict=True)
    scaled = [scaled_labels(medians, is_logarithmic(name, medians)) for name, medians in columns]
    names, features, summaries = prediction.objectives, np.stack(scaled, axis=1), predictor.summaries(texts, progress)
    guessed = checkpoint.guessed_of(space) & {*names} if summaries[:, -NUM_COUNTS:].any() else frozenset()
    return Pool(texts, names, standardised(features), summaries, guessed)


def choose_diverse(
    pool: Pool, candidates: NDArray[np.intp], samples: int, *, measured: Sequence[int] = ()
) -> NDArray[np.intp]:
    """The texts whose labels would tell most about all candidates: greatest fall of the mean posterior variance.

    Args:
        pool: texts as the checkpoint sees them.
        candidates: rows of the pool that may be chosen.
        samples: how many.
        measured: other rows of the pool, whose labels are there already.

    Returns:
        (samples,) rows of the pool, most telling first.

    Raises:
        ValueError: fewer candidates than samples.

    Cost: samples times the square of the candidates; a second for ten of 3,000.
    """
    if len(candidates) < samples:
        raise ValueError(f"choose_diverse: expected {samples} candidates or more, got {len(candidates)}.")
    covariance = prior_covariance(pool.inputs[candidates], pool.inputs[candidates])
    if len(measured):
        known = pool.inputs[np.array(measured)]
        across = prior_covariance(known, pool.inputs[candidates])
        covariance -= across.T @ np.linalg.solve(prior_covariance(known, known) + NOISE * np.eye(len(measured)), across)
    chosen: list[int] = []
    for _ in range(samples):
        gain = np.einsum("ij,ij->j", covariance, covariance) / (covariance.diagonal() + NOISE)
        gain[chosen] = -np.inf
        best = int(gain.argmax())
        chosen.append(best)
        column = covariance[:, best].copy()
        covariance -= np.outer(column, column / (column[best] + NOISE))
    return candidates[chosen]


def check_adaptable(checkpoint: Checkpoint, objectives: Sequence[str] = ()) -> None:
    """Check, before texts are read, that ``adapt`` can teach a checkpoint these objectives.

    Raises:
        ValueError: no checkpoint, a model that spells no digits, or a name that is no objective's.
    """
    checked_checkpoint(checkpoint, "adapt")
    if checkpoint.model.config.head != "digits":
        raise ValueError(f"adapt: expected a checkpoint with head digits, got head {checkpoint.model.config.head}.")
    for name in objectives:
        Objective.parse(name)


def is_logarithmic(objective: str, values: FloatArray) -> bool:
    """Whether an objective is learned on a logarithmic scale: costs above 0 are, accuracies are not.

    From device to device costs differ by a factor rather than by a difference.
    """
    return not Objective.parse(objective).is_accuracy and bool((values > 0).all())


def scaled_labels(values: FloatArray, logarithmic: bool) -> FloatArray:
    """Labels on the scale on which they are learned; see ``is_logarithmic``."""
    scaled: FloatArray = np.log(values) if logarithmic else values
    return scaled
