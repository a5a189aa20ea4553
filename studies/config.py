"""What a search is asked to do, and its spelling in study.json."""

import dataclasses
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from nasrlm.arguments import checked_whole
from nasrlm.objective import Goal, Objective
from spaces import SearchSpace, Spellings
from studies.constraints import Constraint, hard, objectives_of
from studies.guide import Guide, levels_of

SAMPLERS = {"optuna": ("nsga2", "nsga3", "tpe", "gp", "random"), "pymoo": ("nsga2", "agemoea", "smsemoa")}
TWINS = ("once", "apart")

A = TypeVar("A", bound=Hashable)
K = TypeVar("K", Goal, Constraint)


def without_password(url: str) -> str:
    """A storage's URL as it may be written down."""
    return re.sub(r"([?&]password=)[^&]*", r"\1***", re.sub(r"(://[^:/@]*):.*@", r"\1@", url))


def twins_of(space: SearchSpace[A], objectives: Sequence[str]) -> str:
    """How real results of a space are best searched for: "apart" where isomorphic architectures differ in costs.

    NOTE: on NAS-Bench-201 (accuracy@cifar10, latency_ms@raspi4, energy_mj@edgegpu) one spelling of each cell reaches
    0.9856 of the table's hypervolume at most.
    """
    costs = any(not Objective.parse(name).is_accuracy for name in objectives)
    return "apart" if space.runs_lost_operations and costs else "once"


def parsed(who: str, name: str, given: Any, kind: type[K]) -> tuple[K, ...]:
    """Goals or constraints, each of which may be spelled.

    Raises:
        ValueError: one word, whose letters would be read, or what the kind's ``parse`` refuses.
    """
    if isinstance(given, str):
        raise ValueError(f"{who}: expected a list of {name}, got {given!r}. Put it in a list.")
    return tuple([x if isinstance(x, kind) else kind.parse(x) for x in given])


@dataclass(frozen=True)
class SearchConfig:
    """One search.

    Attributes:
        space: the name under which the space is known.
        goals: M goals, each on another objective; or as Goal.parse reads them. Constraints likewise.
        trials: how many distinct architectures are evaluated.
        engine: "optuna" or "pymoo".
        sampler: one of ``SAMPLERS[engine]``.
        constraints: bounds on medians, or on real results; an architecture that breaks one that is not soft is never
            on the front.
        population_size: architectures asked for, and evaluated, at a time.
        seed: of every random draw.
        evaluator: what answers, in words ("surrogate", "table:true.parquet"), kept to recognise the study; searches in
            Python say "function" and so on where it is left out.
        storage: Optuna storage, a URL or a journal file; None keeps trials in memory.
        guide: how a predictor guides a search with real evaluations; None where the engine asks the evaluator.
        warm_start: notations of known architectures, evaluated first.
        twins: whether isomorphic architectures are evaluated "once" for all of them, or "apart", each on its own.
        checkpoint_sha256: ``Checkpoint.sha256`` of what predicts, so that no other goes on with the study; "" where
            nothing predicts, or it was not told.
        space_sha256: likewise of a user's own space; ``studies.space_digest.digest_of_space``.
        earlier_trials: earlier values of ``trials``, ascending, of a study that was resumed with more: populations end
            at each of them, so that a resumed study proposes the same architectures again.
        options: of ``nasrlm search``, by name, which need not be repeated where the study is resumed. They decide
            nothing.

    Raises:
        ValueError: no goals, or two of one objective, numbers that are too small, an engine without such a sampler,
            without a guide a warm start larger than a population, a risk of an unknown objective, or a storage without
            a use for it.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "goals", parsed("search", "goals", self.goals, Goal))
        object.__setattr__(self, "constraints", parsed("search", "constraints", self.constraints, Constraint))
        names = [goal.objective for goal in self.goals]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"search: expected goals on different objectives, got {names}. Name each once.")
        for name, least in (("trials", 1), ("population_size", 2), ("seed", 0)):
            object.__setattr__(self, name, checked_whole(f"search: {name}", getattr(self, name), least))
        given = [*self.earlier_trials, self.trials]
        if given != sorted(set(given)):
            raise ValueError(
                f"search: expected earlier_trials that ascend, below {self.trials}, got "
                f"{', '.join(map(str, self.earlier_trials))}. They are a resumed study's own."
            )
        if self.sampler not in SAMPLERS.get(self.engine, ()):
            known = "; ".join(f"{engine}: {', '.join(samplers)}" for engine, samplers in SAMPLERS.items())
            raise ValueError(
                f"search: expected an engine with one of its samplers, got {self.engine} with {self.sampler}. "
                f"There are {known}."
            )
        if self.sampler == "smsemoa" and len(self.goals) < 2:
            raise ValueError("search: expected two goals or more with smsemoa, got one. Use nsga2.")
        if self.guide is None and len(self.warm_start) > self.population_size:
            raise ValueError(
                f"search: expected a warm start of at most one population ({self.population_size}), got "
                f"{len(self.warm_start)} architectures. Leave some out, or make the population larger."
            )
        if self.twins not in TWINS:
            raise ValueError(f"search: expected twins of {', '.join(TWINS)}, got {self.twins!r}. Name one.")
        if self.guide is not None:
            levels_of(self.guide.risk, self.objectives)
        if self.storage is not None and self.engine != "optuna" and self.guide is None:
            raise ValueError(f"search: expected engine optuna with a storage, got {self.engine}. Leave it out.")

    @property
    def objectives(self) -> tuple[str, ...]:
        """Everything an evaluator has to answer: the goals' objectives, then those of constraints only."""
        return objectives_of(self.goals, self.constraints)

    @property
    def hard_constraints(self) -> tuple[Constraint, ...]:
        """Constraints that every front member must meet."""
        return hard(self.constraints)

    @property
    def has_soft_constraints(self) -> bool:
        """Whether any constraint is a preference."""
        return len(self.hard_constraints) < len(self.constraints)

    def searched(self, space: SearchSpace[A]) -> SearchSpace[A]:
        """The space as this search sees it: with keys by which architectures are evaluated once."""
        return Spellings(space) if self.twins == "apart" else space

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; ``SearchConfig.from_dict`` reads them back.

        NOTE: ``earlier_trials`` and ``options`` are written where there are any, so that studies begun without them can
        be resumed.
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
        """Build a config from names and numbers, goals and constraints being strings, the guide an object or None.

        Raises:
            ValueError: an unknown or missing name, or a bad value.
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
        listed = {name: tuple(values.get(name, ())) for name in ("warm_start", "earlier_trials")}
        return cls(**{**values, "guide": guide, **listed})
