"""The engine pymoo: its algorithms on architectures, with the space's crossover and mutation."""

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np
from pymoo.algorithms.base.genetic import GeneticAlgorithm
from pymoo.algorithms.moo.nsga2 import NSGA2, binary_tournament
from pymoo.algorithms.moo.sms import SMSEMOA, cv_and_dom_tournament
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population
from pymoo.core.problem import Problem as PymooProblem
from pymoo.operators.selection.tournament import TournamentSelection
from pymoo.problems.static import StaticProblem

from studies.problem import Outcome, Problem

A = TypeVar("A", bound=Hashable)

CROSSOVER_PROBABILITY = 0.5
ATTEMPTS = 3  # to breed new children, before fresh architectures replace the missing ones


class SpaceMating(Generic[A]):
    """pymoo's mating by the space's crossover and mutation, which gives only new architectures."""

    def __init__(self, problem: Problem[A], selection: TournamentSelection) -> None:
        self.problem = problem
        self.selection = selection

    def do(
        self,
        pymoo_problem: PymooProblem,
        population: Population,
        n_offsprings: int,
        *,
        algorithm: GeneticAlgorithm,
        random_state: np.random.Generator,
        **unused: Any,
    ) -> Population:
        """Return ``n_offsprings`` reserved children; fewer if the space is exhausted."""
        children: list[A] = []
        for _ in range(ATTEMPTS):
            pairs = self.selection(
                pymoo_problem,
                population,
                n_offsprings - len(children),
                n_parents=2,
                algorithm=algorithm,
                random_state=random_state,
            )
            candidates = (self._child(first.X[0], second.X[0], random_state) for first, second in pairs)
            children += [child for child in candidates if self.problem.reserve(child)]
            if len(children) == n_offsprings:
                break
        children += self.problem.fresh(n_offsprings - len(children))
        return to_population(children)

    def _child(self, first: A, second: A, rng: np.random.Generator) -> A:
        """Return a child by crossover, mutation or both."""
        space = self.problem.space
        if rng.random() >= CROSSOVER_PROBABILITY:
            return space.mutate(first, rng)
        child = space.crossover(first, second, rng)
        return space.mutate(child, rng) if child in (first, second) else child


def to_population(architectures: list[A]) -> Population:
    """Return architectures as a pymoo population, a column of objects."""
    return Population.new(X=np.fromiter(architectures, dtype=object, count=len(architectures))[:, None])


def run(problem: Problem[A]) -> None:
    """Propose and evaluate populations until the problem is done."""
    algorithm = _algorithm(problem)
    while not problem.done:
        algorithm.n_offsprings = problem.batch_size
        population = algorithm.ask() if algorithm.is_initialized else to_population(problem.first_population())
        if population is None or len(population) == 0:
            problem.stop_exhausted()
            return
        _tell(algorithm, population, problem.evaluate(list(population.get("X")[:, 0])))


def _algorithm(problem: Problem[A]) -> GeneticAlgorithm:
    config = problem.config
    make, tournament = _algorithm_named(config.sampler)
    mating = SpaceMating(problem, TournamentSelection(func_comp=tournament))
    algorithm = make(pop_size=config.population_size, mating=mating, eliminate_duplicates=False)
    pymoo_problem = PymooProblem(
        n_var=1, n_obj=len(config.goals), n_ieq_constr=len(config.hard_constraints), vtype=object
    )
    algorithm.setup(pymoo_problem, seed=config.seed, termination=("n_gen", np.inf), verbose=False)
    return algorithm


def _algorithm_named(sampler: str) -> tuple[Callable[..., GeneticAlgorithm], Callable[..., Any]]:
    """Return an algorithm and its tournament for parents."""
    if sampler == "agemoea":
        from pymoo.algorithms.moo.age import AGEMOEA  # imported here: it is compiled, which takes seconds

        return AGEMOEA, binary_tournament
    return {"nsga2": (NSGA2, binary_tournament), "smsemoa": (SMSEMOA, cv_and_dom_tournament)}[sampler]


def _tell(algorithm: GeneticAlgorithm, population: Population, outcome: Outcome) -> None:
    """Pass complete results to the algorithm; without any, the next population is again a first one."""
    known = outcome.complete
    if not known.any():
        return
    answers = StaticProblem(algorithm.problem, F=outcome.losses[known], G=outcome.violations[known])
    answered = population[known]
    Evaluator().eval(answers, answered)
    algorithm.tell(infills=answered)
