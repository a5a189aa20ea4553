"""Pools: texts with a checkpoint's predictions, from which adapting learns, and the choice of texts to measure.

N texts, M known objectives, S numbers of a summary, C counts, K sizes of networks that a cost may follow, F sizes and
counts of operators that are not constant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from nasrlm.adaptation.averaged_process import AveragedProcess, prior_covariance
from nasrlm.adaptation.readout_fit import TextFeatures
from nasrlm.arguments import checked_whole
from nasrlm.arrays import FloatArray, standardised
from nasrlm.checkpoints.checkpoint import Checkpoint, check_checkpoint
from nasrlm.named_spaces import Space, known_as, name_of
from nasrlm.objective import Objective
from nasrlm.predictor import MEMORY_BYTES, Predictor
from nasrlm.reader import checked_texts
from nasrlm.text.counts import NUM_COUNTS, NUM_SIZES, operator_counts

MACS = "macs@onnx"  # costs are expected to follow ``Pool.sizes`` in the direction in which they follow this
NOISE = 0.03  # variance of a label's noise assumed when texts are chosen, in units of the variance of all labels
SIZES = 0.25  # variance of the networks' sizes, in units of the variance of the predictions
# For a space from which nothing was learned (docs/log.md, 2026-11-27):
SIZES_BESIDE_GUESSES = 1.0  # in place of SIZES
GUESSES = 0.1  # variance of predictions that are guesses, in units of that of other predictions
GUESSES_FOLLOWED = 0.25  # prior probability that a cost follows any of the guesses, given that it follows something


@dataclass(frozen=True, eq=False)  # compared by identity, as arrays have no single answer
class Pool:
    """Texts with a model's predictions for them.

    Attributes:
        texts: N texts.
        objectives: names of the M objectives that the model predicts.
        features: (N, M) predicted medians of these objectives, standardised, on the scale of ``scaled_labels``.
        summaries: (N, S) summaries of the texts: means of encoder states and embeddings, and counts of the network; see
            ``Encoded.summaries``.
        guessed: those of the objectives that were not learned from networks of the texts' space.
        read_off: those of the objectives that a readout predicted, which ``adapt`` had taught the model.
        space: name of the texts' space; "" if it is not known.
    """

    texts: Sequence[str]
    objectives: Sequence[str]
    features: FloatArray
    summaries: FloatArray
    guessed: frozenset[str] = frozenset()
    read_off: frozenset[str] = frozenset()
    space: str = ""

    def __repr__(self) -> str:
        return f"Pool({len(self.texts):,} texts, {len(self.objectives)} objectives; see texts, objectives, features)"

    @property
    def accuracies(self) -> FloatArray:
        """(N, up to M) predictions of the accuracies."""
        return self.features[:, [Objective.parse(name).is_accuracy for name in self.objectives]]

    @property
    def learned(self) -> FloatArray:
        """(N, up to M) predictions of the objectives that are not guessed."""
        return self.features[:, [not guess for guess in self._is_guess]]

    @property
    def counts(self) -> FloatArray:
        """(N, C) counts of the texts' networks, see ``text_counts``."""
        return self.summaries[:, -NUM_COUNTS:]

    @cached_property
    def _operators(self) -> tuple[FloatArray, FloatArray]:
        return operator_counts(self.texts)

    @property
    def log_sizes(self) -> FloatArray:
        """(N, 2) logarithms of the multiply-accumulates (MACs) and activations of the texts' networks."""
        return self._operators[1][:, :2]

    @cached_property
    def sizes(self) -> FloatArray:
        """(N, K) standardised logarithms of the MACs, of the activations, on which the speed of a GPU depends if it
        runs many images at once, and, in a space from which nothing was learned, of the number of operators, on which
        it depends at batch size 1. They are no guesses in any space.
        """
        return standardised(self._operators[1] if self.guessed else self.log_sizes)

    @cached_property
    def followed(self) -> FloatArray:
        """(N, M + K) quantities that a new cost may follow, standardised: the predictions, then ``sizes``."""
        return np.concatenate([self.features, self.sizes], axis=1)

    @property
    def follow_shares(self) -> FloatArray:
        """(M + K,) prior probabilities that a cost follows each column of ``followed``, given that it follows one.

        All guesses together, which may be seventy, have the probability ``GUESSES_FOLLOWED``; all sizes together are as
        likely as one prediction that is no guess.
        """
        num_guesses, num_sizes = len(self.guessed), self.sizes.shape[1]
        of_guesses = GUESSES_FOLLOWED if num_guesses else 0.0
        of_each = (1 - of_guesses) / (len(self.objectives) - num_guesses + 1)
        of_predictions = np.where(self._is_guess, of_guesses / max(num_guesses, 1), of_each)
        return np.concatenate([of_predictions, np.full(num_sizes, of_each / num_sizes)])

    @cached_property
    def inputs(self) -> FloatArray:
        """(N, M + F) features from which costs are learned: standardised predictions, sizes and counts of operators.

        Guesses, and sizes with counts of operators, are scaled to the variances given at the top of this module.
        """
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
        """The features by which a readout compares the texts."""
        return TextFeatures.of(torch.from_numpy(self.summaries))

    def process_of(self, objective: str, rows: NDArray[np.intp], targets: FloatArray) -> AveragedProcess:
        """Fit a Gaussian process to labels of some texts; it predicts from ``inputs`` and ``followed`` of any texts.

        Args:
            objective: name of the labels' objective.
            rows: (n,) indices of the labelled texts.
            targets: (n,) labels, with mean 0 and variance 1.

        Raises:
            ValueError: the texts have no ``inputs``.
        """
        if not self.inputs.shape[1]:
            raise ValueError(
                f"adapt: expected texts of networks, or a checkpoint that predicts more than {objective}, to which it "
                "was adapted before, got neither. Start from the checkpoint before that."
            )
        names = (*self.objectives, *[MACS] * self.sizes.shape[1])
        directions = np.array([_direction_of(objective, followed) for followed in names])
        return AveragedProcess(self.inputs[rows], self.followed[rows], targets, self.follow_shares, directions)

    def choose(self, samples: int) -> NDArray[np.intp]:
        """Return (samples,) indices of the texts whose labels are most informative about the labels of all texts.

        The most informative text comes first. ``choose_diverse`` can also choose among some of the texts, or in
        addition to texts that have labels already.

        Raises:
            ValueError: no whole number of 1 or more, or more samples than texts.

        Example:
            >>> pool = nasrlm.make_pool(checkpoint, onnx_texts, space="nasbench201")  # doctest: +SKIP
            >>> to_measure = [onnx_texts[row] for row in pool.choose(10)]  # doctest: +SKIP
        """
        return choose_diverse(self, np.arange(len(self.texts)), checked_whole("samples", samples, 1))

    def at(self, rows: NDArray[np.intp]) -> Pool:
        """Return a pool of the texts at these indices, which may repeat; features keep this pool's standardisation."""
        texts = [self.texts[row] for row in rows.tolist()]
        return replace(self, texts=texts, features=self.features[rows], summaries=self.summaries[rows])

    def pool_of(self, rows: NDArray[np.intp]) -> Pool:
        """Return a pool of the texts at these indices, with features standardised anew."""
        return replace(self.at(rows), features=standardised(self.features[rows]))

    def without(self, objective: str) -> Pool:
        """Return the pool without the predictions of an objective, as if the model did not know it."""
        kept = [column for column, name in enumerate(self.objectives) if name != objective]
        others = [self.objectives[column] for column in kept]
        guessed, read_off = self.guessed - {objective}, self.read_off - {objective}
        return replace(self, objectives=others, features=self.features[:, kept], guessed=guessed, read_off=read_off)

    def to_learn(self, objective: str) -> Pool:
        """Return the pool to learn an objective from: without predictions of it that a readout has made, because the
        readout may have learned these very labels, and would leak them.
        """
        return self.without(objective) if objective in self.read_off else self


def make_pool(checkpoint: Checkpoint, texts: Iterable[str], progress: bool = False, space: str | Space = "") -> Pool:
    """Return a pool of texts with a checkpoint's predictions for them, for ``nasrlm.adapt``.

    Args:
        checkpoint: the checkpoint that predicts, and that will be adapted.
        texts: N texts.
        progress: whether to show a bar on stderr.
        space: the space of the texts, or its name; only objectives that the checkpoint has learned for this space are
            predicted. If the checkpoint does not know the space, all are predicted; if the texts are networks, those
            that were not learned from this space count as guesses. If empty, all are predicted and none is a guess.

    Raises:
        ValueError: ``checkpoint`` is not a Checkpoint, or its head is not "digits"; there are no texts; a text is empty
            or longer than the model's context; or ``space`` is neither a space nor a name.
    """
    check_adaptable(checkpoint)
    texts, space = checked_texts(texts), known_as(name_of(space), checkpoint.spaces)
    if not texts:
        raise ValueError("adapt: expected a pool of texts, got none.")
    predictor = Predictor(checkpoint, "auto", MEMORY_BYTES).of_space(space)
    prediction = predictor.predict(texts, quantiles=(0.5,), progress=progress)
    columns = zip(prediction.objectives, prediction.median.T, strict=True)
    scaled = [scaled_labels(medians, is_logarithmic(name, medians)) for name, medians in columns]
    names, features, summaries = prediction.objectives, np.stack(scaled, axis=1), predictor.summaries(texts, progress)
    guessed = checkpoint.guessed_of(space) & {*names} if summaries[:, -NUM_COUNTS:].any() else frozenset()
    return Pool(texts, names, standardised(features), summaries, guessed, checkpoint.read_off & {*names}, space)


def choose_diverse(
    pool: Pool, candidates: NDArray[np.intp], samples: int, *, measured: Sequence[int] = ()
) -> NDArray[np.intp]:
    """Choose the texts whose labels are most informative about the labels of all candidates.

    Each one chosen gives the greatest decrease of the mean posterior variance of a Gaussian process, after those before
    it (greedy choice).

    Args:
        pool: the texts, with predictions.
        candidates: indices of the texts that may be chosen.
        samples: number of texts to choose.
        measured: indices of other texts, which have labels already.

    Returns:
        (samples,) indices of texts, the most informative first.

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
    """Check, before texts are encoded, that ``adapt`` can teach a checkpoint these objectives.

    Raises:
        ValueError: ``checkpoint`` is not a Checkpoint, its head is not "digits", or a name is not that of an objective.
    """
    check_checkpoint("adapt", checkpoint)
    if checkpoint.model.config.head != "digits":
        raise ValueError(f"adapt: expected a checkpoint with head digits, got head {checkpoint.model.config.head}.")
    for name in objectives:
        Objective.parse(name)


def is_logarithmic(objective: str, values: FloatArray) -> bool:
    """Return whether an objective is learned on a logarithmic scale: if it is a cost and all values are above 0.

    The reason is that costs on two devices differ by a factor rather than by a difference.
    """
    return not Objective.parse(objective).is_accuracy and bool((values > 0).all())


def scaled_labels(values: FloatArray, logarithmic: bool) -> FloatArray:
    """Return values on the scale on which they are learned: their logarithms, or unchanged; see ``is_logarithmic``."""
    scaled: FloatArray = np.log(values) if logarithmic else values
    return scaled


def _direction_of(objective: str, followed: str) -> float:
    """Return 1 if an objective is expected to grow with another, -1 if it is expected to shrink, 0 if neither.

    Costs grow together, and so do accuracies; throughputs shrink as costs grow.
    """
    wanted, other = Objective.parse(objective), Objective.parse(followed)
    if wanted.is_accuracy or other.is_accuracy:
        return float(wanted.is_accuracy and other.is_accuracy)
    if wanted.grows_with_size is None or other.grows_with_size is None:
        return 0.0
    return 1.0 if wanted.grows_with_size == other.grows_with_size else -1.0
