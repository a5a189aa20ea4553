"""Optuna's samplers, made to propose whole populations of new and valid architectures."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import (
    BaseGASampler,
    BaseSampler,
    NSGAIIISampler,
    NSGAIISampler,
    RandomSampler,
    TPESampler,
)
from optuna.trial import FrozenTrial, TrialState

from spaces import ArchitectureError
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

    def __init__(self, problem: Problem[A], *, seed: int) -> None:
        self.problem = problem
        self.distributions: dict[str, BaseDistribution] = {
            f"gene_{index}": CategoricalDistribution(tuple(range(size)))
            for index, size in enumerate(problem.space.gene_sizes)
        }
        config = problem.config
        self.sampler = _make_sampler(config.sampler, config.population_size, seed, self.distributions)
        self._queue: list[A] = []

    def to_params(self, genotype: Sequence[int]) -> dict[str, Any]:
        """A genotype as Optuna's parameters."""
        return dict(zip(self.distributions, genotype, strict=True))

    def to_architecture(self, params: Mapping[str, Any]) -> A:
        """What parameters stand for.

        Raises:
            ArchitectureError: the genes do not go together.
        """
        return self.problem.space.decode([params[name] for name in self.distributions])

    def begin(self) -> None:
        """Propose the problem's first population first; random search stays random."""
        if not isinstance(self.sampler, RandomSampler):
            self._queue = self.problem.first_population()

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
        if self._queue:
            return self.to_params(self.problem.space.encode(self._queue.pop()))
        for _ in range(ATTEMPTS):
            params = self._inner_params(study, trial)
            if self._reserve(params):
                return params
        stand_in = self.problem.samples if isinstance(self.sampler, RandomSampler) else self.problem.fresh
        for architecture in stand_in(1):
            return self.to_params(self.problem.space.encode(architecture))
        raise ExhaustedError

    def _reserve(self, params: Mapping[str, Any]) -> bool:
        try:
            return self.problem.reserve(self.to_architecture(params))
        except ArchitectureError:
            return False

    def _inner_params(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, Any]:
        search_space = self.sampler.infer_relative_search_space(study, trial)
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
        return self._parents[generation]


class _NSGAII(_Generations, NSGAIISampler):
    pass


class _NSGAIII(_Generations, NSGAIIISampler):
    pass


def _make_sampler(
    name: str, population_size: int, seed: int, distributions: Mapping[str, BaseDistribution]
) -> BaseSampler:
    if name == "nsga2":
        return _NSGAII(distributions, population_size=population_size, seed=seed)
    if name == "nsga3":
        return _NSGAIII(distributions, population_size=population_size, seed=seed)
    if name == "tpe":
        return TPESampler(seed=seed, n_startup_trials=population_size, multivariate=True)
    return RandomSampler(seed=seed)
