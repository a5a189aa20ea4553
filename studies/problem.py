"""What an engine sees of a search: new architectures to propose, and batches to evaluate."""

import functools
import importlib
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

import numpy as np

from nasrlm.arrays import BoolArray, FloatArray
from spaces import ArchitectureError, SearchSpace
from studies.config import SearchConfig
from studies.constraints import feasible_mask, preferred_losses, violations
from studies.evaluators import Evaluator
from studies.history import History, to_bounds
from studies.pareto import Front, complete_mask

A = TypeVar("A", bound=Hashable)

MUTATION_STEPS = 4  # from a front member before the next one is tried
MUTATION_WALKS = 8
RANDOM_SAMPLES = 1_000  # without a new one, after which a space counts as exhausted
MAX_ENUMERATED = 100_000  # architectures of a space that is looked through before it counts as exhausted
CACHED_KEYS = 2**14  # all of NAS-Bench-201, and 40 MB of DARTS with the architectures
FUTILE_EVALUATIONS = 1_000  # in a row, without one complete answer, before a search gives up


@dataclass(frozen=True)
class Outcome:
    """A batch's answers.

    Attributes:
        objectives: (N, M) medians in own units, a column a goal.
        losses: (N, M), the same minimised, worse where soft constraints are broken; see ``preferred_losses``.
        violations: (N, C), above 0 where a hard constraint is not met.
        complete: (N,) flags; the numbers of the others may be NaN.
    """

    objectives: FloatArray
    losses: FloatArray
    violations: FloatArray
    complete: BoolArray


class Problem(Generic[A]):
    """A search's budget and memory: no architecture, and no isomorphic twin, is evaluated twice.

    Args:
        config: goals, constraints, trials and seed.
        space: the search space.
        evaluator: answers batches of architectures.
        recorded: an earlier run's history, which answers before the evaluator does.
        on_batch: called after each batch.
        on_answer: if given, architectures are evaluated one at a time, and it is called after each, with everything
            that is recorded; what has no complete answer is then spent as well.
        first: architectures to begin with, half a population of them at most.
        known: by key, the only architectures to propose; None proposes any of the space.

    Raises:
        ValueError: the space has one architecture, or it draws none of those that are known.

    NOTE: of first and known, what lies outside ``space.sampled_sizes`` is left out, as it is from every search.
    """

    def __init__(
        self,
        config: SearchConfig,
        space: SearchSpace[A],
        evaluator: Evaluator[A],
        *,
        recorded: History | None = None,
        on_batch: Callable[["Problem[A]"], None] = lambda problem: None,
        on_answer: Callable[[History], None] | None = None,
        first: Sequence[A] = (),
        known: Mapping[str, A] | None = None,
    ) -> None:
        if max(space.sampled_sizes) == 1:
            raise ValueError(f"search: expected two architectures or more, {space.name} has one. Predict that one.")
        self.config = config
        self.space = space
        self.evaluator = evaluator
        self._recorded = recorded or History(config.objectives)
        self.history = History(config.objectives, interval=self._recorded.interval)
        self.evaluations = 0
        self.stopped: str | None = None
        self.key: Callable[[A], str] = functools.lru_cache(CACHED_KEYS)(space.architecture_key)
        self._on_batch, self._on_answer = on_batch, on_answer
        self._warm_start = [space.parse(notation) for notation in config.warm_start]
        self._first = [architecture for architecture in first if self.space.is_drawn(architecture)]
        self._known = None if known is None else {key: a for key, a in known.items() if self.space.is_drawn(a)}
        if known and not self._known:
            raise ValueError(
                f"search: expected known architectures that {space.name} draws, got none among {len(known):,}, the "
                f"first {space.format(next(iter(known.values())))}."
            )
        self._known_architectures = list((self._known or {}).values())
        self._rng = np.random.default_rng(config.seed)
        self._futile = 0
        self._reserved: set[str] = set()
        self._front = Front[A].empty(len(config.goals))

    @property
    def batch_size(self) -> int:
        """How many architectures to propose next: a population, or what is left of the trials given by then."""
        given = next((x for x in self.config.earlier_trials if x > self.evaluations), self.config.trials)
        return min(self.config.population_size, given - self.evaluations)

    @property
    def done(self) -> bool:
        """Whether the trials are spent or the search has stopped early."""
        return self.stopped is not None or self.evaluations >= self.config.trials

    @property
    def num_recorded(self) -> int:
        """How many architectures are recorded: by an earlier run, or one at a time."""
        return len(self._recorded)

    def reserve(self, architecture: A) -> bool:
        """Take a place in the next batch; False for what is evaluated, or in that batch, already, or not known."""
        key = self.key(architecture)
        if key in self._reserved or self.history.row_of(key) is not None:
            return False
        if self._known is not None and key not in self._known:
            return False
        self._reserved.add(key)
        return True

    def fresh(self, count: int) -> list[A]:
        """Reserve up to ``count`` new architectures: neighbours of the front, then random samples.

        Fewer, or none, mean that random samples find nothing new: the space is exhausted, or a large one as good as.
        """
        found: list[A] = []
        while len(found) < count:
            architecture = self._new_neighbour()
            if architecture is None:
                architecture = self._new_sample()
            if architecture is None:
                break
            found.append(architecture)
        return found

    def first_population(self) -> list[A]:
        """Reserve new architectures for an engine to begin with: given ones, corners of the space, random samples.

        A corner has the same choice in every gene, such as all the cheapest. Random samples miss these ends
        of the front: on NAS-Bench-201 with three goals, 200 trials reach 0.996 of the hypervolume with them
        and 0.978 without (24 seeds), and the worst of 8 seeds at 1,000 trials 0.9985 and 0.9950.
        """
        found = self.warm_start()
        half = self._rng.permutation(len(self._first))[: self.batch_size // 2].tolist()
        begun = filter(self.reserve, [*(self._first[index] for index in half), *self._corners()])
        found += itertools.islice(begun, self.batch_size - len(found))
        return found + self.samples(self.batch_size - len(found))

    def warm_start(self) -> list[A]:
        """Reserve the architectures that the search is to begin with, as many as there are trials."""
        return list(itertools.islice(filter(self.reserve, self._warm_start), self.batch_size))

    @property
    def undrawn_warm_start(self) -> str:
        """The notation of the first architecture to begin with that lies outside ``space.sampled_sizes``; else ""."""
        return next((self.space.format(made) for made in self._warm_start if not self.space.is_drawn(made)), "")

    def samples(self, count: int) -> list[A]:
        """Reserve up to ``count`` new random architectures."""
        found = (self._new_sample() for _ in range(count))
        return [architecture for architecture in found if architecture is not None]

    def _corners(self) -> Iterator[A]:
        sizes = self.space.sampled_sizes
        for choice in range(max(sizes)):
            with suppress(ArchitectureError):
                yield self.space.decode([min(choice, size - 1) for size in sizes])

    def _new_neighbour(self) -> A | None:
        for _ in range(MUTATION_WALKS if self._front.members else 0):
            architecture = self._front.members[int(self._rng.integers(len(self._front.members)))]
            for _ in range(MUTATION_STEPS):
                architecture = self.space.mutate(architecture, self._rng)
                if self.reserve(architecture):
                    return architecture
        return None

    def _new_sample(self) -> A | None:
        return next(filter(self.reserve, self._random_draws()), None)

    def _random_draws(self) -> Iterator[A]:
        if self._known is None:
            yield from (self.space.sample(self._rng) for _ in range(RANDOM_SAMPLES))
            if self.space.size <= MAX_ENUMERATED:
                yield from filter(self.space.is_drawn, self.space.enumerate())
        else:
            known = self._known_architectures
            yield from (known[index] for index in self._rng.integers(len(known), size=min(len(known), RANDOM_SAMPLES)))
            yield from (known[index] for index in self._rng.permutation(len(known)))

    def stop(self, reason: str) -> None:
        """End the search before its trials are spent."""
        self.stopped = reason

    def stop_exhausted(self) -> None:
        """End the search where no new architecture is found."""
        of = "the space is" if self._known is None else "what is known of the space is"
        self.stop(f"{of} exhausted: no new architecture was found")

    def evaluate(self, architectures: Sequence[A]) -> Outcome:
        """Evaluate N reserved architectures, in one call, and record them as the representatives of their keys."""
        architectures = [self.space.representative(architecture) for architecture in architectures]
        values = self._values(architectures)
        medians = values[:, :, 0]
        complete = complete_mask(medians)
        beyond = violations(self.config.objectives, self.config.hard_constraints, medians)
        objectives = medians[:, : len(self.config.goals)]
        losses = preferred_losses(self.config.goals, self.config.constraints, medians)
        feasible = feasible_mask(self.config.objectives, self.config.constraints, medians)
        self._record(self.history, architectures, values, feasible)
        self._front = self._front.joined(itertools.compress(architectures, feasible), losses[feasible])
        self._count(complete)
        self._reserved.clear()
        self._on_batch(self)
        return Outcome(objectives, losses, beyond, complete)

    def _values(self, architectures: Sequence[A]) -> FloatArray:
        """(N, M, 3) values: the recorded ones, and for the rest the evaluator's."""
        rows = [self._recorded.row_of(self.key(a)) for a in architectures]
        values = np.full((len(rows), len(self.config.objectives), 3), np.nan)
        unknown = [index for index, row in enumerate(rows) if row is None]
        parts = [[index] for index in unknown] if self._on_answer else [unknown]
        for part in filter(None, parts):
            asked = [architectures[index] for index in part]
            evaluation = self.evaluator.evaluate(asked)
            values[part] = to_bounds(evaluation, self.config.objectives)
            self.history.interval = evaluation.interval
            if self._on_answer:
                self._recorded.interval = evaluation.interval
                met = feasible_mask(self.config.objectives, self.config.constraints, values[part][:, :, 0])
                self._record(self._recorded, asked, values[part], met)
                self._on_answer(self._recorded)
        for index, row in enumerate(rows):
            if row is not None:
                values[index] = self._recorded.values[row]
        return values

    def _record(self, history: History, architectures: Sequence[A], values: FloatArray, feasible: BoolArray) -> None:
        for architecture, row_values, is_feasible in zip(architectures, values, feasible, strict=True):
            history.append(
                architecture=self.space.format(architecture),
                key=self.key(architecture),
                genotype=tuple(self.space.encode(architecture)),
                values=row_values,
                feasible=bool(is_feasible),
            )

    def _count(self, complete: BoolArray) -> None:
        self.evaluations += len(complete) if self._on_answer else int(complete.sum())
        self._futile = 0 if complete.any() else self._futile + len(complete)
        if self._futile >= FUTILE_EVALUATIONS:
            self.stop(f"the evaluator knew none of the last {self._futile} architectures")


class Engine(Protocol):
    """Proposes populations until the problem is done."""

    def __call__(self, problem: Problem[A], /) -> None: ...


def load_engine(name: str) -> Engine:
    """The engine of that name; its library is imported only now."""
    return cast(Engine, importlib.import_module(f"studies.{name}_engine").run)
