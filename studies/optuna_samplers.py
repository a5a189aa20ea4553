"""Adapt Optuna's samplers, so that they propose populations of valid and new architectures."""

from collections.abc import Callable, Hashable, Mapping, Sequence
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

from nasrlm.threads import one_thread
from spaces import ArchitectureError
from studies.config import SearchConfig
from studies.optuna_trials import gene_distributions
from studies.problem import Problem

A = TypeVar("A", bound=Hashable)

ATTEMPTS = 3  # draws of a valid and new proposal before it is replaced by one of the problem's fresh architectures


class ExhaustedError(RuntimeError):
    """Raised if no new architecture is left to propose."""


class DistinctSampler(BaseSampler, Generic[A]):
    """A sampler that wraps another one and draws again if a proposal is invalid or not new.

    It samples whole genotypes, so that Optuna's samplers work unchanged on spaces in which most genotypes are invalid.
    If ``ATTEMPTS`` draws give nothing valid and new, an architecture is taken from ``Problem.fresh``.

    Args:
        problem: the search; its config names the wrapped sampler.

    Attributes:
        distributions: Optuna's distribution of every gene, by name.
        sampler: the wrapped sampler.
        is_random: whether it draws at random; then replacements are random too.
        reads_trials: whether the sampler needs all trials of the study. If not, a new study can be used for every
            generation, which is faster.

    Raises:
        ValueError: the warm start has architectures that the space does not draw.
    """

    def __init__(self, problem: Problem[A]) -> None:
        if problem.undrawn_warm_start:
            raise ValueError(
                f"search: expected a warm start of architectures that {problem.space.name} can draw, got "
                f"{problem.undrawn_warm_start}. Optuna's samplers accept no others; use the engine pymoo."
            )
        self.problem = problem
        self.distributions = gene_distributions(problem.space.sampled_sizes)
        self.sampler = _MAKERS[problem.config.sampler](problem.config, self.distributions)
        self.is_random = isinstance(self.sampler, RandomSampler)
        self.reads_trials = not (self.is_random or isinstance(self.sampler, _Generations))
        self._first_population = problem.warm_start() if self.is_random else problem.first_population()

    def to_params(self, genotype: Sequence[int]) -> dict[str, Any]:
        """Return the genes of a genotype as Optuna's parameters, by name."""
        return dict(zip(self.distributions, genotype, strict=True))

    def to_architecture(self, params: Mapping[str, Any]) -> A:
        """Return the architecture with these parameters.

        Raises:
            ArchitectureError: the genes do not encode an architecture.
        """
        return self.problem.space.decode([params[name] for name in self.distributions])

    def end_generation(self, trials: Sequence[FrozenTrial]) -> None:
        """Give finished trials to a genetic sampler as the population from which it breeds the next one."""
        if isinstance(self.sampler, _Generations):
            self.sampler.populations.append([trial for trial in trials if trial.state == TrialState.COMPLETE])

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self.distributions

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the genes of a new architecture as Optuna's parameters.

        Raises:
            ExhaustedError: no new architecture is left.
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
        is_process = isinstance(self.sampler, GPSampler)
        if is_process:
            import torch  # noqa: F401  # only what is loaded is limited; other samplers do not need it
        with one_thread(is_process):
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
    """A genetic sampler that keeps its populations and parents.

    Optuna's own would search for them among all trials at every proposal.
    """

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
            # Earlier populations and parents are not needed any more.
            self.populations[generation - 1] = []
            del self._parents[generation - 1]
        return self._parents[generation]

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the genes of a child; {} if there are fewer than two parents, with which crossover would fail."""
        if len(self.get_parent_population(study, self.get_trial_generation(study, trial))) < 2:
            return {}
        return super().sample_relative(study, trial, search_space)  # type: ignore[safe-super]  # of NSGA-II or III


class _NSGAII(_Generations, NSGAIISampler):
    pass


class _NSGAIII(_Generations, NSGAIIISampler):
    pass


# Constructors of ``SAMPLERS["optuna"]``.
_MAKERS: dict[str, Callable[[SearchConfig, Mapping[str, BaseDistribution]], BaseSampler]] = {
    "nsga2": lambda config, genes: _NSGAII(genes, population_size=config.population_size, seed=config.seed),
    "nsga3": lambda config, genes: _NSGAIII(genes, population_size=config.population_size, seed=config.seed),
    "tpe": lambda config, _: TPESampler(seed=config.seed, n_startup_trials=config.population_size, multivariate=True),
    "gp": lambda config, _: GPSampler(
        seed=config.seed, n_startup_trials=config.population_size, deterministic_objective=True
    ),
    "random": lambda config, _: RandomSampler(seed=config.seed),
}
