"""Detect results in a unit other than the objective's, such as seconds instead of milliseconds.

n results of an objective.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from nasrlm.arrays import BoolArray, FloatArray
from nasrlm.objective import Objective
from spaces import SearchSpace
from studies.ledger import Entry
from studies.surrogates.memory import SamplingPredictor

A = TypeVar("A", bound=Hashable)

FEWEST, MOST = 5, 20  # numbers of results that are compared with predictions
MIN_AGREEING_SHARE = 0.8  # share of these that must suggest another unit; one of five evaluations may have failed
NEAR = 10**0.5  # largest ratio to a unit's factor; a device that is three times as slow is not another unit
LEAST_DIFFERENCE = 40.0  # smallest difference of result and prediction, in percent, for errors instead of accuracies
NEARER = 8.0  # ratio by which 100 minus the result has to be nearer to the prediction than the result is
MAX_CORRELATION = 0.5  # correlation of results with predictions from which they are accuracies; near 0 if all are good


class UnitCheck(Generic[A]):
    """Compares the first results of known objectives with the predictions before any learning.

    Args:
        predictor: the predictor before it has learned from results.
        to_text: converts an architecture to the text that the predictor reads.
        space: the search space.
        objectives: M names of the results.
        unsure: objectives that are not checked, because they are guessed or their results are predictions.
    """

    def __init__(
        self,
        predictor: SamplingPredictor,
        to_text: Callable[[A], str],
        space: SearchSpace[A],
        objectives: Sequence[str],
        unsure: Collection[str],
    ) -> None:
        self._predictor, self._to_text, self._space = predictor, to_text, space
        self._objectives = tuple(objectives)
        known = [name for name in objectives if name in predictor.objectives]
        self._left = [name for name in known if name not in unsure]  # each is checked once

    def odd_units(self, evaluated: Sequence[Entry]) -> list[str]:
        """Return warnings about units; each objective is checked once, as soon as it has ``FEWEST`` results."""
        told = []
        for name in [*self._left]:
            column = self._objectives.index(name)
            first = [entry for entry in evaluated if np.isfinite(entry.real[column])][:MOST]
            if len(first) < FEWEST:
                continue
            self._left.remove(name)
            texts = [self._to_text(self._space.parse(entry.architecture)) for entry in first]
            predicted = self._predictor.predict(texts, [name], (0.5,)).median[:, 0]
            real, objective = np.array([entry.real[column] for entry in first]), Objective.parse(name)
            if seems := likely_unit(objective, predicted, real):
                unit, times = f" in {objective.unit}" if objective.unit else "", np.median(real) / np.median(predicted)
                told.append(
                    f"results: expected {name}{unit}, got what seems to be {seems}: their median is {times:.2g} times "
                    f"that of the model's predictions for {len(real)} networks."
                )
        return told


def likely_unit(objective: Objective, predicted: FloatArray, real: FloatArray) -> str | None:
    """Return the unit that most of (n,) results seem to have, given (n,) predictions; None if it is the objective's."""
    if objective.is_accuracy:
        return _likely_errors(predicted, real)
    is_positive = (predicted > 0) & (real > 0)
    off = np.log(np.where(is_positive, real, np.nan) / np.where(is_positive, predicted, np.nan))
    for unit, factor in objective.other_units.items():
        if _agree(np.abs(off - np.log(factor)) < np.log(NEAR)):
            return unit
    return None


def _likely_errors(predicted: FloatArray, real: FloatArray) -> str | None:
    """Return what the accuracies seem to be if they are errors instead, or None.

    Accuracies as fractions are no errors; they are checked by ``Objective.seems_fraction``.
    """
    readings = {"errors in percent": 100 - real, "errors as fractions": 100 - 100 * real, None: 100 * real}
    words = min(readings, key=lambda name: np.abs(readings[name] - predicted).mean())
    off = np.abs(real - predicted)
    near = (off > LEAST_DIFFERENCE) & (np.abs(readings[words] - predicted) < off / NEARER)
    varies = np.ptp(real) > 0 and np.ptp(predicted) > 0  # not if every training failed
    return words if varies and _agree(near) and np.corrcoef(predicted, real)[0, 1] < MAX_CORRELATION else None


def _agree(near: BoolArray) -> bool:
    return bool(near.mean() >= MIN_AGREEING_SHARE)
