"""Search methods on a table of real results: engines alone, published methods, and searches guided by the RLM.

A method is a function of a task and a seed, which returns the (N, M) losses of the N architectures that it evaluated,
in order. M goals.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np
import optuna
from optuna.samplers import NSGAIISampler
from optuna.trial import FrozenTrial
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.utils import check_random_state

from nasrlm.arrays import FloatArray
from nasrlm.objective import Goal, to_losses
from spaces import SearchSpace
from studies.acquisition import choose
from studies.all_architectures import every_architecture
from studies.config import SearchConfig, twins_of
from studies.evaluators import TableEvaluator
from studies.folder import HISTORY_FILE
from studies.guide import Guide
from studies.guided import guided_search
from studies.ledger import Ledger
from studies.optuna_gate import ParetoGate
from studies.optuna_trials import directions
from studies.pareto import pareto_mask
from studies.problem import Problem, load_engine
from studies.storage.optuna_storage import quiet
from studies.surrogates.graph_process import one_hot_genes
from studies.surrogates.memory import SamplingPredictor
from studies.surrogates.process_adapter import ProcessAdapter
from studies.tables.files import read_table

A = TypeVar("A", bound=Hashable)

BATCH = 10  # architectures evaluated at a time
POPULATION = 50  # of regularised evolution
TOURNAMENT = 10
MUTATIONS = 8  # most mutations in a row until a child is new
MOST_TRIALS = 50  # trials of a study for each evaluation of its budget, most of them pruned
MEMBERS = 5  # of the ensemble
CANDIDATES = 100  # that the ensemble chooses from
EVERY = Guide(exhaustive=True, samples=128)  # predicts every architecture of a table


@dataclass(frozen=True)
class SearchTask(Generic[A]):
    """A table to search.

    Attributes:
        config: goals, budget (``trials``), and how twins (isomorphic architectures) are treated.
        table: gives the results.
    """

    config: SearchConfig
    table: TableEvaluator[A]

    @classmethod
    def of(cls, path: Path, space: SearchSpace[A], goals: Sequence[str], budget: int) -> Self:
        """Create the task of a table's rows of a space, with goals given as strings; twins are as in ``twins_of``."""
        parsed = tuple(map(Goal.parse, goals))
        twins = twins_of(space, [goal.objective for goal in parsed])
        config = SearchConfig(space=space.name, goals=parsed, trials=budget, evaluator="table", twins=twins)
        frame = read_table(path, require=config.objectives)
        return cls(config, TableEvaluator(space, frame, objectives=config.objectives, name=str(path)))

    @cached_property
    def known(self) -> dict[str, A]:
        """Every architecture of the table, by key."""
        return every_architecture(self.space, self.table.known)

    @property
    def space(self) -> SearchSpace[A]:
        """The space of the search, whose keys decide which architectures are evaluated only once."""
        return self.config.searched(self.table.space)

    def losses(self, architectures: list[A]) -> FloatArray:
        """Return the (N, M) true losses of N architectures."""
        return to_losses(self.config.goals, self.table.evaluate(architectures).median)


Method = Callable[[SearchTask[Any], int], FloatArray]


def engine_alone(engine: str, sampler: str) -> Method:
    """Return the method of an engine that evaluates in the table, without a model."""

    def search(task: SearchTask[Any], seed: int) -> FloatArray:
        config = replace(task.config, engine=engine, sampler=sampler, seed=seed, population_size=BATCH)
        problem = Problem(config, task.space, task.table, known=task.known)
        load_engine(engine)(problem)
        return to_losses(config.goals, problem.history.medians())

    return search


class _Archive(Generic[A]):
    """The architectures that were evaluated, one per key, and those that are left."""

    def __init__(self, task: SearchTask[A], seed: int) -> None:
        self.task = task
        self.budget = min(task.config.trials, len(task.known))
        self.rng = np.random.default_rng(seed)
        self.architectures: list[A] = []
        self.losses: FloatArray = np.empty((0, len(task.config.goals)))
        self._left = dict(task.known)

    @property
    def full(self) -> bool:
        return len(self.architectures) >= self.budget

    def is_new(self, architecture: A) -> bool:
        return self.task.space.architecture_key(architecture) in self._left

    def random(self, count: int) -> list[A]:
        left = list(self._left.values())
        return [left[row] for row in self.rng.permutation(len(left))[:count]]

    def child(self, parent: A) -> A:
        """Mutate the parent repeatedly until the child is new; return a random new one if that fails."""
        for _ in range(MUTATIONS):
            parent = self.task.space.mutate(parent, self.rng)
            if self.is_new(parent):
                return parent
        return self.random(1)[0]

    def evaluate(self, architectures: list[A]) -> None:
        keys = {self.task.space.architecture_key(architecture): architecture for architecture in architectures}
        new = [architecture for key, architecture in keys.items() if key in self._left]
        new = new[: self.budget - len(self.architectures)]
        for architecture in new:
            del self._left[self.task.space.architecture_key(architecture)]
        self.architectures += new
        self.losses = np.vstack([self.losses, self.task.losses(new)]) if new else self.losses


def regularised_evolution(task: SearchTask[Any], seed: int) -> FloatArray:
    """Search by regularised evolution: the oldest member dies; a parent is non-dominated in a random tournament.

    Source:
        Real et al. 2019, "Regularized Evolution for Image Classifier Architecture Search"; there with one objective.
    """
    archive = _Archive(task, seed)
    archive.evaluate(archive.random(POPULATION))
    while not archive.full:
        youngest = np.arange(len(archive.architectures))[-POPULATION:]
        rows = archive.rng.choice(youngest, min(TOURNAMENT, len(youngest)), replace=False)
        best = archive.rng.choice(rows[pareto_mask(archive.losses[rows])])
        archive.evaluate([archive.child(archive.architectures[best])])
    return archive.losses


def ensemble(task: SearchTask[Any], seed: int) -> FloatArray:
    """Search with an ensemble of small networks on one-hot genes, which chooses among mutations of the front.

    Source:
        White, Neiswanger, Savani 2021, "BANANAS: Bayesian Optimization with Neural Architectures for Neural
        Architecture Search"; there with one objective and path encoding.
    """
    archive = _Archive(task, seed)
    archive.evaluate(archive.random(2 * BATCH))
    while not archive.full:
        front = np.flatnonzero(pareto_mask(archive.losses))
        parents = archive.rng.choice(front, CANDIDATES // 2)
        found = [*(archive.child(archive.architectures[row]) for row in parents), *archive.random(CANDIDATES // 2)]
        mean, deviation = archive.losses.mean(axis=0), archive.losses.std(axis=0) + 1e-9
        models = _fitted(
            one_hot_genes(task.space, archive.architectures), (archive.losses - mean) / deviation, archive.rng
        )
        inputs = one_hot_genes(task.space, found)
        samples = np.stack([model.predict(inputs).reshape(len(found), -1) for model in models], axis=1)
        samples = samples * deviation + mean
        reference = np.vstack([archive.losses, samples.reshape(-1, samples.shape[2])]).max(axis=0)
        chosen = choose(samples, np.ones(samples.shape[:2], np.bool_), archive.losses[front], reference, BATCH)
        rest = [row for row in archive.rng.permutation(len(found)).tolist() if row not in chosen]
        archive.evaluate([found[row] for row in [*chosen, *rest][:BATCH]])
    return archive.losses


def _fitted(inputs: FloatArray, targets: FloatArray, rng: np.random.Generator) -> list[MLPRegressor]:
    state = check_random_state(int(rng.integers(2**31)))
    models = [
        MLPRegressor(hidden_layer_sizes=(64, 64), solver="lbfgs", alpha=1e-2, max_iter=100, random_state=state)
        for _ in range(MEMBERS)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a hundred steps are enough
        return [model.fit(inputs, targets) for model in models]


def guided(
    predictor: SamplingPredictor, to_text: Callable[[A], str], adapt: ProcessAdapter[A], guide: Guide = EVERY
) -> Method:
    """Return the method of a guided search by the RLM, which learns from the results."""

    def search(task: SearchTask[Any], seed: int) -> FloatArray:
        config = replace(task.config, seed=seed, guide=guide)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            guided_search(
                config, task.table.space, task.table, predictor, out, to_text=to_text, adapt=adapt, figures=False
            )
            return to_losses(config.goals, Ledger.load(out / HISTORY_FILE, config).results)

    return search


def gated(predictor: SamplingPredictor, to_text: Callable[[A], str], adapt: ProcessAdapter[A]) -> Method:
    """Return the method of a study of one's own with a ``ParetoGate``, as README.md shows it: Optuna's default sampler.

    Trials whose architecture is not in the table are pruned and cost nothing. The method raises a ValueError if most
    are, as where a table has a few networks of a large space.
    """

    def search(task: SearchTask[Any], seed: int) -> FloatArray:
        goals, budget = task.config.goals, min(task.config.trials, len(task.known))
        gate = ParetoGate(task.table.space, list(map(str, goals)), predictor, to_text=to_text)
        found: list[FloatArray] = []

        def objective(trial: optuna.Trial) -> list[float]:
            architecture = gate.suggest(trial)
            gate.check(trial, architecture)
            if gate.space.architecture_key(architecture) not in task.known:
                raise optuna.TrialPruned("not in the table")
            found.append(task.table.evaluate([architecture]).median[0])
            return list(map(float, found[-1]))

        def stop(study: optuna.Study, _: FrozenTrial) -> None:
            if len(found) == budget:
                study.stop()

        learn, propose = gate.adapt_callback(BATCH, adapt=adapt), gate.enqueue_callback(BATCH // 2, seed=seed)
        with quiet():
            study = optuna.create_study(directions=directions(goals), sampler=NSGAIISampler(seed=seed))
            study.optimize(objective, n_trials=MOST_TRIALS * budget, callbacks=[learn, propose, stop])
        if len(found) < budget:
            raise ValueError(
                f"gate: expected a table with most architectures of {gate.space.name}, got {len(task.known):,}, among "
                f"which are {len(found)} of {len(study.trials):,} trials. Let the model guide a search instead."
            )
        return to_losses(goals, np.stack(found))

    return search


ALONE: dict[str, Method] = {
    "random": engine_alone("optuna", "random"),
    "optuna nsga2": engine_alone("optuna", "nsga2"),
    "optuna tpe": engine_alone("optuna", "tpe"),
    "optuna gp": engine_alone("optuna", "gp"),
    "pymoo nsga2": engine_alone("pymoo", "nsga2"),
    "regularised evolution": regularised_evolution,
    "ensemble": ensemble,
}
