"""The Pareto gate and the surrogate's proposals for a pymoo problem of the user.

N rows, K columns of F, G or H, which are pymoo's objectives, inequality and equality constraints.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray
from pymoo.core.algorithm import Algorithm
from pymoo.core.population import Population
from pymoo.core.problem import LoopedElementwiseEvaluation, Problem
from typing_extensions import TypeVar

from converters.tables.counts import COUNTS, named_counts
from nasrlm.arguments import check_kind, checked_whole
from nasrlm.arrays import FloatArray
from nasrlm.callers import warn_caller
from nasrlm.objective import Goal, Objective, from_losses
from spaces import ArchitectureError, SearchSpace
from spaces.shown import shown
from studies.advisor import IMPOSSIBLE, Advisor
from studies.constraints import hard, violations
from studies.gate import Decision, Gate
from studies.guide import RISK, Guide, Risk
from studies.ledger import Entry
from studies.proposal import hashed_seed
from studies.surrogates.learning import Adapt
from studies.surrogates.memory import SamplingPredictor

A = TypeVar("A", bound=Hashable, default=Any)  # unknown if the space is given by name

Answer = dict[str, FloatArray]  # one row of F, G and H, or several

EQUALITY = 1e-4  # pymoo's tolerance for H
MARGIN = 1e-6  # relative distance of a pruned row's values from the worst ones


class GatedProblem(Problem, Generic[A]):  # type: ignore[misc]
    """A problem that evaluates only those rows of another one that may improve the front, and no network twice.

    pymoo cannot mark a row as pruned, so a pruned row gets values a little worse than any seen so far, and every
    algorithm ranks it last. The same holds for rows that form no architecture, and for those with a NaN among their
    results or an infinite objective. Before the first result, nothing is pruned. The front consists of the rows that
    meet the problem's own constraints. A copy, such as that in a copied algorithm, collects its own results.

    A row whose F is NaN has no result. The gate learns what such rows have in common, and proposes fewer networks like
    them. If an elementwise problem raises, the results of the rows before are kept and not evaluated again.

    All rows of one architecture get the values of the first one. Variables that ``to_architecture`` ignores must
    therefore not change the results.

    Args:
        problem: minimises the goals' losses; maximised objectives are negated.
        space: a search space or its name.
        goals: one for each of the problem's objectives, in the same order, such as ``max:accuracy@cifar10``.
        predictor: a ``nasrlm.Predictor``, whose ``of_space`` predicts; if None, that of the released checkpoint, loaded
            once per process.
        to_architecture: converts a row of X to its architecture; if None, a row is a genotype of whole numbers.
        to_row: the inverse, for ``propose``; ``space.encode`` if None.
        to_text: converts an architecture to the text that the predictor reads; ``nasrlm.to_measured_text`` if None.
        constraints: on the goals' objectives, or on counts, such as ``params@onnx<=1e6``. A hard one is passed to the
            algorithm as an inequality constraint, after the problem's own; a soft one, such as
            ``soft:latency_ms@pixel3<=10``, only affects the gate.
        risk: accepted probability, in (0, 0.5), that an architecture is better than the gate assumes, divided equally
            among the objectives; or one for each objective by name, as ``{"latency_ms@pixel3": 0.2}``.
        best: best conceivable values of some objectives; see ``studies.gate.Gate``.

    Attributes:
        decisions: the gate's decision about every row that it checked, in order.

    Raises:
        ValueError: ``problem`` is no Problem, the space is unknown, the numbers of goals and of the problem's
            objectives differ, a constraint is on anything else, or ``to_architecture`` is missing although rows are not
            genotypes.

    Example:
        >>> gated = GatedProblem(problem, "nasbench201", goals)  # doctest: +SKIP
        >>> callback = gated.adapt_callback(every=10)  # doctest: +SKIP
        >>> algorithm = NSGA2(pop_size=20, sampling=gated.propose(20))  # doctest: +SKIP
        >>> minimize(gated, algorithm, ("n_gen", 10), callback=callback)  # doctest: +SKIP
    """

    def __init__(
        self,
        problem: Problem,
        space: SearchSpace[A] | str,
        goals: Sequence[str],
        predictor: SamplingPredictor | None = None,
        *,
        to_architecture: Callable[[Any], A] | None = None,
        to_row: Callable[[A], Any] | None = None,
        to_text: Callable[[A], str] | None = None,
        constraints: Sequence[str] = (),
        risk: Risk = RISK,
        best: Mapping[str, float] | None = None,
    ) -> None:
        check_kind("GatedProblem", problem, Problem)
        mixed = getattr(problem, "vars", None)  # mixed variables have their own bounds
        numbers = {} if mixed else {"n_var": problem.n_var, "xl": problem.xl, "xu": problem.xu, "vtype": problem.vtype}
        self._advisor = Advisor(
            space, goals, predictor=predictor, to_text=to_text, constraints=constraints, risk=risk, best=best
        )
        self._counted = self.gate.objectives[len(goals) :]
        if not set(COUNTS).issuperset(self._counted) or len(goals) != problem.n_obj:
            raise ValueError(
                f"GatedProblem: expected {problem.n_obj} goals and constraints on them or on counts, got "
                f"{', '.join(map(str, (*self.gate.goals, *self.gate.constraints)))}."
            )
        genes = len(self._advisor.space.gene_sizes)
        if to_architecture is None and (mixed or problem.n_var != genes):
            raise ValueError(
                f"GatedProblem: expected rows of the {genes} genes of {self._advisor.space.name}, got "
                f"{'mixed variables' if mixed else f'{problem.n_var} variables'}. Pass to_architecture and to_row."
            )
        self._hard = hard(self.gate.constraints)
        super().__init__(
            n_obj=problem.n_obj,
            n_ieq_constr=problem.n_ieq_constr + len(self._hard),
            n_eq_constr=problem.n_eq_constr,
            requires_kwargs=problem.requires_kwargs,
            vars=mixed,
            **numbers,
        )
        self.problem = problem
        self.space: SearchSpace[A] = self._advisor.space
        self.decisions: list[Decision] = []
        self._to_architecture = to_architecture or self._decode
        self._to_row = to_row or self.space.encode
        self._answers: dict[str, Answer] = {}  # by architecture key
        # The first row of each architecture, to warn of a second one. None after the warning, and for genotypes, where
        # genes without effect may differ.
        self._rows: dict[A, Any] | None = {} if to_architecture else None
        self._evaluated: list[Entry] = []

    def __init_subclass__(cls, **options: Any) -> None:
        # pymoo's StaticProblem and other wrappers derive from every class of a problem; typing refuses a plain Generic.
        if "__orig_bases__" not in vars(cls):
            cls.__orig_bases__ = tuple(base for base in cls.__bases__ if base is not Generic)
        super().__init_subclass__(**options)

    @property
    def gate(self) -> Gate:
        """The gate, with its front, levels and objectives."""
        return self._advisor.gate

    def propose(self, count: int, *, guide: Guide | None = None, seed: int = 0) -> NDArray[Any] | Population:
        """Return the rows with the largest expected hypervolume improvement, none evaluated before.

        Returns:
            Up to ``count`` rows, best first, as an algorithm's ``sampling`` or to be evaluated and passed to ``tell``;
            a population for mixed variables, because pymoo accepts nothing else. If every candidate is pruned or was
            evaluated before, there are no rows, and a warning is given.

        Raises:
            ValueError: ``count`` is less than 1, ``seed`` is negative or no integer, or there is no front yet and the
                gate's constraints forbid every candidate.
        """
        seed = hashed_seed(checked_whole("gate: seed", seed, 0), len(self._evaluated))
        chosen, pruned = self._advisor.propose(self._evaluated, count, guide=guide, seed=seed)
        if not chosen:
            self._refuse_unmet(pruned)
            warn_caller("GatedProblem: nothing to propose: all candidates are pruned or already evaluated.")
            return Population.new() if self._is_mixed else np.empty((0, self.n_var))
        return self._as_rows([self.space.parse(entry.architecture) for entry in chosen])

    @property
    def _is_mixed(self) -> bool:
        """Whether rows are dictionaries of pymoo's mixed variables."""
        return bool(getattr(self, "vars", None))

    def _as_rows(self, architectures: Sequence[A]) -> NDArray[Any] | Population:
        rows = np.array([self._to_row(architecture) for architecture in architectures])
        of_names = isinstance(rows[0], dict)
        if of_names != self._is_mixed or not (of_names or rows.shape[1:] == (self.n_var,)):
            raise ValueError(
                f"GatedProblem: expected {'values by name' if self._is_mixed else f'{self.n_var} numbers'} per row, "
                f"got {shown(rows[0])} for {self.space.format(architectures[0])}. Pass to_row, the inverse of "
                "to_architecture."
            )
        for row, architecture in zip(rows, architectures, strict=True):
            back = self._architecture(row)
            if back is None or self.space.architecture_key(back) != self.space.architecture_key(architecture):
                warn_caller(
                    f"GatedProblem: expected the row of the proposed {self.space.format(architecture)} to be of its "
                    f"network, got {'none' if back is None else self.space.format(back)} from {shown(row)}. Let to_row "
                    "be the inverse of to_architecture."
                )
                break
        return Population.new(X=rows) if rows.dtype == object else rows

    def _refuse_unmet(self, pruned: Sequence[Entry]) -> None:
        """Raise if there is no front yet and the gate's constraints prune every candidate.

        Otherwise an algorithm that starts without rows would fail in pymoo with an error that does not mention the
        constraint.
        """
        if pruned and not self.gate.names:
            raise ValueError(
                f"GatedProblem: expected an architecture of {self.space.name} that may meet the constraints, got none "
                f"among {len(pruned):,}: {pruned[0].architecture} is pruned because {pruned[0].reason}. Loosen the "
                "constraints."
            )

    def adapt_callback(
        self, every: int = 10, *, adapt: Adapt | None = None, graphs: bool = False, progress: bool = False
    ) -> Callable[[Algorithm], None]:
        """Return a callback for ``minimize`` with which the model learns after a generation from the results so far.

        Objectives that the model does not know, such as the latency of your own device, are learned too; until then
        only rows are pruned that break hard constraints on what is known, such as ``params@onnx``.

        Args:
            every: evaluated rows after which the model learns again.
            adapt: returns a better predictor, given a table of results with columns space, architecture and one per
                objective; ``studies.surrogates.process_adapter.ProcessAdapter`` if None.
            graphs, progress: as of ``nasrlm.optuna.ParetoGate.adapt_callback``.

        Raises:
            ValueError: ``every`` is not a whole number of 1 or more; or the space is too large for ``graphs``, or
                ``adapt`` is given too.
        """
        self._advisor.learn_every(every, adapt, graphs=graphs, progress=progress)
        return self._learn_from_results

    def _learn_from_results(self, algorithm: Algorithm) -> None:
        self._advisor.learn(self._evaluated)

    def _decode(self, row: Any) -> A:
        genes = np.asarray(row, dtype=np.float64)
        if not (np.isfinite(genes) & (genes == np.rint(genes))).all():
            raise ValueError(
                f"GatedProblem: expected whole numbers in rows of genes, got {shown(row)}. Pass to_architecture, or "
                "give the algorithm's operators repair=RoundingRepair()."
            )
        return self.space.decode(genes.astype(int).tolist())

    def _evaluate(self, X: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        X = np.asarray(X)  # pymoo passes on a list of rows
        architectures = {row: made for row, genes in enumerate(X) if (made := self._architecture(genes)) is not None}
        self._warn_of_ignored(X, architectures)
        keys = {row: self.space.architecture_key(architecture) for row, architecture in architectures.items()}
        new = {key: row for row, key in reversed(keys.items()) if key not in self._answers}
        rows = self._kept(sorted(new.values()), architectures)
        counted = named_counts(self.space, [architectures[row] for row in rows], self._counted)
        counts = dict(zip(rows, counted, strict=True))  # before evaluating, whose results an error would lose
        evaluated: dict[int, Answer] = {}
        try:
            for together in self._evaluated_together(rows):
                found = self.problem.evaluate(X[together], *args, return_as_dictionary=True, **kwargs)
                found = self._bounded(found, [counts[row] for row in together])
                names = [name for name in ("F", "G", "H") if name in found]
                evaluated |= {row: {name: found[name][at] for name in names} for at, row in enumerate(together)}
        finally:  # also keeps the results of the rows before one that raises
            self._answers |= {keys[row]: answer for row, answer in evaluated.items()}
            self._learn([(architectures[row], counts[row], answer) for row, answer in evaluated.items()])
        answers = list(self._answers.values())
        if not answers:
            raise ValueError(
                f"GatedProblem: expected an architecture of {self.space.name} among the first rows, got none in "
                f"{len(X)}. Use `propose(count)` as the algorithm's sampling."
            )
        told = [_if_whole(self._answers.get(keys.get(row, ""), {})) for row in range(len(X))]
        for name in answers[0]:
            worst = _beyond(name, np.array([answer[name] for answer in answers]))
            out[name] = np.array([answer.get(name, worst) for answer in told])

    def _evaluated_together(self, rows: list[int]) -> list[list[int]]:
        """Group rows into calls of the problem: one row per call if it loops over them, otherwise all in one call.

        So if a row of an elementwise problem fails, the results of the rows before it are kept.
        """
        problem = self.problem
        is_looped = problem.elementwise and isinstance(problem.elementwise_runner, LoopedElementwiseEvaluation)
        return [[row] for row in rows] if is_looped else [rows] * bool(rows)

    def _warn_of_ignored(self, X: Any, architectures: Mapping[int, A]) -> None:
        """Warn once if different rows mean the same architecture; real rows are exempt, because many problems round."""
        if X.dtype.kind == "f":
            return
        for row, architecture in architectures.items():
            if self._rows is None:
                return
            first = self._rows.setdefault(architecture, copy(X[row]))
            if np.any(first != X[row]):
                warn_caller(
                    f"GatedProblem: expected one row per architecture, got {shown(first)} and {shown(X[row])} for "
                    f"{self.space.format(architecture)}. The second gets the values of the first."
                )
                self._rows = None

    def _bounded(self, found: Answer, counts: Sequence[FloatArray]) -> Answer:
        """Return F, G and H with an additional column of G for each hard constraint of the gate."""
        own = found.get("G", np.empty((len(counts), 0)))
        beyond = violations(self.gate.objectives, self._hard, self._results(found["F"], counts))
        return {**found, "G": np.hstack([own, beyond])}

    def _results(self, losses: FloatArray, counts: Sequence[FloatArray]) -> FloatArray:
        """Return (N, M) results of the gate's objectives: the goals' by their losses, then the counts of each row."""
        return np.hstack([from_losses(self.gate.goals, losses), counts])

    def _architecture(self, row: Any) -> A | None:
        try:
            architecture = self._to_architecture(row)
        except ArchitectureError:
            return None
        if architecture is not None:
            self._check_architecture(architecture)
        return architecture

    def _check_architecture(self, architecture: A) -> None:
        try:
            self.space.format(architecture)
        except (AttributeError, TypeError, ValueError) as e:
            raise ValueError(
                f"GatedProblem: expected to_architecture to return an architecture of {self.space.name}, got "
                f"{architecture!r:.60}. Convert a notation with `gated.space.parse`, integers with "
                "`gated.space.decode`."
            ) from e

    def _kept(self, rows: list[int], architectures: Mapping[int, A]) -> list[int]:
        """Return the rows that the gate keeps; all of them before the first result."""
        if not self._answers:
            return rows
        decisions = self._advisor.check([architectures[row] for row in rows])
        self.decisions += decisions
        return [row for row, decision in zip(rows, decisions, strict=True) if decision.kept]

    def _learn(self, evaluated: Sequence[tuple[A, FloatArray, Answer]]) -> None:
        """Note evaluated architectures with their counts and answers."""
        if not evaluated:
            return
        architectures, counts, answers = zip(*evaluated, strict=True)
        found = {name: np.array([answer[name] for answer in answers]) for name in answers[0]}
        told = self._results(np.where(np.isfinite(found["F"]), found["F"], np.nan), counts)
        if not self._evaluated and (wrong := _wrong_signs(self.gate.goals, told[:, : self.n_obj])):
            self._advisor.warn_once(
                IMPOSSIBLE,
                f"GatedProblem: expected {'; '.join(wrong)} in F of the first rows. F holds maximised objectives "
                "negated, and minimised ones unchanged.",
            )
        names = [f"evaluation {len(self._evaluated) + index}" for index in range(len(told))]
        results = np.array([self._advisor.possible(row, name) for row, name in zip(told.tolist(), names, strict=True)])
        results[np.isnan(results[:, : self.n_obj]).all(axis=1)] = np.nan  # counts alone are no result to learn from
        feasible = _meets_constraints(found)
        self.gate.add([names[index] for index in np.flatnonzero(feasible)], results[feasible])
        answered = zip(architectures, results, feasible.tolist(), strict=True)
        self._evaluated += [self._advisor.entry(a, real, evaluated=True, feasible=flag) for a, real, flag in answered]
        self._advisor.warn_of_units(self._evaluated)


def _wrong_signs(goals: Sequence[Goal], results: FloatArray) -> list[str]:
    """Describe the goals whose results are all impossible, but would be possible with the opposite sign."""
    wrong = []
    for goal, values in zip(goals, results.T, strict=True):
        objective, known = Objective.parse(goal.objective), values[~np.isnan(values)]
        low, high = objective.bounds
        if len(known) and ((known < low) & (-known <= high)).all():
            wrong.append(f"{objective.range_in_words} for {goal}, got {known[0]:g}")
    return wrong


def _if_whole(answer: Answer) -> Answer:
    """Return one row of F, G and H, or {} if a number is missing, because algorithms would rank it by the others."""
    lacks = np.isinf(answer.get("F", ())).any() or any(np.isnan(values).any() for values in answer.values())
    return {} if lacks else answer


def _meets_constraints(found: Answer) -> NDArray[np.bool_]:
    """Return (N,) flags of the rows that meet all constraints G and H within pymoo's tolerance; NaN meets none."""
    met = np.ones(len(found["F"]), dtype=np.bool_)
    if "G" in found:
        met &= (found["G"] <= 0).all(axis=1)
    if "H" in found:
        met &= (np.abs(found["H"]) <= EQUALITY).all(axis=1)
    return met


def _beyond(name: str, answers: FloatArray) -> FloatArray:
    """Return (K,) values a little worse than all results (N, K); infinite if a column has only NaN.

    For equality constraints H, worse means farther from 0.
    """
    values = np.abs(answers) if name == "H" else answers
    worst = np.fmax.reduce(np.where(np.isinf(values), np.nan, values), axis=0)
    return np.where(np.isnan(worst), np.inf, worst + MARGIN * (1 + np.abs(worst)))
