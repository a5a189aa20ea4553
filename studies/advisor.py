"""The gate and the surrogate for a study that the user runs: prune, propose, and learn from its results.

N architectures, M objectives.
"""

import functools
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy, deepcopy
from difflib import get_close_matches
from typing import Any, Generic, Self, TypeVar

import numpy as np

from converters import to_measured_text
from converters.tables.counts import COUNTS
from nasrlm.arguments import check_flag, checked_whole
from nasrlm.arrays import FloatArray
from nasrlm.callers import warn_caller
from nasrlm.objective import MAX_LABEL, Goal, Objective
from nasrlm.predictor import Predictor
from spaces import SearchSpace, Spellings
from spaces.registry import check_name, opened
from studies.config import SearchConfig, parsed, twins_of
from studies.constraints import Constraint, hard
from studies.gate import Decision, Gate
from studies.guide import RISK, Guide, Risk, checked_guide
from studies.history import CHOSEN, EVALUATED, PRUNED
from studies.ledger import Entry, Ledger
from studies.own_space import network_doubt
from studies.proposal import propose
from studies.surrogates.learning import Adapt, LearningModel
from studies.surrogates.memory import SamplingPredictor, TextMemory, of_space
from studies.surrogates.process_adapter import NetworkFeatures, ProcessAdapter, check_readable, every_network

IMPOSSIBLE = "impossible results"  # key of a warning that is given once
MISSPELLED_SIMILARITY = 0.9  # from which a name seems misspelled; latency@pixel3 and latency_ms@pixel3 have 0.903

A = TypeVar("A", bound=Hashable)


@functools.cache
def released_predictor() -> Predictor:
    """Return the released checkpoint, loaded once per process."""
    return Predictor.from_pretrained()


class Advisor(Generic[A]):
    """The common part of ``ParetoGate`` and ``GatedProblem``: the gate and the surrogate.

    Isomorphic architectures count as one network, unless their real costs differ (``studies.config.twins_of``).

    Args:
        space: a search space or its name.
        goals: such as ``max:accuracy@cifar10``. With the objectives of constraints there are M objectives.
        predictor: a ``nasrlm.Predictor``, whose ``of_space`` predicts; the released checkpoint if None.
        to_text: converts an architecture to the text that the predictor reads; ``nasrlm.to_measured_text`` if None.
        constraints: such as ``latency_ms@pixel3<=10``, or ``soft:latency_ms@pixel3<=10``.
        risk: risk of the gate, one number for all objectives together or one for each by name.
        best: best conceivable values for the gate, see ``studies.gate.Gate``.

    Raises:
        ValueError: the space is unknown; a goal, constraint, risk or best value is invalid; or ``predictor`` is not a
            predictor.
    """

    def __init__(
        self,
        space: SearchSpace[A] | str,
        goals: Sequence[str],
        *,
        predictor: SamplingPredictor | None = None,
        to_text: Callable[[A], str] | None = None,
        constraints: Sequence[str] = (),
        risk: Risk = RISK,
        best: Mapping[str, float] | None = None,
    ) -> None:
        read_goals = parsed("gate", "goals", goals, Goal)
        read_constraints = parsed("gate", "constraints", constraints, Constraint)
        if isinstance(space, type):
            raise ValueError(
                f"gate: expected a space, got the class {space.__name__}. Create an instance: {space.__name__}()."
            )
        if predictor is not None and not hasattr(predictor, "predict"):
            raise ValueError(
                f"gate: expected a predictor, got {predictor!r:.80}. To load a folder, use "
                "nasrlm.Predictor.from_pretrained(folder)."
            )
        named: SearchSpace[A] = opened(space)
        check_name(named)
        self.gate = Gate(read_goals, read_constraints, risk=risk, best=best)
        self.space = self._config(0, named).searched(named)
        self.to_text = TextMemory(to_text or functools.partial(to_measured_text, named))
        self._predictor = of_space(released_predictor() if predictor is None else predictor, self.space)
        self._learning = LearningModel(self.space, self._predictor, self.to_text, self.objectives)
        self.gate.guessed = self._learning.guessed
        self._warned: set[str] = set()
        for doubt in filter(None, (*(goal.doubt for goal in read_goals), network_doubt(self.space))):
            warn_caller(doubt)
        self._warn_of_misspelled()

    def _warn_of_misspelled(self) -> None:
        """Warn of objectives that the predictor does not know, although it knows one with nearly the same name."""
        for name in self._learned:
            if name in self._predictor.objectives:
                continue
            if near := _similar_name(name, self._predictor.objectives):
                warn_caller(
                    f"gate: expected an objective that the predictor knows, got {name}, which must be learned from "
                    f"results. Did you mean {near}?"
                )

    def warn_once(self, of: str, message: str) -> None:
        """Warn, but only the first time for each key ``of``."""
        if of not in self._warned:
            self._warned.add(of)
            warn_caller(message)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy the front but share the model, because pymoo's ``save_history`` copies every generation."""
        other = copy(self)
        other.gate, other._learning, other._warned = deepcopy(self.gate, memo), copy(self._learning), {*self._warned}
        return other

    @property
    def objectives(self) -> tuple[str, ...]:
        """The M names of objectives: those of goals, then those of constraints only."""
        return self.gate.objectives

    @property
    def learns(self) -> bool:
        """Whether the model learns from results."""
        return self._learning.learns

    @property
    def _learned(self) -> list[str]:
        """The objectives that can be learned from results; the others are counts."""
        return [name for name in self.objectives if name not in COUNTS]

    @property
    def can_predict(self) -> bool:
        """Whether the model already knows every objective; it may still have to learn one from results.

        Raises:
            ValueError: an objective is unknown and the model does not learn.
        """
        unknown = [name for name in self.objectives if name not in self._learning.model.predictor.objectives]
        if unknown and not self.learns:
            raise ValueError(
                f"gate: expected a predictor that knows {', '.join(self.objectives)}, got one without "
                f"{', '.join(unknown)}. Let it learn from the results: create its adapt_callback() before using the "
                "gate."
            )
        return not unknown

    def check(self, architectures: Sequence[A]) -> list[Decision]:
        """Return the gate's decisions; while an objective is still to be learned, only hard constraints prune."""
        if not self.can_predict and not hard(self.gate.constraints):
            nothing = np.full((len(self.objectives), 3), np.nan)
            return [Decision(nothing) for _ in architectures]
        self._warn_of_guesses()
        return self._learning.model.check(self.gate, architectures)

    def propose(
        self, tried: Sequence[Entry], count: int, *, guide: Guide | None = None, seed: int = 0
    ) -> tuple[list[Entry], list[Entry]]:
        """Return up to ``count`` entries of architectures that were not tried, best first, and those that were pruned.

        The proposed ones have the largest expected hypervolume improvement. While an objective is still to be learned,
        they are drawn at random from those that may meet the hard constraints. The guide's risk, batch_size and
        adapt_every are ignored: the gate's risk, ``count`` and ``learn_every`` replace them.

        Raises:
            ValueError: ``count`` is not a whole number of 1 or more, or ``guide`` is no guide.
        """
        guide = checked_guide("gate", guide) or Guide()
        count = checked_whole("gate: count", count, 1)
        if not self.can_predict:
            return self._random(tried, count, seed)
        self._warn_of_guesses()
        model, ledger = self._learning.model, self._ledger(tried, seed)
        found = propose(guide, self.space, model, ledger, self.gate, count=count)
        pruned = [entry for entry in found if entry.status == PRUNED]
        return found[len(pruned) :], pruned

    def learn_every(self, every: int, adapt: Adapt | None, *, graphs: bool = False, progress: bool = False) -> None:
        """Prepare to learn after every ``every`` results, with ``adapt`` or, if None, a Gaussian process per objective.

        Args:
            every: number of results.
            adapt: returns a better predictor, given a table of results.
            graphs: learn unknown objectives from the graphs of all networks instead of from texts.
            progress: show bars on stderr while the networks are read.

        Raises:
            ValueError: ``every`` is not a whole number of 1 or more; or the space is too large for ``graphs``, or
                ``adapt`` is given too.
        """
        every = checked_whole("adapt_callback: every", every, 1)
        check_flag("adapt_callback: graphs", graphs)
        if graphs and adapt is not None:
            raise ValueError("adapt_callback: expected graphs or adapt, got both. Leave one out.")
        adapt = adapt or ProcessAdapter(
            self.space,
            self._predictor,
            self._learned,
            to_text=self.to_text,
            networks=self._networks(progress) if graphs else None,
            progress=progress,
        )
        self._learning.learn_by(adapt, every)
        self.gate.guessed = self._learning.guessed

    def _networks(self, progress: bool) -> Callable[[], NetworkFeatures[A]]:
        check_readable(self.space)
        apart = Spellings(self.space)  # any of several twins may be checked
        return functools.partial(every_network, self.space, apart, None, progress=progress)

    def warn_of_units(self, evaluated: Sequence[Entry]) -> None:
        """Warn once per objective that the model knows if its results seem to be in another unit."""
        for told in self._learning.odd_units(evaluated):
            warn_caller(told)

    def learn(self, evaluated: Sequence[Entry]) -> None:
        """Let the model learn from the evaluated entries, if there are enough new results, see ``learn_every``."""
        assert self.learns, "learn_every() comes first"
        self._learning.learn(self._ledger(evaluated))

    def possible(self, results: Sequence[float], whose: str) -> list[float]:
        """Return the (M,) results with NaN for those impossible for the objective or beyond ±``MAX_LABEL``; warn once.

        An example is the -1 of a failed measurement: it would dominate the front, and everything else would be pruned.
        An accuracy that seems to be a fraction is kept, with a warning.
        """
        kept: list[float] = []
        for name, value in zip(self.objectives, results, strict=True):
            objective = Objective.parse(name)
            is_possible = bool(abs(value) <= MAX_LABEL and objective.allows(value))
            kept.append(value if is_possible else np.nan)
            wanted = f"numbers within ±{MAX_LABEL:g}" if abs(value) > MAX_LABEL else objective.range_in_words
            told = f"gate: expected {wanted} for {name}, got {value:g} from {whose}. "
            if np.isfinite(value) and not is_possible:
                self.warn_once(IMPOSSIBLE, f"{told}The gate ignores such results.")
            if is_possible and objective.seems_fraction(value):
                self.warn_once("fractions", f"{told}If it is a fraction, give {100 * value:g}.")
        return kept

    def _warn_of_guesses(self) -> None:
        if self.gate.guessed:
            self.warn_once(
                "guesses",
                f"gate: expected a predictor trained on {', '.join(sorted(self.gate.guessed))} of networks of "
                f"{self.space.name}, got one that was not: its predictions may be unreliable, so they prune nothing. "
                "Let it learn from the results: create adapt_callback() before using the gate.",
            )

    def entry(self, architecture: A, real: FloatArray, *, evaluated: bool, feasible: bool = True) -> Entry:
        """Return the ledger entry of an architecture with (M,) real results; NaN if there is none."""
        status = EVALUATED if evaluated else CHOSEN
        return Entry.of(self.space, architecture, len(self.objectives), status=status, real=real, feasible=feasible)

    def _random(self, tried: Sequence[Entry], count: int, seed: int) -> tuple[list[Entry], list[Entry]]:
        rng = np.random.default_rng(seed)
        drawn = [self.space.sample(rng) for _ in range(10 * count)]
        known, by_key = {entry.key for entry in tried}, {self.space.architecture_key(x): x for x in drawn}
        new = [architecture for key, architecture in by_key.items() if key not in known]
        chosen, pruned = list[Entry](), list[Entry]()
        for architecture, decision in zip(new, self.check(new), strict=True):
            status, group = (CHOSEN, chosen) if decision.kept else (PRUNED, pruned)
            stage, reason = decision.stage, decision.reason
            made = Entry.of(self.space, architecture, len(self.objectives), status=status, stage=stage, reason=reason)
            group.append(made)
        return chosen[:count], pruned

    def _ledger(self, entries: Sequence[Entry], seed: int = 0) -> Ledger:
        return Ledger(self._config(seed), entries)

    def _config(self, seed: int, space: SearchSpace[A] | None = None) -> SearchConfig:
        space = space or self.space
        return SearchConfig(
            space=space.name,
            goals=self.gate.goals,
            trials=1,
            constraints=self.gate.constraints,
            seed=seed,
            twins=twins_of(space, self.gate.objectives),
        )


def _similar_name(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that is most similar to a given one; None if none is similar enough.

    Names with different digits are never similar: latency_ms@pixel2 is not a misspelled latency_ms@pixel3.
    """
    others = [other for other in known if _digits(other) == _digits(name)]
    close = get_close_matches(name, others, n=1, cutoff=MISSPELLED_SIMILARITY)
    return close[0] if close else None


def _digits(name: str) -> str:
    return re.sub(r"\D", "", name)
