"""The surrogate of a search, which learns again as results come in."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import pandas as pd

from converters.tables.counts import COUNTS
from nasrlm.callers import warn_caller
from spaces import SearchSpace, Spellings
from studies.gate import Decision, Gate
from studies.ledger import Entry, Ledger
from studies.surrogates.counting_predictor import CountMemory, counting
from studies.surrogates.known_only import KnownOnly, guessed_objectives, without_guesses
from studies.surrogates.medians_only import MediansOnly
from studies.surrogates.memory import PredictorMemory, SamplingPredictor, TextMemory, TextPredictor
from studies.surrogates.other_units import UnitCheck

A = TypeVar("A", bound=Hashable)

Adapt = Callable[[pd.DataFrame], SamplingPredictor]  # table of real results to a predictor that has learned from them


@dataclass(frozen=True)
class Model(Generic[A]):
    """The surrogate of a guided search.

    Attributes:
        predictor: gives samples and quantiles.
        memory: the same predictor with cached quantiles; NaN for objectives that it does not know.
        to_text: converts an architecture to the text that the predictor reads; cached.
    """

    predictor: SamplingPredictor
    memory: TextPredictor
    to_text: Callable[[A], str]

    def check(self, gate: Gate, architectures: Sequence[A]) -> list[Decision]:
        """Return a gate's decisions by those objectives that the predictor knows."""
        return gate.check([self.to_text(architecture) for architecture in architectures], self.memory)


class LearningModel(Generic[A]):
    """A surrogate that learns again as results come in.

    Args:
        space: the search space.
        predictor: used until there are results to learn from.
        to_text: converts an architecture to the text that the predictor reads.
        objectives: names that it has to predict; those in ``COUNTS`` are counted instead.
        modelled: objectives whose predictions count as certain, because the evaluator takes them from the predictor.

    Attributes:
        model: the current surrogate.
        guessed: objectives that it can only guess; none once it learns, because then it does not predict them until it
            has learned them.
        to_text: as given.
        odd_units: function that returns warnings about the units of results, compared with the first predictor; see
            ``UnitCheck.odd_units``.
    """

    def __init__(
        self,
        space: SearchSpace[A],
        predictor: SamplingPredictor,
        to_text: TextMemory[A],
        objectives: Sequence[str],
        modelled: Sequence[str] = (),
    ) -> None:
        self._space, self._first, self.to_text, self._modelled = space, predictor, to_text, modelled
        self._counts = None if set(COUNTS).isdisjoint(objectives) else CountMemory(space, to_text)
        self._adapt: Adapt | None = None
        self._every, self._num_learned = 1, 0
        self._has_warned_of_twins = isinstance(space, Spellings)  # whose architectures have a key for each notation
        self.model = self._make(predictor)
        learned = [name for name in objectives if name not in (*modelled, *COUNTS)]
        self.guessed = guessed_objectives(predictor, space, learned)
        unsure = self.guessed.union(modelled)
        self.odd_units = UnitCheck(self.model.predictor, to_text, space, objectives, unsure).odd_units

    @property
    def learns(self) -> bool:
        """Whether it learns from results."""
        return self._adapt is not None

    def learn_by(self, adapt: Adapt, every: int) -> None:
        """Learn with ``adapt`` after every ``every`` results from now on, also what could only be guessed."""
        self._adapt, self._every = adapt, every
        if self.guessed:
            self.model = self._make(without_guesses(self._first, self.guessed))
            self.guessed = frozenset()

    def learn(self, ledger: Ledger) -> Model[A]:
        """Return the surrogate, which first learns again if there are ``every`` more results than last time."""
        count = len(ledger.answered) // self._every * self._every
        if self._adapt is not None and count > self._num_learned:
            self._warn_of_twins(ledger.answered)
            adapted = self._adapt(ledger.labels(count))
            if not callable(getattr(adapted, "predict", None)):
                raise TypeError(
                    f"adapt: expected a predictor that has learned from {count} results, got {adapted!r:.60}."
                )
            self.model = self._make(adapted)
            self._num_learned = count
        return self.model

    def _warn_of_twins(self, evaluated: Sequence[Entry]) -> None:
        """Warn once if entries with different keys have the same text, so that a network was evaluated twice."""
        first_of: dict[str, Entry] = {}
        for entry in evaluated if not self._has_warned_of_twins else ():
            first = first_of.setdefault(self.to_text(self._space.parse(entry.architecture)), entry)
            if first is not entry:
                self._has_warned_of_twins = True
                warn_caller(
                    f"{self._space.name}: expected one architecture_key per network, got {first.key} and {entry.key}. "
                    "Unless they are trained differently, leave the difference out of architecture_key."
                )
                return

    def _make(self, predictor: SamplingPredictor) -> Model[A]:
        counted = counting(predictor, self._counts) if self._counts else predictor
        certain = MediansOnly(counted, self._modelled) if self._modelled else counted
        return Model(certain, PredictorMemory(KnownOnly(certain, certain.objectives)), self.to_text)
