"""The Pareto gate and the surrogate's proposals for an Optuna study that the user runs.

Twin: another trial of the same network, by ``architecture_key``.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from threading import RLock
from typing import Any, Generic

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState
from typing_extensions import TypeVar

from nasrlm.arguments import checked_whole
from nasrlm.callers import warn_caller
from spaces import ArchitectureError, SearchSpace
from studies.advisor import Advisor
from studies.gate import Gate
from studies.guide import RISK, Guide, Risk, checked_guide
from studies.history import median_first
from studies.optuna_entries import TrialEntries
from studies.optuna_trials import (
    AFTER_ALL,
    ARCHITECTURE,
    PREDICTED,
    check_names,
    directions,
    gene_distributions,
    has_results,
    is_counted,
    is_feasible,
    plain_params,
    prune,
    recorded_number,
    recorded_predictions,
)
from studies.proposal import hashed_seed
from studies.surrogates.learning import Adapt
from studies.surrogates.memory import SamplingPredictor
from studies.tables.rows import spelled_notation

MOST_UNLIKE = 3  # consecutive trials of other networks than proposed, after which proposing stops

A = TypeVar("A", bound=Hashable, default=Any)  # unknown if the space is given by name

Callback = Callable[[optuna.Study, FrozenTrial], None]


class ParetoGate(Generic[A]):
    """Prunes trials that are not expected to improve the study's front, before they are trained or measured.

    The front consists of the study's completed trials that meet the constraints. A gate belongs to one study; the
    study's threads (``n_jobs``) can share it. A pickled or copied gate takes a front of its own from the study.

    The gate records its decisions in ``trial.user_attrs``:

    - ``architecture`` of every trial that was checked;
    - ``predicted``: low, median and high of every objective; not for twins, which have the same network as another
      trial;
    - ``pruned_stage``, ``pruned_reason`` and ``pruned_by`` of a pruned trial; twins are pruned at stage 0.

    A trial that ``suggest`` prunes because its genes form no architecture has none of these. If the objective returns
    results for a trial that was pruned, they are ignored, unless it has called
    ``trial.set_user_attr("evaluated", True)``.

    Failed trials have no results. The gate learns what they have in common, and proposes fewer networks like them.

    Trials from before the gate have no ``architecture``, unless their parameters are those of ``suggest``, and Optuna
    does not allow finished trials to be changed. To learn from them, create a new study, and for each of
    ``old.trials`` call ``trial.set_user_attr("architecture", notation)`` and ``new.add_trial(trial)``. The same
    helps if your trials have an attribute of this name that is no notation.

    NOTE: on SQLite, Optuna 5.0 may give one queued trial to two threads and raise "Cannot tell a COMPLETE trial".
    With ``n_jobs`` and ``enqueue_callback``, keep the study in a ``JournalStorage``.

    Args:
        space: a search space or its name.
        goals: one for each value of the study, in the same order, such as ``max:accuracy@cifar10``.
        predictor: a ``nasrlm.Predictor``, whose ``of_space`` predicts; if None, that of the released checkpoint, loaded
            once per process.
        to_text: converts an architecture to the text that the predictor reads; ``nasrlm.to_measured_text`` if None.
        constraints: such as ``latency_ms@pixel3<=10``, or ``soft:latency_ms@pixel3<=10``. If it is on an objective that
            is not a goal, your objective function has to store the real value in the trial's user attribute of that
            name; without it the trial does not join the front.
        risk: accepted probability, in (0, 0.5), that an architecture is better than the gate assumes, divided equally
            among the objectives; or one for each objective by name, as ``{"latency_ms@pixel3": 0.2}``.
        best: best conceivable values of some objectives; see ``studies.gate.Gate``.
        to_params: converts an architecture to the parameters that the objective function suggests; those of
            ``suggest`` if None.

    Raises:
        ValueError: the space is unknown, or a goal, constraint, risk or best value is invalid.

    Example:
        >>> gate = ParetoGate("nasbench201", ["max:accuracy@cifar10", "min:latency_ms@pixel3"])  # doctest: +SKIP
        >>> def objective(trial):  # doctest: +SKIP
        ...     architecture = gate.suggest(trial)
        ...     gate.check(trial, architecture)
        ...     return train(architecture), measure(architecture)
        >>> callbacks = [gate.adapt_callback(every=10), gate.enqueue_callback(count=5)]  # doctest: +SKIP
        >>> study.optimize(objective, n_trials=100, callbacks=callbacks)  # doctest: +SKIP
    """

    def __init__(
        self,
        space: SearchSpace[A] | str,
        goals: Sequence[str],
        predictor: SamplingPredictor | None = None,
        *,
        to_text: Callable[[A], str] | None = None,
        constraints: Sequence[str] = (),
        risk: Risk = RISK,
        best: Mapping[str, float] | None = None,
        to_params: Callable[[A], Mapping[str, Any]] | None = None,
    ) -> None:
        self._advisor = Advisor(
            space, goals, predictor=predictor, to_text=to_text, constraints=constraints, risk=risk, best=best
        )
        self.space: SearchSpace[A] = self._advisor.space
        self._trials = TrialEntries(self._advisor)
        self._genes = tuple(gene_distributions(self.space.sampled_sizes))
        self._to_params = to_params or self._gene_params
        self._unlike = 0  # consecutive trials of other networks than were proposed for them
        self._study_name = ""  # of the first study that the gate was used with
        self._lock = RLock()
        self._added: set[int] = set()  # numbers of completed trials that were processed

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=RLock())

    @property
    def gate(self) -> Gate:
        """The gate, with its front, levels and objectives."""
        return self._advisor.gate

    def suggest(self, trial: optuna.Trial) -> A:
        """Return an architecture from the study's sampler or queue, with one categorical parameter per gene.

        Raises:
            optuna.TrialPruned: the genes form no architecture.
            ValueError: the trial was queued with parameters outside these choices, or the study's sampler fails.
        """
        sizes = self.space.sampled_sizes
        try:
            genes = [
                trial.suggest_categorical(gene, range(size)) for gene, size in zip(self._genes, sizes, strict=True)
            ]
        except ValueError as e:  # the trial was queued by somebody else, or the sampler cannot be used here
            wanted = f"{', '.join(self._genes)} of {self.space.name}, within its sampled_sizes"
            got = str(e).rstrip(".")
            raise ValueError(
                f"ParetoGate: expected trial {trial.number} to have {wanted}, from the sampler or queue, got: {got}."
            ) from e
        try:
            return self.space.decode(genes)
        except ArchitectureError as error:
            raise optuna.TrialPruned(str(error)) from None

    def check(self, trial: optuna.Trial, architecture: A) -> None:
        """Prune a trial, or let it continue.

        A trial is also pruned if another one with the same network is completed or running, so that no network is
        evaluated twice, however many workers there are. In spaces where isomorphic architectures differ in costs, only
        the same architecture counts. Two trials that start with the same network at the same moment may both be pruned.

        A trial without a study, such as a ``FixedTrial`` to call the objective again with the best parameters, is never
        pruned.

        NOTE: Optuna regards a trial whose worker died as running, unless the storage has heartbeats.

        Raises:
            optuna.TrialPruned: with the reason.
            ValueError: the study's directions or names differ from the goals', it is another study than before, or the
                predictor lacks an objective and does not learn.
        """
        if not hasattr(trial, "study"):
            return
        with self._lock:
            self._check(trial, architecture)

    def _check(self, trial: optuna.Trial, architecture: A) -> None:
        self._follow(trial.study)
        try:
            notation = self.space.format(architecture)
        except (AttributeError, TypeError, ValueError) as e:
            raise ValueError(
                f"ParetoGate: expected an architecture of {self.space.name}, got {architecture!r:.60}. Convert a "
                "notation with `gate.space.parse`, integers with `gate.space.decode`."
            ) from e
        key = self.space.architecture_key(architecture)
        if (proposed := trial.user_attrs.get(ARCHITECTURE)) is not None:
            alike = proposed == notation or self._key_of(proposed) == key
            self._compare(trial.number, proposed, notation, alike=alike)
        trial.set_user_attr(ARCHITECTURE, notation)  # set before comparing: of two workers at least one sees the other
        twin = self._trials.twin(trial, key)
        if twin is not None:
            reason = f"the same network as trial {twin.number}, which is {twin.state.name.lower()}"
            prune(trial, 0, reason, self._trials.name(twin))
        (decision,) = self._advisor.check([architecture])
        trial.set_user_attr(PREDICTED, recorded_predictions(self.gate.objectives, median_first(decision.values)))
        if not decision.kept:
            prune(trial, decision.stage, decision.reason, decision.dominated_by)

    def _compare(self, number: int, proposed: str, notation: str, *, alike: bool) -> None:
        """Warn if a trial has another network than was proposed for it, and count consecutive ones."""
        self._unlike = 0 if alike else self._unlike + 1
        if self._unlike in (1, MOST_UNLIKE):
            more = f" {MOST_UNLIKE} in a row differed: no more are proposed." if self._unlike == MOST_UNLIKE else ""
            warn_caller(
                f"ParetoGate: expected trial {number} to be the proposed {proposed}, got {notation}. Let `to_params` "
                f"return the parameters that your objective suggests.{more}"
            )

    def _key_of(self, notation: object) -> str:
        """Return the key of a proposed architecture; "" if the notation is invalid."""
        try:
            return self.space.architecture_key(self.space.parse(spelled_notation(notation)))
        except ArchitectureError:
            return ""

    def enqueue(self, study: optuna.Study, count: int = 5, *, guide: Guide | None = None, seed: int = 0) -> list[A]:
        """Enqueue the architectures with the largest expected hypervolume improvement of the study's front.

        Args:
            study: its trials were checked by this gate, or have their notation in the attribute ``architecture``.
            count: largest number of architectures.
            guide: options of the search for candidates.
            seed: seed of the search, which also depends on the number of trials.

        Returns:
            The enqueued architectures, best first, none of which a trial has had before. None are enqueued after
            ``MOST_UNLIKE`` consecutive trials of other networks than proposed. While an objective is still to be
            learned, they are drawn at random from those that may meet the hard constraints.

        Raises:
            ValueError: ``count`` is less than 1, the study is not the gate's, or a trial's attributes cannot be read.
        """
        with self._lock:
            return self._enqueue(study, count, guide, checked_whole("gate: seed", seed, 0))

    def _enqueue(self, study: optuna.Study, count: int, guide: Guide | None, seed: int) -> list[A]:
        self._follow(study)
        if self._unlike >= MOST_UNLIKE:
            return []
        trials = study.get_trials(deepcopy=False)
        seed = hashed_seed(seed, len(trials))
        proposed, _ = self._advisor.propose(self._trials.tried(trials), count, guide=guide, seed=seed)
        # Proposing takes time, in which another worker may have enqueued the same networks.
        tried = {entry.key for entry in self._trials.tried(study.get_trials(deepcopy=False))}
        chosen = [entry for entry in proposed if entry.key not in tried]
        architectures = [self.space.parse(entry.architecture) for entry in chosen]
        for entry, architecture in zip(chosen, architectures, strict=True):
            predicted = recorded_predictions(self.gate.objectives, entry.predicted)
            attributes = {ARCHITECTURE: entry.architecture, PREDICTED: predicted}
            study.enqueue_trial(plain_params(self._to_params(architecture)), user_attrs=attributes)
        return architectures

    def enqueue_callback(self, count: int = 5, *, guide: Guide | None = None, seed: int = 0) -> Callback:
        """Return a callback for ``study.optimize`` that enqueues ``count`` architectures whenever no trial is waiting.

        Raises:
            ValueError: ``count`` or ``seed`` is not a whole number, or too small; or ``guide`` is no guide.
        """
        count, seed = checked_whole("gate: count", count, 1), checked_whole("gate: seed", seed, 0)
        return partial(self._fill, count, checked_guide("gate", guide), seed)

    def _fill(self, count: int, guide: Guide | None, seed: int, study: optuna.Study, trial: FrozenTrial) -> None:
        with self._lock:  # the first of several threads fills the queue for all
            if not study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
                self.enqueue(study, count, guide=guide, seed=seed)

    def adapt_callback(
        self, every: int = 10, *, adapt: Adapt | None = None, graphs: bool = False, progress: bool = False
    ) -> Callback:
        """Return a callback for ``study.optimize`` with which the model learns from the study's results.

        Objectives that the model does not know, such as the latency of your own device, are learned too; until then
        only twins are pruned, and networks that break hard constraints on what is known, such as ``params@onnx``.

        Args:
            every: completed trials after which the model learns again.
            adapt: returns a better predictor, given a table of results with columns space, architecture and one per
                objective; ``studies.surrogates.process_adapter.ProcessAdapter`` if None.
            graphs: learn objectives that the model does not know from the graphs of all networks of the space, of which
                there may be 20,000, instead of from texts. On NAS-Bench-201 this finds better fronts (see
                ``docs/measured.md``), elsewhere it does not. It takes minutes once, when ten results are there.
            progress: show bars on stderr while the networks are read.

        Raises:
            ValueError: ``every`` is not a whole number of 1 or more; or the space is too large for ``graphs``, or
                ``adapt`` is given too.
        """
        self._advisor.learn_every(every, adapt, graphs=graphs, progress=progress)
        return self._learn

    def _learn(self, study: optuna.Study, trial: FrozenTrial) -> None:
        with self._lock:
            self._follow(study)

    def _gene_params(self, architecture: A) -> dict[str, int]:
        return dict(zip(self._genes, self.space.encode(architecture), strict=True))

    def _follow(self, study: optuna.Study) -> None:
        """Add newly completed trials to the front, and let the model learn from them."""
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        self._check_study(study, trials)
        is_first, unseen = not self._added, [trial for trial in trials if trial.number not in self._added]
        if swallowed := [trial.number for trial in unseen if not has_results(trial)]:
            self._advisor.warn_once(
                "swallowed",
                f"ParetoGate: expected no values of trial {swallowed[0]}, which was pruned, got some: they are "
                "ignored. Do not catch optuna.TrialPruned in the objective; or if the trial was evaluated "
                f"nevertheless, mark it there: trial.set_user_attr({AFTER_ALL!r}, True).",
            )
        new = [trial for trial in unseen if has_results(trial)]
        if is_first and (unnamed := sum(self._trials.entry(trial) is None for trial in new)):
            warn_caller(
                f"ParetoGate: expected completed trials with their notation in the attribute {ARCHITECTURE}, got "
                f"{unnamed} without. The gate uses their values; the model does not learn from them, and may propose "
                "their networks again. Add them to a new study with the attribute, see ParetoGate."
            )
        if is_first and new:
            self._warn_of_missing(new)
        if feasible := [trial for trial in new if is_feasible(trial)]:
            names = [self._trials.name(trial) for trial in feasible]
            self.gate.add(names, np.array([self._trials.results(trial) for trial in feasible]))
        self._added.update(trial.number for trial in unseen)
        if new:
            tried = self._trials.tried(trials)
            self._advisor.warn_of_units(tried)
            if self._advisor.learns:
                self._advisor.learn(tried)

    def _check_study(self, study: optuna.Study, completed: Sequence[FrozenTrial]) -> None:
        """Check that a study has the goals and is the one that the gate was first used with."""
        if study.directions != directions(self.gate.goals):
            raise ValueError(
                f"ParetoGate: expected a study with directions {', '.join(map(str, self.gate.goals))}, "
                f"got {', '.join(direction.name.lower() for direction in study.directions)}."
            )
        check_names(study, [goal.objective for goal in self.gate.goals])
        self._study_name = self._study_name or study.study_name
        got = study.study_name
        if got == self._study_name and not self._added <= {trial.number for trial in completed}:
            got = "another study of that name"  # for example, when a notebook's cell is run again
        if got != self._study_name:
            raise ValueError(
                f"ParetoGate: expected trials of study {self._study_name}, got one of {got}. Create a gate for each "
                "study."
            )

    def _warn_of_missing(self, complete: Sequence[FrozenTrial]) -> None:
        for name in self.gate.objectives[len(self.gate.goals) :]:
            if all(
                recorded_number(trial, name) is None and not is_counted(trial, self.space, name) for trial in complete
            ):
                warn_caller(
                    f"ParetoGate: expected completed trials with their real {name} in the attribute of that name, got "
                    f"none among {len(complete)}. Without it, a trial does not join the front, and no trial is pruned "
                    f"as dominated. Set it in the objective: trial.set_user_attr({name!r}, value)."
                )
