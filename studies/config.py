"""The configuration of a search, and how it is written to study.json."""

import dataclasses
import os
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nasrlm.arguments import checked_whole
from nasrlm.objective import Goal, Objective
from spaces import SearchSpace, Spellings
from studies.columns import RESERVED
from studies.constraints import Constraint, hard, objectives_of
from studies.guide import Guide, checked_guide, levels_of

SAMPLERS = {"optuna": ("nsga2", "nsga3", "tpe", "gp", "random"), "pymoo": ("nsga2", "agemoea", "smsemoa")}
TWINS = ("once", "apart")

A = TypeVar("A", bound=Hashable)
K = TypeVar("K", Goal, Constraint)


def without_password(url: str) -> str:
    """Return a storage's URL with the password masked, so that it can be shown and saved."""
    return re.sub(r"([?&]password=)[^&]*", r"\1***", re.sub(r"(://[^:/@]*):.*@", r"\1@", url))


def storage_name(given: str | Path | None) -> str | None:
    """Return the URL or path of an Optuna storage as a string, or None.

    Raises:
        ValueError: it is something else, such as an opened storage.
    """
    if not isinstance(given, str | os.PathLike | None):
        raise ValueError(f"search: expected storage as a URL or the path of a journal file, got {given!r:.80}.")
    return None if given is None else os.fspath(given)


def twins_of(space: SearchSpace[A], objectives: Sequence[str]) -> str:
    """Return how twins, isomorphic architectures, should be treated: "apart" if their costs differ, else "once".

    NOTE: on NAS-Bench-201 (accuracy@cifar10, latency_ms@raspi4, energy_mj@edgegpu) one notation of each cell reaches
    at most 0.9856 of the table's hypervolume.
    """
    costs = any(not Objective.parse(name).is_accuracy for name in objectives)
    return "apart" if space.runs_lost_operations and costs else "once"


def parsed(who: str, name: str, given: Any, kind: type[K]) -> tuple[K, ...]:
    """Return goals or constraints, after parsing those that are strings.

    Raises:
        ValueError: a single string or something else is given instead of a list, or one cannot be parsed.
    """
    return tuple([x if isinstance(x, kind) else kind.parse(x) for x in _listed(who, name, given)])


def _listed(who: str, name: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"{who}: expected a list of {name}, got {given!r}. Put it in a list.")
    return tuple(given)


@dataclass(frozen=True)
class SearchConfig:
    """The configuration of a search.

    Attributes:
        space: name of the search space.
        goals: M goals on different objectives, or strings for Goal.parse; constraints likewise.
        trials: number of distinct architectures to evaluate.
        engine: "optuna" or "pymoo".
        sampler: one of ``SAMPLERS[engine]``.
        constraints: bounds on medians, or on real results; an architecture that breaks a hard one is never on the
            front.
        population_size: number of architectures proposed and evaluated at a time.
        seed: seed of every random draw.
        evaluator: kind of the evaluator, such as "surrogate" or "table:true.parquet", to recognise the study. Searches
            in Python set it, for example to "function", if it is not given.
        storage: Optuna storage, a URL or the path of a journal file, which may be a Path; None keeps trials in memory.
        guide: settings of a guided search, in which a predictor chooses real evaluations; None for other searches.
        warm_start: notations of known architectures, evaluated first.
        twins: whether isomorphic architectures are evaluated "once" for all, or "apart", each separately; for real
            evaluations the command and the gates use ``twins_of``.
        checkpoint_sha256: ``Checkpoint.sha256`` of the predictor, so that the study is not resumed with another one; ""
            without a predictor or if unknown.
        space_sha256: the same for a user's own space; ``studies.space_digest.digest_of_space``.
        earlier_trials: ascending earlier values of ``trials``, if the study was resumed with more. A population ends at
            each of them, so that a resumed study proposes the same architectures again.
        options: options of ``nasrlm search``, by name, which need not be repeated to resume the study. They do not
            affect results.

    Raises:
        ValueError: there are no goals or two on one objective, an objective is named like another column of a study, a
            number is too small, the engine lacks the sampler, a warm start is a single notation or, without a guide,
            larger than a population, ``twins`` is none of ``TWINS``, a risk is of an unknown objective, or a storage is
            given for pymoo without a guide.
    """

    space: str
    goals: tuple[Goal, ...]
    trials: int
    engine: str = "optuna"
    sampler: str = "nsga2"
    constraints: tuple[Constraint, ...] = ()
    population_size: int = 32
    seed: int = 0
    evaluator: str = "surrogate"
    storage: str | None = None
    guide: Guide | None = None
    twins: str = "once"
    warm_start: tuple[str, ...] = ()
    checkpoint_sha256: str = ""
    space_sha256: str = ""
    earlier_trials: tuple[int, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)

    if TYPE_CHECKING:  # dataclasses cannot say that strings are taken too

        def __init__(
            self,
            space: str,
            goals: Iterable[Goal | str],
            trials: int,
            engine: str = ...,
            sampler: str = ...,
            constraints: Iterable[Constraint | str] = ...,
            population_size: int = ...,
            seed: int = ...,
            evaluator: str = ...,
            storage: str | Path | None = ...,
            guide: Guide | None = ...,
            twins: str = ...,
            warm_start: Iterable[str] = ...,
            checkpoint_sha256: str = ...,
            space_sha256: str = ...,
            earlier_trials: Iterable[int] = ...,
            options: Mapping[str, Any] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "goals", parsed("search", "goals", self.goals, Goal))
        object.__setattr__(self, "constraints", parsed("search", "constraints", self.constraints, Constraint))
        object.__setattr__(self, "warm_start", _listed("search", "warm_start", self.warm_start))
        object.__setattr__(self, "earlier_trials", tuple(self.earlier_trials))
        for name in ("space", "engine", "sampler", "evaluator"):
            if not isinstance(word := getattr(self, name), str):
                raise ValueError(f"search: expected {name} as a word, got {word!r:.80}.")
        checked_guide("search", self.guide)
        object.__setattr__(self, "storage", storage_name(self.storage))
        names = [goal.objective for goal in self.goals]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"search: expected goals on different objectives, got {names}. Give each objective once.")
        if taken := [name for name in self.objectives if name in RESERVED]:
            raise ValueError(
                f"search: expected objectives not named like other columns of its tables, {', '.join(RESERVED)}; got "
                f"{', '.join(taken)}. Add a context, such as {taken[0]}@mine."
            )
        for name, least in (("trials", 1), ("population_size", 2), ("seed", 0)):
            object.__setattr__(self, name, checked_whole(f"search: {name}", getattr(self, name), least))
        given = [*self.earlier_trials, self.trials]
        if given != sorted(set(given)):
            raise ValueError(
                f"search: expected ascending earlier_trials below {self.trials}, got "
                f"{', '.join(map(str, self.earlier_trials))}. They are set when a study is resumed."
            )
        if self.sampler not in SAMPLERS.get(self.engine, ()):
            known = "; ".join(f"{engine}: {', '.join(samplers)}" for engine, samplers in SAMPLERS.items())
            raise ValueError(
                f"search: expected an engine with one of its samplers, got {self.engine} with {self.sampler}. Choose "
                f"from {known}."
            )
        if self.sampler == "smsemoa" and len(self.goals) < 2:
            raise ValueError("search: expected two or more goals with smsemoa, got one. Use nsga2.")
        if self.guide is None and len(self.warm_start) > self.population_size:
            raise ValueError(
                f"search: expected a warm start of at most one population ({self.population_size}), got "
                f"{len(self.warm_start)} architectures. Leave some out, or make the population larger."
            )
        if self.twins not in TWINS:
            raise ValueError(f"search: expected twins to be one of {', '.join(TWINS)}, got {self.twins!r}. Choose one.")
        if self.guide is not None:
            levels_of(self.guide.risk, self.objectives)
        if self.storage is not None and self.engine != "optuna" and self.guide is None:
            raise ValueError(
                f"search: expected engine optuna with a storage, got {self.engine}. Leave the storage out."
            )

    @property
    def objectives(self) -> tuple[str, ...]:
        """All objectives that an evaluator has to give: those of the goals, then those of constraints only."""
        return objectives_of(self.goals, self.constraints)

    @property
    def hard_constraints(self) -> tuple[Constraint, ...]:
        """The constraints that every front member must meet."""
        return hard(self.constraints)

    @property
    def has_soft_constraints(self) -> bool:
        """Whether any constraint is soft."""
        return len(self.hard_constraints) < len(self.constraints)

    def searched(self, space: SearchSpace[A]) -> SearchSpace[A]:
        """Return the space for this search, whose keys decide which architectures are evaluated only once."""
        return Spellings(space) if self.twins == "apart" else space

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, which ``SearchConfig.from_dict`` reads.

        NOTE: ``earlier_trials`` and ``options`` are written only if not empty, so that older studies can be resumed.
        """
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields |= {
            "goals": [str(goal) for goal in self.goals],
            "constraints": [str(constraint) for constraint in self.constraints],
            "storage": None if self.storage is None else without_password(self.storage),
            "guide": None if self.guide is None else self.guide.to_dict(),
            "warm_start": list(self.warm_start),
            "earlier_trials": list(self.earlier_trials),
            "options": dict(self.options),
        }
        return {name: value for name, value in fields.items() if name not in ("earlier_trials", "options") or value}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build a config from JSON values: goals and constraints are strings, the guide is an object or None.

        Raises:
            ValueError: a name is unknown or missing, or a value is invalid.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        unknown = [name for name in values if name not in names]
        missing = [name for name in ("space", "goals", "trials") if name not in values]
        if unknown or missing:
            raise ValueError(
                f"search config: expected {', '.join(names)}, got unknown {unknown}, missing {missing}. "
                "Check the spelling."
            )
        guide = None if values.get("guide") is None else Guide.from_dict(values["guide"])
        return cls(**{**values, "guide": guide})
