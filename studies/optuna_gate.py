"""The Pareto gate, and proposals of the predictor, in an Optuna study of the user's own."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from nasrlm.objective import FloatArray, Goal
from spaces import SearchSpace
from studies.config import Constraint, SearchConfig
from studies.gate import Gate
from studies.guide import Guide
from studies.ledger import CHOSEN, EVALUATED, Entry, Ledger
from studies.memory import PredictorMemory, SamplingPredictor
from studies.proposal import Model, propose

A = TypeVar("A", bound=Hashable)

ARCHITECTURE, PREDICTED = "architecture", "predicted"
STAGE, REASON, DOMINATED_BY = "pruned_stage", "pruned_reason", "pruned_by"


class ParetoGate(Generic[A]):
    """Prunes trials that cannot move the study's front, before they are trained or measured.

    The front is that of the study's completed trials. What the gate decides is in ``trial.user_attrs``:
    ``architecture`` and ``predicted`` (low, median, high of every objective) of every trial, and ``pruned_stage``,
    ``pruned_reason`` and ``pruned_by`` of a pruned one.

    Args:
        space: writes and reads the notation of architectures.
        predictor: a ``nasrlm.Predictor`` that knows the objectives.
        goals: one for each value of the study, in its order: ``max:accuracy@cifar10``.
        to_text: architecture to the text that the predictor reads, such as
            ``functools.partial(nasrlm.to_measured_text, space)``.
        constraints: such as ``latency_ms@pixel3<=10``. Of an objective that is no goal, a completed trial tells its
            real value in the user attribute of that name; without it the trial does not join the front.
        risk: probability, in (0, 0.5), that one objective is better than the gate allows for.
        best: best conceivable values of some objectives; see ``studies.gate.Gate``.

    Raises:
        ValueError: a bad goal, constraint, risk or best value.

    Example:
        >>> gate = ParetoGate(space, predictor, goals, to_text=to_text)  # doctest: +SKIP
        >>> def objective(trial):  # doctest: +SKIP
        ...     architecture = space.decode([trial.suggest_int(f"edge{i}", 0, 4) for i in range(6)])
        ...     gate.check(trial, architecture)
        ...     return train(architecture), measure(architecture)
    """

    def __init__(
        self,
        space: SearchSpace[A],
        predictor: SamplingPredictor,
        goals: Sequence[str],
        *,
        to_text: Callable[[A], str],
        constraints: Sequence[str] = (),
        risk: float = Guide.risk,
        best: Mapping[str, float] | None = None,
    ) -> None:
        self.space = space
        self.gate = Gate(
            [Goal.parse(goal) for goal in goals],
            [Constraint.parse(constraint) for constraint in constraints],
            risk=risk,
            best=best,
        )
        self._model = Model(predictor, PredictorMemory(predictor), to_text)
        self._added: set[int] = set()  # trial numbers

    def check(self, trial: optuna.Trial, architecture: A) -> None:
        """Let a trial go on, or prune it.

        Raises:
            optuna.TrialPruned: with the reason.
            ValueError: the study's directions are not those of the goals.
        """
        self._follow(trial.study)
        trial.set_user_attr(ARCHITECTURE, self.space.format(architecture))
        (decision,) = self.gate.check([self._model.to_text(architecture)], self._model.memory)
        trial.set_user_attr(PREDICTED, self._predicted(decision.values))
        if not decision.kept:
            trial.set_user_attr(STAGE, decision.stage)
            trial.set_user_attr(REASON, decision.reason)
            trial.set_user_attr(DOMINATED_BY, decision.dominated_by)
            raise optuna.TrialPruned(decision.reason)

    def enqueue(
        self,
        study: optuna.Study,
        count: int,
        *,
        to_params: Callable[[A], Mapping[str, Any]],
        guide: Guide | None = None,
        seed: int = 0,
    ) -> list[A]:
        """Put architectures into the study's queue that are expected to add most hypervolume to its front.

        Args:
            study: whose trials were checked by this gate, or carry their notation in the attribute ``architecture``.
            count: at most so many.
            to_params: architecture to the parameters that the study's objective suggests.
            guide: how they are searched for and chosen.
            seed: of the search; another trial in the study draws anew.

        Returns:
            Those enqueued, best first; none that a trial has had before.
        """
        self._follow(study)
        trials = study.get_trials(deepcopy=False)
        config = SearchConfig(
            space=self.space.name,
            goals=self.gate.goals,
            trials=1,
            constraints=self.gate.constraints,
            seed=seed + len(trials),
        )
        guide = guide or Guide(risk=self.gate.levels[0])
        ledger = Ledger(config, [entry for trial in trials for entry in self._entries(trial)])
        proposed = propose(config, guide, self.space, self._model, ledger, count=count)
        chosen = [entry for entry in proposed if entry.status == CHOSEN]
        architectures = [self.space.parse(entry.architecture) for entry in chosen]
        for entry, architecture in zip(chosen, architectures, strict=True):
            attributes = {ARCHITECTURE: entry.architecture, PREDICTED: self._predicted(entry.predicted[:, [1, 0, 2]])}
            study.enqueue_trial(dict(to_params(architecture)), user_attrs=attributes)
        return architectures

    def _follow(self, study: optuna.Study) -> None:
        """Let newly completed trials join the front."""
        expected = [StudyDirection.MAXIMIZE if goal.maximise else StudyDirection.MINIMIZE for goal in self.gate.goals]
        if study.directions != expected:
            raise ValueError(
                f"ParetoGate: expected a study with directions {', '.join(map(str, self.gate.goals))}, "
                f"got {', '.join(direction.name.lower() for direction in study.directions)}."
            )
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        new = [trial for trial in trials if trial.number not in self._added]
        if new:
            names = [str(trial.user_attrs.get(ARCHITECTURE, f"trial {trial.number}")) for trial in new]
            self.gate.add(names, np.array([self._results(trial) for trial in new]))
            self._added.update(trial.number for trial in new)

    def _results(self, trial: FrozenTrial) -> list[float]:
        """M real values of a trial, NaN where it tells none."""
        goals = len(self.gate.goals)
        values = trial.values if trial.state == TrialState.COMPLETE else [np.nan] * goals
        others = [trial.user_attrs.get(name, np.nan) for name in self.gate.objectives[goals:]]
        return [float(value) for value in (*values, *others)]

    def _entries(self, trial: FrozenTrial) -> list[Entry]:
        """A trial of which the architecture is known, as evaluated: nothing is proposed twice."""
        if ARCHITECTURE not in trial.user_attrs:
            return []
        architecture = self.space.parse(trial.user_attrs[ARCHITECTURE])
        return [
            Entry(
                architecture=self.space.format(architecture),
                key=self.space.architecture_key(architecture),
                genotype=tuple(self.space.encode(architecture)),
                batch=0,
                status=EVALUATED,
                stage=0,
                reason="",
                predicted=np.full((len(self.gate.objectives), 3), np.nan),
                real=np.array(self._results(trial)),
            )
        ]

    def _predicted(self, values: FloatArray) -> dict[str, dict[str, float | None]]:
        """Low, median and high by objective; None where nothing was decoded."""
        return {
            name: {
                bound: None if np.isnan(value) else float(value)
                for bound, value in zip(("low", "median", "high"), row, strict=True)
            }
            for name, row in zip(self.gate.objectives, values, strict=True)
        }
