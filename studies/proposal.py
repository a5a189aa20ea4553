"""Propose one batch of a guided search: search on predictions, prune by the gate, choose by acquisition.

N candidates, S samples, M objectives.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Generic, TypeVar

import numpy as np
from tqdm import tqdm

from nasrlm.arrays import BoolArray, FloatArray, complete_mask
from spaces import SearchSpace
from studies.acquisition import choose, expected_improvements
from studies.all_architectures import MOST_LOOKED_AT, every_architecture
from studies.config import SearchConfig
from studies.constraints import feasible_mask, preferred_losses
from studies.evaluators import Evaluator
from studies.failures import Failures
from studies.gate import Decision, Gate
from studies.guide import Guide
from studies.history import CHOSEN, PRUNED, median_first
from studies.ledger import Entry, Ledger
from studies.pareto import pareto_mask
from studies.problem import Problem, load_engine
from studies.screen import Screen
from studies.surrogates.learning import Model
from studies.surrogates.memory import BAR_AFTER, JointPredictor

A = TypeVar("A", bound=Hashable)

MOST_DRAWS = 20  # batches to draw where constraints forbid networks
SHORTLIST = 64  # candidates to sample: those with the largest expected improvement from the quantiles LIKELY
SHORTLIST_OF_ALL = 200  # the same if every architecture is a candidate
LIKELY = (0.05, 0.5, 0.95)  # quantiles that rank candidates; samples are clipped to the outer two


@dataclass(frozen=True)
class Candidate(Generic[A]):
    """An architecture with the gate's decision and the probability that its evaluation gives a result."""

    architecture: A
    key: str
    decision: Decision
    answer_probability: float


def propose(
    guide: Guide,
    space: SearchSpace[A],
    model: Model[A],
    ledger: Ledger,
    gate: Gate,
    *,
    count: int,
    known: Mapping[str, A] | None = None,
    attempt: int = 0,
    progress: bool = False,
) -> list[Entry]:
    """Return the entries of the next batch; they depend on the arguments alone, not on earlier calls.

    Args:
        guide: options of the search.
        space: the search space.
        model: the surrogate.
        ledger: the results so far, with the config: goals, constraints, engine and seed.
        gate: prunes candidates. Its own front is replaced by that of the ledger's results.
        count: largest number of architectures to choose.
        known: the only architectures to choose from, by key, see ``every_architecture``; None for the whole space.
        attempt: part of the seed; another number draws other candidates for the same batch.
        progress: show a bar on stderr while the engine searches for longer than ``BAR_AFTER``.

    Returns:
        Architectures pruned for the first time, then up to ``count`` chosen ones. With ``guide.exhaustive``, which
        predicts every architecture for each batch, pruned ones are returned for the last batch only.
    """
    config, batch = ledger.config, ledger.next_batch
    seed = hashed_seed(config.seed, batch, attempt)
    meet = [entry.feasible for entry in ledger.evaluated]
    gate = gate.with_front([entry.architecture for entry in compress(ledger.evaluated, meet)], ledger.results[meet])
    results = {entry.key: entry.real for entry in ledger.tried}
    failures = Failures(space, ledger.evaluated, num_goals=len(config.goals))
    screen = Screen(space, model, gate, failures, prunes=guide.gate, results=results)
    if guide.exhaustive:
        screen.look(every_architecture(space) if known is None else _proposable(space, known))
    else:
        generations = guide.generations + ledger.barren_batches + attempt  # more after batches without candidates
        _search(config, generations, space, screen, seed, known, progress)
    proposed = set(screen.decisions)
    if known is not None and len(known) <= MOST_LOOKED_AT and ledger.barren_batches + attempt:
        screen.look(_proposable(space, known))  # what the engine did not propose may still be worth an evaluation
    candidates: list[Candidate[A]] = []
    pruned: list[Candidate[A]] = []
    probabilities = failures.answer_probability([screen.architectures[key] for key in screen.decisions]).tolist()
    for (key, decision), probability in zip(screen.decisions.items(), probabilities, strict=True):
        found = Candidate(screen.architectures[key], key, decision, probability)
        if decision.kept:
            candidates.append(found)
        elif key in proposed:
            pruned.append(found)
    chosen = _chosen(guide, model, ledger, gate, candidates, pruned, count, seed) if candidates else []
    if guide.exhaustive and chosen and len(ledger.tried) + len(chosen) < config.trials:
        pruned = []
    recorded = {entry.key for entry in ledger.entries}
    return [
        *(_entry(space, candidate, batch, PRUNED) for candidate in pruned if candidate.key not in recorded),
        *(_entry(space, candidate, batch, CHOSEN) for candidate in chosen),
    ]


def _proposable(space: SearchSpace[A], known: Mapping[str, A]) -> dict[str, A]:
    """Return the known architectures that the space draws, the only ones that engines propose."""
    return {key: architecture for key, architecture in known.items() if space.is_drawn(architecture)}


def begin(
    space: SearchSpace[A],
    evaluator: Evaluator[A],
    ledger: Ledger,
    *,
    count: int,
    known: Mapping[str, A] | None = None,
    attempt: int = 0,
    check: Callable[[Sequence[A]], list[Decision]] | None = None,
) -> list[Entry]:
    """Return the entries of a batch chosen without an objective: corners of the space, then random architectures.

    Those that ``check`` prunes are left out, unless it prunes all of ``MOST_DRAWS`` batches.
    """
    seed = hashed_seed(ledger.config.seed, ledger.next_batch, attempt)
    size = max(count, 2)
    inner = replace(ledger.config, trials=size, population_size=size, earlier_trials=(), seed=seed)
    problem = Problem(inner, space, evaluator, known=known)
    for entry in ledger.entries:
        problem.reserve(space.parse(entry.architecture))
    chosen = drawn = problem.first_population()
    if check is not None:
        chosen = _kept(check, drawn)
        for _ in range(MOST_DRAWS - 1):
            if len(chosen) < count:
                chosen += _kept(check, problem.samples(count))
    chosen = [space.representative(architecture) for architecture in (chosen or drawn)[:count]]
    return [_unpredicted(space, architecture, ledger) for architecture in chosen]


def _kept(check: Callable[[Sequence[A]], list[Decision]], architectures: Sequence[A]) -> list[A]:
    return list(compress(architectures, [decision.kept for decision in check(architectures)]))


def warm_start(
    space: SearchSpace[A], ledger: Ledger, *, count: int, known: Mapping[str, A] | None = None
) -> list[Entry]:
    """Return the entries of up to ``count`` architectures of ``config.warm_start`` that are not recorded yet."""
    recorded = {entry.key for entry in ledger.entries}
    given = {space.architecture_key(made): made for made in map(space.parse, ledger.config.warm_start)}
    left = [made for key, made in given.items() if key not in recorded and (known is None or key in known)]
    return [_unpredicted(space, space.representative(made), ledger) for made in left[:count]]


def _search(
    config: SearchConfig,
    generations: int,
    space: SearchSpace[A],
    screen: Screen[A],
    seed: int,
    known: Mapping[str, A] | None,
    progress: bool,
) -> None:
    """Run an engine on the predictions for some generations, starting from the real front."""
    trials = generations * config.population_size
    inner = replace(config, trials=trials, earlier_trials=(), seed=seed, storage=None, guide=None, warm_start=())
    front = [space.parse(architecture) for architecture in screen.gate.names]

    with tqdm(
        total=trials, desc="propose", unit="architecture", delay=BAR_AFTER, leave=False, disable=not progress
    ) as bar:

        def stop_when_spent(problem: Problem[A]) -> None:
            bar.update(len(problem.history) - bar.n)
            if len(problem.history) >= trials:
                problem.stop("as many architectures were looked at")

        problem = Problem(inner, space, screen, on_batch=stop_when_spent, first=front, known=known)
        load_engine(config.engine)(problem)


def hashed_seed(*numbers: int) -> int:
    """Return a seed made of a study's seed and other numbers, such that studies with neighbouring seeds share none."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


def _chosen(
    guide: Guide,
    model: Model[A],
    ledger: Ledger,
    gate: Gate,
    candidates: Sequence[Candidate[A]],
    pruned: Sequence[Candidate[A]],
    count: int,
    seed: int,
) -> list[Candidate[A]]:
    """Return the batch of up to ``count`` candidates with the largest expected improvement from samples.

    If others are expected to add nothing, those with the largest improvement from quantiles fill up the batch.
    """
    shortlist, reference_point = _shortlist(guide, model, ledger, gate, candidates, pruned)
    samples, joint = _drawn(ledger.config, guide, model, shortlist, seed)
    losses, feasible = _sampled_losses(ledger.config, samples)
    feasible &= _answered(shortlist, samples.shape[2])
    best = choose(losses, feasible, gate.front, reference_point, count, joint=joint)
    rest = [row for row in range(len(shortlist)) if row not in best]
    return [shortlist[row] for row in [*best, *rest][:count]]


def _shortlist(
    guide: Guide,
    model: Model[A],
    ledger: Ledger,
    gate: Gate,
    candidates: Sequence[Candidate[A]],
    pruned: Sequence[Candidate[A]],
) -> tuple[list[Candidate[A]], FloatArray]:
    """Return the candidates with the largest expected improvement from quantiles, best first, and a reference point."""
    config = ledger.config
    texts = [model.to_text(candidate.architecture) for candidate in candidates]
    values = model.memory.predict(texts, config.objectives, LIKELY).values
    medians = values[:, :, 1]
    if guide.exhaustive:
        medians = np.vstack([medians, *[candidate.decision.values[None, :, 1] for candidate in pruned]])
    reference_point = _reference_point(config, ledger.results, medians, of_front=not guide.exhaustive)
    losses, feasible = _sampled_losses(config, values)
    promise = expected_improvements(np.where(feasible[:, :, None], losses, np.inf), gate.front, reference_point)
    promise = promise * [candidate.answer_probability for candidate in candidates]
    best = np.argsort(-promise, kind="stable")[: SHORTLIST_OF_ALL if guide.exhaustive else SHORTLIST].tolist()
    return [candidates[row] for row in best], reference_point


def _answered(candidates: Sequence[Candidate[A]], samples: int) -> BoolArray:
    """Return (N, S) flags that are true for a share of each candidate's samples: its ``answer_probability``."""
    probability = np.array([candidate.answer_probability for candidate in candidates])
    return np.asarray((np.arange(samples) + 0.5) / samples < probability[:, None], dtype=np.bool_)


def _drawn(
    config: SearchConfig, guide: Guide, model: Model[A], candidates: Sequence[Candidate[A]], seed: int
) -> tuple[FloatArray, bool]:
    """Return (N, M, S) samples of the predictions, or medians (S = 1), and whether they are joint over objectives.

    NOTE: samples are clipped to the quantiles LIKELY. Some of a thousand samples begin with a wrong digit or exponent,
    and a single one that is ten times too good would dominate a mean over samples.
    """
    if guide.acquisition == "median":
        return np.array([candidate.decision.values[:, [1]] for candidate in candidates]), False
    texts = [model.to_text(candidate.architecture) for candidate in candidates]
    if joint := guide.joint and isinstance(model.predictor, JointPredictor):
        samples = model.predictor.joint_samples(texts, config.objectives, guide.samples, seed=seed)
    else:
        samples = model.predictor.sample(texts, config.objectives, guide.samples, seed)
    likely = model.memory.predict(texts, config.objectives, LIKELY).values
    return np.clip(samples, likely[:, :, :1], likely[:, :, -1:]), joint


def _reference_point(config: SearchConfig, results: FloatArray, medians: FloatArray, *, of_front: bool) -> FloatArray:
    """Return the (goals,) worst losses of the real results and of the (N, M) predicted medians, or of their front.

    NOTE: real results alone would exclude candidates that are better than all of them in one goal and worse in another.
    """
    real, predicted = (preferred_losses(config.goals, config.constraints, values) for values in (results, medians))
    predicted = predicted[complete_mask(predicted)]
    known = np.vstack([real[complete_mask(real)], predicted[pareto_mask(predicted)] if of_front else predicted])
    return np.asarray(known.max(axis=0), dtype=np.float64)


def _sampled_losses(config: SearchConfig, samples: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the (N, S, goals) preferred losses and the (N, S) feasibility flags of (N, M, S) samples."""
    count, num_samples = len(samples), samples.shape[2]
    rows = samples.transpose(0, 2, 1).reshape(count * num_samples, -1)
    losses = preferred_losses(config.goals, config.constraints, rows)
    feasible = feasible_mask(config.objectives, config.constraints, rows)
    return losses.reshape(count, num_samples, -1), feasible.reshape(count, num_samples)


def _unpredicted(space: SearchSpace[A], architecture: A, ledger: Ledger) -> Entry:
    return Entry.of(space, architecture, len(ledger.config.objectives), batch=ledger.next_batch)


def _entry(space: SearchSpace[A], candidate: Candidate[A], batch: int, status: str) -> Entry:
    decision = candidate.decision
    return Entry.of(
        space,
        candidate.architecture,
        len(decision.values),
        key=candidate.key,
        batch=batch,
        status=status,
        stage=decision.stage,
        reason=decision.reason,
        predicted=median_first(decision.values),
    )
