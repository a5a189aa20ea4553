"""Results in another unit than their objective's, such as seconds for milliseconds. n results of an objective."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from nasrlm.arrays import BoolArray, FloatArray
from nasrlm.objective import Objective
from spaces import SearchSpace
from studies.ledger import Entry
from studies.surrogates.memory import SamplingPredictor
from studies.surrogates.without_guesses import guessed_objectives

A = TypeVar("A", bound=Hashable)

FEWEST, MOST = 5, 20  # results that are compared with what was predicted of them
AGREE = 0.8  # of these: one of five may have failed
NEAR = 10**0.5  # times a unit's factor, at most; a device that is three times as slow is no other unit
LEAST_DIFFERENCE = 40.0  # between an accuracy and its error, in percent
NEARER = 8.0  # times, that errors have to be to what was predicted than accuracies
MOST_ALIKE = 0.5  # correlation of errors with what was predicted; among networks that are all good it is chance


class UnitCheck(Generic[A]):
    """Compares the first results of objectives that a model knows with what it said before it learned from them.

    Args:
        predictor: as it is at first.
        to_text: architecture to the text that it reads.
        space: of the architectures.
        objectives: M names of the results.
        modelled: of these, what is the predictor's own.
    """

    def __init__(
        self,
        predictor: SamplingPredictor,
        to_text: Callable[[A], str],
        space: SearchSpace[A],
        objectives: Sequence[str],
        modelled: Sequence[str],
    ) -> None:
        self._predictor, self._to_text, self._space = predictor, to_text, space
        self._objectives = tuple(objectives)
        unsure = guessed_objectives(predictor, space, objectives).union(modelled)
        known = [name for name in objectives if name in predictor.objectives]
        self._left = [name for name in known if name not in unsure]  # each is looked at once

    def odd_units(self, evaluated: Sequence[Entry]) -> list[str]:
        """What is to be told of results, of each objective as soon as there are ``FEWEST``."""
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
                    f"results: expected {name}{unit}, got what seems to be {seems}: in the median {times:.2g} times "
                    f"what the model expects of {len(real)} networks."
                )
        return told


def likely_unit(objective: Objective, predicted: FloatArray, real: FloatArray) -> str | None:
    """The unit that most of (n,) results seem to be in, given (n,) predictions in the objective's; None if in that."""
    if objective.is_accuracy:
        return _likely_errors(predicted, real)
    is_told = (predicted > 0) & (real > 0)
    off = np.log(np.where(is_told, real, np.nan) / np.where(is_told, predicted, np.nan))
    for unit, factor in objective.other_units.items():
        if _agree(np.abs(off - np.log(factor)) < np.log(NEAR)):
            return unit
    return None


def _likely_errors(predicted: FloatArray, real: FloatArray) -> str | None:
    """What accuracies seem to be that are nearly what is left of those predicted; fractions are told of elsewhere."""
    readings = {"errors in percent": 100 - real, "errors as fractions": 100 - 100 * real}
    words = min(readings, key=lambda name: np.abs(readings[name] - predicted).mean())
    off = np.abs(real - predicted)
    near = (off > LEAST_DIFFERENCE) & (np.abs(readings[words] - predicted) < off / NEARER)
    varies = np.ptp(real) > 0 and np.ptp(predicted) > 0  # unlike those of training that failed
    return words if varies and _agree(near) and np.corrcoef(predicted, real)[0, 1] < MOST_ALIKE else None


def _agree(near: BoolArray) -> bool:
    return bool(near.mean() >= AGREE)
