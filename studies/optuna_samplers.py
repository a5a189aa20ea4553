"""Optuna's samplers, made to propose whole populations of new and valid architectures."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Generic, TypeVar

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import (
    BaseGASampler,
    BaseSampler,
    GPSampler,
    NSGAIIISampler,
    NSGAIISampler,
    RandomSampler,
    TPESampler,
)
from optuna.trial import FrozenTrial, TrialState

from spaces import ArchitectureError
from studies.config import SearchConfig
from studies.optuna_trials import gene_distributions
from studies.problem import Problem

A = TypeVar("A", bound=Hashable)

ATTEMPTS = 3  # at a proposal that is valid and new, before a fresh architecture takes its place


class ExhaustedError(RuntimeError):
    """No new architecture is left to propose."""


class DistinctSampler(BaseSampler, Generic[A]):
    """Another sampler, whose proposals are kept when valid and new, and otherwise drawn again.

    It answers with whole genotypes, so that Optuna's samplers work unchanged on spaces of which most
    genotypes are invalid; fresh architectures of the problem stand in where a sampler stalls.
    """

    def __init__(self, problem: Problem[A]) -> None:
        if problem.undrawn_warm_start:
            raise ValueError(
                f"search: expected a warm start of architectures that {problem.space.name} draws, got "
                f"{problem.undrawn_warm_start}. Optuna's samplers know no other; use the engine pymoo."
            )
        self.problem = problem
        self.distributions = gene_distributions(problem.space.sampled_sizes)
        self.sampler = _MAKERS[problem.config.sampler](problem.config, self.distributions)
        self.is_random = isinstance(self.sampler, RandomSampler)  # and then stays random
        self.reads_trials = not (self.is_random or isinstance(self.sampler, _Generations))  # of the study
        self._first_population = problem.warm_start() if self.is_random else problem.first_population()

    def to_params(self, genotype: Sequence[int]) -> dict[str, Any]:
        """A genotype as Optuna's parameters."""
        return dict(zip(self.distributions, genotype, strict=True))

    def to_architecture(self, params: Mapping[str, Any]) -> A:
        """What parameters stand for.

        Raises:
            ArchitectureError: the genes do not go together.
        """
        return self.problem.space.decode([params[name] for name in self.distributions])

    def end_generation(self, trials: Sequence[FrozenTrial]) -> None:
        """Make finished trials the population from which a genetic sampler breeds the next."""
        if isinstance(self.sampler, _Generations):
            self.sampler.populations.append([trial for trial in trials if trial.state == TrialState.COMPLETE])

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self.distributions

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The genes of a new architecture.

        Raises:
            ExhaustedError: there is none.
        """
        if self._first_population:
            return self.to_params(self.problem.space.encode(self._first_population.pop(0)))
        for _ in range(ATTEMPTS):
            params = self._inner_params(study, trial)
            if self._reserve(params):
                return params
        for architecture in self.problem.samples(1) if self.is_random else self.problem.fresh(1):
            return self.to_params(self.problem.space.encode(architecture))
        raise ExhaustedError

    def _reserve(self, params: Mapping[str, Any]) -> bool:
        try:
            return self.problem.reserve(self.to_architecture(params))
        except ArchitectureError:
            return False

    def _inner_params(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, Any]:
        search_space = self.sampler.infer_relative_search_space(study, trial)
        with _one_thread() if isinstance(self.sampler, GPSampler) else nullcontext():
            params = self.sampler.sample_relative(study, trial, search_space)
        for name, distribution in self.distributions.items():
            if name not in params:
                params[name] = self.sampler.sample_independent(study, trial, name, distribution)
        return params

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self.sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self.sampler.before_trial(study, trial)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        self.sampler.after_trial(study, trial, state, values)


class _Generations(BaseGASampler):
    """Populations and parents kept at hand; Optuna looks through all trials for them at every proposal."""

    def __init__(self, distributions: Mapping[str, BaseDistribution], **options: Any) -> None:
        super().__init__(**options)
        self.distributions = {name: dist for name, dist in distributions.items() if not dist.single()}
        self.populations: list[list[FrozenTrial]] = []
        self._parents: dict[int, list[FrozenTrial]] = {0: []}

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self.distributions

    def get_trial_generation(self, study: optuna.Study, trial: FrozenTrial) -> int:
        return len(self.populations)

    def get_population(self, study: optuna.Study, generation: int) -> list[FrozenTrial]:
        return self.populations[generation]

    def get_parent_population(self, study: optuna.Study, generation: int) -> list[FrozenTrial]:
        if generation not in self._parents:
            self._parents[generation] = self.select_parent(study, generation)
            # What they were selected from is not asked for again.
            self.populations[generation - 1] = []
            del self._parents[generation - 1]
        return self._parents[generation]

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The genes of a child; none where there are no two parents, which a crossover draws without asking."""
        if len(self.get_parent_population(study, self.get_trial_generation(study, trial))) < 2:
            return {}
        return super().sample_relative(study, trial, search_space)  # type: ignore[safe-super]  # of NSGA-II or III


class _NSGAII(_Generations, NSGAIISampler):
    pass


class _NSGAIII(_Generations, NSGAIIISampler):
    pass


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch use one thread within this, for many small products.

    On busy cores, threads that wait for each other take ten times as long.
    """
    import torch  # here: other samplers do without

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


# What makes each of ``SAMPLERS["optuna"]``.
_MAKERS: dict[str, Callable[[SearchConfig, Mapping[str, BaseDistribution]], BaseSampler]] = {
    "nsga2": lambda config, genes: _NSGAII(genes, population_size=config.population_size, seed=config.seed),
    "nsga3": lambda config, genes: _NSGAIII(genes, population_size=config.population_size, seed=config.seed),
    "tpe": lambda config, _: TPESampler(seed=config.seed, n_startup_trials=config.population_size, multivariate=True),
    "gp": lambda config, _: GPSampler(
        seed=config.seed, n_startup_trials=config.population_size, deterministic_objective=True
    ),
    "random": lambda config, _: RandomSampler(seed=config.seed),
}
