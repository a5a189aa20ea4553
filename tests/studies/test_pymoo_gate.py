"""The gate around a pymoo problem of the user's own."""

import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.mixed import MixedVariableGA
from pymoo.core.problem import ElementwiseProblem, Problem
from pymoo.core.variable import Choice
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM
from pymoo.operators.repair.rounding import RoundingRepair
from pymoo.operators.sampling.rnd import IntegerRandomSampling
from pymoo.operators.survival.rank_and_crowding import RankAndCrowding
from pymoo.optimize import minimize

from nasrlm.pymoo import GatedProblem, Guide
from tests.studies.pymoo_scenes import GOALS, SPACE_ROWS, Bench, Tolerant, make_gated, to_architecture
from tests.studies.scenes import SPACE, Row, ToyPredictor, true_values


@pytest.mark.parametrize("num_constraints", [0, 1])
def test_only_what_may_move_the_front_is_evaluated(num_constraints: int) -> None:
    bench = Bench(num_constraints)
    gated = make_gated(bench, Tolerant(sigma=0.1))
    algorithm = NSGA2(pop_size=20, sampling=IntegerRandomSampling())
    result = minimize(gated, algorithm, ("n_gen", 5), seed=1)
    pruned = [decision for decision in gated.decisions if not decision.kept]
    assert len(pruned) > 5
    kept = len(gated.decisions) - len(pruned)
    assert kept < len(bench.rows) <= 20 + kept  # the first population is not asked about
    assert all("dominated by evaluation " in decision.reason for decision in pruned)
    evaluated = np.array([true_values(Row(row)) for row in bench.rows])
    for accuracy, latency in result.F * [-1, 1]:  # what is found was evaluated, and never a stand-in
        assert (np.isclose(evaluated[:, 0], accuracy) & np.isclose(evaluated[:, 1], latency)).any()


def test_rows_that_are_no_architecture_rank_last() -> None:
    bench = Bench()
    gated = GatedProblem(bench, SPACE, GOALS, ToyPredictor(sigma=0.1), to_text=SPACE.format)
    answer = gated.evaluate(np.array([[4, 3, 1, 3], [2, 2, 2, 0], [1, 0, 0, 0]]), return_as_dictionary=True)
    assert bench.rows == [(4, 3, 1, 3), (1, 0, 0, 0)]
    worst = answer["F"][[0, 2]].max(axis=0)
    assert (answer["F"][1] > worst).all()
    np.testing.assert_allclose(answer["F"][1], worst, rtol=1e-5)
    with pytest.raises(ValueError, match="expected an architecture of toy among the first rows, got none in 1"):
        GatedProblem(bench, SPACE, GOALS, ToyPredictor(), to_text=SPACE.format).evaluate(np.array([[2, 2, 2, 0]]))


def test_a_notation_in_place_of_an_architecture_is_refused() -> None:
    gated = make_gated(Bench(), ToyPredictor(), to_architecture=lambda row: "4-3-1-3")
    with pytest.raises(ValueError, match=r"expected to_architecture to return an arch.* of toy, got '4-3-1-3'\. Conv"):
        gated.evaluate(np.array([[4, 3, 1, 3]]))


def test_a_text_that_is_none_is_refused() -> None:
    gated = make_gated(Bench(), ToyPredictor(), to_text=lambda row: None)
    gated.evaluate(np.array([[4, 3, 1, 3]]))  # before the first result, nothing is predicted
    with pytest.raises(ValueError, match=r"to_text: expected a function that returns a text, got None from it\."):
        gated.evaluate(np.array([[1, 0, 0, 0]]))


def test_pruned_rows_rank_last() -> None:
    gated = make_gated(Bench(), Tolerant(sigma=0.1))
    first = gated.evaluate(np.array([[4, 3, 1, 3], [1, 0, 0, 0]]), return_as_dictionary=True)
    answer = gated.evaluate(np.array([[4, 4, 3, 3], [2, 1, 0, 0]]), return_as_dictionary=True)
    assert [decision.kept for decision in gated.decisions] == [False, True]
    worst = np.vstack([first["F"], answer["F"][1:]]).max(axis=0)
    assert (answer["F"][0] > worst).all()
    np.testing.assert_allclose(answer["F"][0], worst, rtol=1e-5)
    np.testing.assert_allclose(answer["G"][0, 0], max(first["G"].max(), answer["G"][1, 0]), rtol=1e-5)
    everything = gated.evaluate(np.array([[4, 4, 3, 3]]), return_as_dictionary=True)
    np.testing.assert_array_equal(everything["F"], answer["F"][:1])


class Answering(Problem):  # type: ignore[misc]
    """Answers with the given F, and G or H, row after row."""

    def __init__(self, F: list[list[float]], **constraints: list[float]) -> None:
        kinds = {f"n_{'ieq' if name == 'G' else 'eq'}_constr": 1 for name in constraints}
        super().__init__(n_var=4, n_obj=2, xl=0, xu=np.array([4, 4, 4, 3]), vtype=int, **kinds)
        self.F, self.constraints = F, constraints

    def _evaluate(self, X: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        out["F"] = np.array([self.F.pop(0) for _ in X])
        for name, values in self.constraints.items():
            out[name] = np.array([[values.pop(0)] for _ in X])


@pytest.mark.filterwarnings("ignore:gate. expected percent")
@pytest.mark.parametrize("constraints", [{"G": [1.0, -1.0]}, {"H": [0.5, 0.0]}])
def test_rows_that_break_the_users_constraints_prune_nothing(constraints: dict[str, list[float]]) -> None:
    gated = make_gated(Answering([[-200.0, 0.0], [-70.0, 9.0]], **constraints), Tolerant(sigma=0.1))
    for row in ([4, 3, 1, 3], [1, 0, 0, 0]):
        gated.evaluate(np.array([row]), return_as_dictionary=True)
    assert [decision.kept for decision in gated.decisions] == [True]
    assert gated.gate.names == ("evaluation 1",)
    rows = gated.propose(2, guide=Guide(generations=2, samples=4))
    assert len(rows)


def test_rows_without_finite_results_rank_last_and_prune_nothing() -> None:
    gated = make_gated(Answering([[np.nan, 1.0], [-70.0, 9.0], [-np.inf, 0.0]], H=[0.0, -3.0, 0.0]), Tolerant())
    rows = np.array([[4, 3, 1, 3], [1, 0, 0, 0], [2, 1, 0, 0]])
    answer = gated.evaluate(rows, return_as_dictionary=True)
    np.testing.assert_allclose(answer["F"][[0, 2]], [[-70.0, 9.0]] * 2, rtol=1e-4)
    assert (answer["F"][[0, 2]] > answer["F"][1]).all()
    assert gated.gate.names == ()  # the second breaks its constraint, the others have no numbers


@pytest.mark.parametrize("name", ["G", "H"])
def test_rows_with_an_unknown_constraint_rank_last_and_prune_nothing(name: str) -> None:
    gated = make_gated(Answering([[-90.0, 1.0], [-70.0, 9.0]], **{name: [np.nan, 0.0]}), Tolerant())
    answer = gated.evaluate(np.array([[4, 3, 1, 3], [1, 0, 0, 0]]), return_as_dictionary=True)
    assert (answer["F"][0] > answer["F"][1]).all()
    assert answer[name][0, 0] > 0
    assert gated.gate.names == ("evaluation 1",)


@pytest.mark.parametrize("num_constraints", [0, 1])
def test_the_algorithm_is_told_of_hard_constraints(num_constraints: int) -> None:
    bounds = ["latency_ms@toy<=9", "soft:latency_ms@toy<=4", "accuracy@toy>=70"]
    gated = make_gated(Bench(num_constraints), Tolerant(sigma=0.1), constraints=bounds)
    assert gated.n_ieq_constr == num_constraints + 2
    answer = gated.evaluate(np.array([[4, 3, 1, 3], [1, 0, 0, 0]]), return_as_dictionary=True)
    accuracy, latency = (answer["F"] * [-1, 1]).T
    np.testing.assert_allclose(answer["G"][:, -2:], np.column_stack([latency / 9 - 1, 1 - accuracy / 70]))
    sampling = np.array([list(row) for row in SPACE_ROWS[::6]])
    result = minimize(gated, NSGA2(pop_size=20, sampling=sampling), ("n_gen", 5), seed=1)
    values = result.F * [-1, 1]
    assert (values[:, 0] >= 70).all()
    assert (values[:, 1] <= 9).all()
    assert (values[:, 1] > 4).any()
    assert any("outside latency_ms@toy<=9" in decision.reason for decision in gated.decisions)


def test_what_is_not_known_meets_no_constraint() -> None:
    bench = Answering([[np.nan, 1.0], [-70.0, 9.0]])
    gated = make_gated(bench, Tolerant(), constraints=["accuracy@toy>=80"])
    answer = gated.evaluate(np.array([[4, 3, 1, 3], [1, 0, 0, 0]]), return_as_dictionary=True)
    np.testing.assert_allclose(answer["G"][:, 0], 0.125, atol=1e-4)
    assert gated.gate.names == ()


def test_goals_and_constraints_have_to_fit() -> None:
    for options in ({"goals": GOALS[:1]}, {"goals": GOALS, "constraints": ["energy_mj@toy<=3"]}):
        with pytest.raises(ValueError, match="GatedProblem: expected 2 goals and constraints on them or on counts"):
            make_gated(Bench(), Tolerant(), **options)  # type: ignore[arg-type]


def test_twins_share_an_answer() -> None:
    bench = Bench()
    gated = make_gated(bench, Tolerant(sigma=50.0))
    rows = np.array([[0, 1, 2, 3], [2, 1, 0, 3], [0, 1, 3, 3], [0, 1, 2, 3]])
    first = gated.evaluate(rows, return_as_dictionary=True)
    again = gated.evaluate(rows, return_as_dictionary=True)
    assert bench.rows == [(0, 1, 2, 3), (0, 1, 3, 3)]
    for name in ("F", "G"):
        np.testing.assert_array_equal(first[name][[1, 3]], first[name][[0, 0]])
        np.testing.assert_array_equal(again[name], first[name])


def test_proposals_are_rows_of_new_networks() -> None:
    bench = Bench(num_constraints=0)
    gated = make_gated(bench, ToyPredictor(sigma=0.5), to_architecture=None)
    guide = Guide(generations=2, samples=4)
    for _ in range(3):
        rows = gated.propose(4, guide=guide)
        assert rows.shape == (4, 4)
        gated.evaluate(rows, return_as_dictionary=True)
    assert len(bench.rows) == 12
    assert len({SPACE.architecture_key(Row(row)) for row in bench.rows}) == 12


def test_where_nothing_is_left_nothing_is_proposed() -> None:
    gated = make_gated(Bench(num_constraints=0), ToyPredictor(), to_architecture=None)
    gated.evaluate(np.array(SPACE_ROWS), return_as_dictionary=True)
    with pytest.warns(UserWarning, match="GatedProblem: nothing to propose"):
        assert gated.propose(4, guide=Guide(generations=1)).shape == (0, 4)


def test_a_constraint_that_nothing_meets_is_told() -> None:
    gated = make_gated(Bench(num_constraints=0), Tolerant(), constraints=["latency_ms@toy<=9", "accuracy@toy>=99"])
    message = (
        r"expected an architecture of toy that may meet the constraints, got none among [0-9]+: .* is pruned because "
    )
    with pytest.raises(ValueError, match=message + r"accuracy@toy is .* at best, outside accuracy@toy>=99"):
        gated.propose(4, guide=Guide(generations=1))


def test_the_model_learns_after_generations() -> None:
    sizes: list[int] = []

    def adapt(table: Any) -> ToyPredictor:
        sizes.append(len(table))
        return Tolerant(sigma=0.1)

    gated = make_gated(Bench(), ToyPredictor(objectives=("accuracy@toy",)))
    callback = gated.adapt_callback(10, adapt=adapt)
    assert gated.propose(6).shape == (6, 4)  # at random
    sampling = np.array([list(row) for row in SPACE_ROWS[:20]])
    minimize(gated, NSGA2(pop_size=20, sampling=sampling), ("n_gen", 3), seed=1, callback=callback)
    assert sizes[0] == 20
    assert all(size % 10 == 0 for size in sizes)
    assert any(np.isfinite(decision.values).all() for decision in gated.decisions)


class Mixed(ElementwiseProblem):  # type: ignore[misc]
    """The toy space as pymoo's mixed variables."""

    def __init__(self) -> None:
        sizes = zip(("a", "b", "c", "d"), SPACE.gene_sizes, strict=True)
        super().__init__(vars={name: Choice(options=[*range(size)]) for name, size in sizes}, n_obj=2)

    def _evaluate(self, X: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        accuracy, latency, _ = true_values(of_choices(X))
        out["F"] = [-accuracy, latency]


def of_choices(choices: Any) -> Row:
    return SPACE.decode([int(choices[name]) for name in ("a", "b", "c", "d")])


def test_mixed_variables_are_gated_and_the_history_can_be_saved() -> None:
    gated = make_gated(Mixed(), ToyPredictor(sigma=0.1), to_architecture=of_choices)
    result = minimize(
        gated, MixedVariableGA(pop_size=10, survival=RankAndCrowding()), ("n_gen", 4), seed=1, save_history=True
    )
    assert len(result.history) == 4
    fronts = [len(algorithm.problem.decisions) for algorithm in result.history]
    assert fronts == sorted(set(fronts))
    assert result.history[0].problem.gate.names != gated.gate.names  # as it was then
    assert any(not decision.kept for decision in gated.decisions)


@pytest.mark.parametrize(
    "copied",
    [pytest.param(lambda made: pickle.loads(pickle.dumps(made)), id="pickle"), pytest.param(deepcopy, id="deepcopy")],
)
def test_a_copied_algorithm_goes_on_by_itself(copied: Callable[[Any], Any]) -> None:
    gated = make_gated(Bench(), ToyPredictor(sigma=0.5), to_architecture=None)
    whole = RoundingRepair()
    algorithm = NSGA2(
        pop_size=10, sampling=IntegerRandomSampling(), crossover=SBX(repair=whole), mutation=PM(repair=whole)
    )
    algorithm.setup(gated, seed=1, termination=("n_gen", 6), callback=gated.adapt_callback(every=5))
    for _ in range(3):
        algorithm.next()
    other = copied(algorithm)
    before = gated.gate.names, len(gated.decisions)
    assert other.problem.gate.names == before[0]
    while other.has_next():
        other.next()
    assert (gated.gate.names, len(gated.decisions)) == before
    assert len(other.problem.decisions) > before[1]
    while algorithm.has_next():
        algorithm.next()
    np.testing.assert_array_equal(other.pop.get("F"), algorithm.pop.get("F"))
    assert other.problem.gate.names == gated.gate.names


def test_rows_between_two_genotypes_are_refused() -> None:
    gated = make_gated(Bench(), ToyPredictor(), to_architecture=None)
    for gene in (2.6, np.nan):
        with pytest.raises(ValueError, match=f"expected whole numbers in rows of genes, got array.*{gene}.*Rounding"):
            gated.evaluate(np.array([[3.0, 2.0, 1.0, 0.0], [3.0, gene, 1.0, 0.0]]))
    assert len(gated.evaluate(np.array([[3.0, 2.0, 1.0, 0.0]]), return_as_dictionary=True)["F"]) == 1


def test_rows_that_are_no_genotypes_need_a_translation() -> None:
    with pytest.raises(ValueError, match=r"the 4 genes of toy, got mixed variables\. Pass to_architecture and to_row"):
        make_gated(Mixed(), ToyPredictor(), to_architecture=None)
    longer = Bench()
    longer.n_var, longer.xu = 5, np.array([4, 4, 4, 3, 9])
    with pytest.raises(ValueError, match="the 4 genes of toy, got 5 variables"):
        make_gated(longer, ToyPredictor(), to_architecture=None)
    for problem, of_row, expected in (
        (longer, lambda row: to_architecture(row[:4]), "5 numbers per row, got array"),
        (Mixed(), of_choices, "values by name per row, got array"),
    ):
        gated = make_gated(problem, ToyPredictor(sigma=0.1), to_architecture=of_row)
        with pytest.raises(ValueError, match=expected):
            gated.propose(3, guide=Guide(generations=2, samples=4))


def test_proposed_rows_of_another_network_are_told() -> None:
    gated = make_gated(Bench(), ToyPredictor(sigma=0.1), to_row=lambda row: [row.genes[3], *row.genes[:3]])
    with pytest.warns(UserWarning, match="the row of the proposed .* to be of its network, got .*inverse"):
        gated.propose(3, guide=Guide(generations=2, samples=4))


def test_variables_beside_the_architecture_are_told_once() -> None:
    class Trained(Bench):
        def __init__(self) -> None:
            super().__init__(num_constraints=0)
            self.n_var, self.xu = 5, np.array([4, 4, 4, 3, 9])

    gated = make_gated(Trained(), ToyPredictor(), to_architecture=lambda row: to_architecture(row[:4]))
    rows = np.array([[3, 2, 1, 0, 5], [3, 2, 1, 0, 6], [3, 2, 1, 0, 7]])
    with pytest.warns(UserWarning, match=r"got array.*5.* and array.*6.* for 3-2-1-0. The second gets") as told:
        gated.evaluate(rows)
    assert len(told) == 1


def test_learning_that_cannot_be_meant_is_refused() -> None:
    for every, expected in ((0, "1 or more"), (10.0, "a whole number")):
        with pytest.raises(ValueError, match=f"adapt_callback: every: expected {expected}, got {every}"):
            make_gated(Bench(), ToyPredictor()).adapt_callback(every=every)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="adapt_callback: graphs: expected True or False, got 'no'"):
        make_gated(Bench(), ToyPredictor()).adapt_callback(graphs="no")  # type: ignore[arg-type]


def test_proposals_of_mixed_variables_are_a_sampling() -> None:
    def to_choices(row: Row) -> dict[str, int]:
        return dict(zip(("a", "b", "c", "d"), row.genes, strict=True))

    gated = make_gated(Mixed(), ToyPredictor(sigma=0.1), to_architecture=of_choices, to_row=to_choices)
    sampling = gated.propose(6, guide=Guide(generations=2, samples=4))
    algorithm = MixedVariableGA(pop_size=6, sampling=sampling, survival=RankAndCrowding())
    assert len(minimize(gated, algorithm, ("n_gen", 2), seed=1).F)


def test_a_result_that_cannot_be_leads_no_front() -> None:
    class Failing(Bench):
        def _evaluate(self, X: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
            super()._evaluate(X, out)
            out["F"][1, 1] = -1.0

    gated = make_gated(Failing(), Tolerant(sigma=0.1))
    words = r"^gate: expected .* for latency_ms@toy, got -1 from evaluation 1\. The gate ignores such results\.$"
    with pytest.warns(UserWarning, match=words):
        gated.evaluate(np.array(SPACE_ROWS[:4]))
    assert "evaluation 1" not in gated.gate.names
    assert gated.gate.names


@pytest.mark.filterwarnings("error")
def test_rows_before_one_that_raises_are_not_evaluated_again() -> None:
    asked: list[tuple[int, ...]] = []

    class Breaking(ElementwiseProblem):  # type: ignore[misc]
        def _evaluate(self, x: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
            asked.append(tuple(int(gene) for gene in x))
            if len(asked) == 3:
                raise OSError("the board is gone")
            out["F"] = true_values(Row(asked[-1]))[:2] * np.array([-1, 1])

    bounds = {"xl": 0, "xu": np.array([4, 4, 4, 3]), "vtype": int}
    gated = make_gated(Breaking(n_var=4, n_obj=2, **bounds), Tolerant(sigma=0.1))
    rows = np.array(SPACE_ROWS[:5])
    with pytest.raises(OSError, match="the board is gone"):
        gated.evaluate(rows)
    assert gated.evaluate(rows).shape == (5, 2)
    assert asked[:3] == SPACE_ROWS[:3]
    assert set(asked[3:]).isdisjoint(SPACE_ROWS[:2])


@pytest.mark.parametrize("is_negated", [True, False])
def test_signs_are_judged_by_all_first_rows_of_an_elementwise_problem(
    is_negated: bool, recwarn: pytest.WarningsRecorder
) -> None:
    class Failing(ElementwiseProblem):  # type: ignore[misc]
        def _evaluate(self, x: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
            accuracy, latency, _ = true_values(Row(tuple(int(gene) for gene in x)))
            is_first = (x == rows[0]).all()
            out["F"] = np.array([-accuracy if is_negated else accuracy, -1.0 if is_first else latency])

    rows = np.array(SPACE_ROWS[:4])
    bounds = {"xl": 0, "xu": np.array([4, 4, 4, 3]), "vtype": int}
    make_gated(Failing(n_var=4, n_obj=2, **bounds), Tolerant(sigma=0.1)).evaluate(rows)
    (told,) = [str(warning.message) for warning in recwarn]
    assert ("F holds maximised objectives negated" in told) != is_negated
    assert ("got -1 from evaluation 0. The gate ignores such results." in told) == is_negated


def test_signs_that_cannot_be_are_told_once() -> None:
    class Positive(Bench):
        def _evaluate(self, X: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
            super()._evaluate(X, out)
            out["F"] = np.abs(out["F"])

    gated = make_gated(Positive(), Tolerant(sigma=0.1))
    words = r"^GatedProblem: expected percent, 0 to 100, for max:accuracy@toy, got -[\d.]+ in F of the first rows\."
    with pytest.warns(UserWarning, match=words) as told:
        gated.evaluate(np.array(SPACE_ROWS[:4]))
    assert len(told) == 1
    gated.evaluate(np.array(SPACE_ROWS[4:8]))
