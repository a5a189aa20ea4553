"""What an engine is given to evaluate: new architectures alone, begun as told, until the trials are spent."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nasrlm.prediction import Prediction
from studies.history import History
from studies.problem import Problem
from tests.studies.scenes import SPACE, Row, ToyEvaluator, ToySpace, toy_config, true_values


class Narrow(ToySpace):
    """All genotypes are valid, and the last choice of the last gene is not drawn."""

    sampled_sizes = (5, 5, 5, 3)

    def _build(self, genotype: tuple[int, ...]) -> Row:
        return Row(genotype)


class Unanswering(ToyEvaluator):
    """Knows nothing of architectures with this last gene."""

    def evaluate(self, architectures: Sequence[Row]) -> Prediction:
        known = super().evaluate(architectures)
        values = known.values.copy()
        values[[row.genes[-1] == 1 for row in architectures]] = np.nan
        return Prediction(known.objectives, known.quantiles, values)


def make_problem(
    space: ToySpace = SPACE, evaluator: Any = None, changes: dict[str, Any] | None = None, **options: Any
) -> Problem[Row]:
    config = toy_config(**{"population_size": 12, **(changes or {})})
    return Problem(config, space, evaluator or ToyEvaluator(), **options)


def rows(*genes: str) -> list[Row]:
    return [Row(tuple(map(int, text))) for text in genes]


@pytest.mark.parametrize("count", [0, 3, 9])
def test_a_population_begins_with_what_is_given_up_to_half_then_corners_then_samples(count: int) -> None:
    given = [Row((0, 1, width, depth)) for width in (2, 3, 4) for depth in (0, 1, 2)][:count]
    found = make_problem(Narrow(), first=[*rows("0013", "0123"), *given]).first_population()
    taken = min(count, 6)
    assert set(found[:taken]) <= set(given)
    assert found[taken : taken + 5] == rows("0000", "1111", "2222", "3332", "4442")
    assert len({Narrow().architecture_key(row) for row in found}) == len(found) == 12
    assert all(row.genes[-1] < 3 for row in found)
    few = {"population_size": 4, "warm_start": ("0-1-2-0", "0-1-2-1")}
    assert make_problem(Narrow(), changes=few).first_population() == rows("0120", "0121", "0000", "1111")


def test_what_is_not_drawn_is_not_known_either() -> None:
    every = {Narrow().architecture_key(row): row for row in rows("0013", "0123", "0121", "0210", "3332")}
    problem = make_problem(Narrow(), known=every)
    assert sorted(row.genes for row in problem.samples(9)) == [(0, 1, 2, 1), (0, 2, 1, 0), (3, 3, 3, 2)]
    assert not problem.reserve(Row((0, 0, 1, 3)))
    assert not problem.reserve(Row((0, 0, 1, 0)))


def test_a_place_is_taken_once_by_one_of_twins_and_given_back_with_the_batch() -> None:
    problem = make_problem()
    first, twin, other = rows("0120", "2100", "0121")
    assert [problem.reserve(row) for row in (first, first, twin, other)] == [True, False, False, True]
    problem.evaluate([first])
    assert [problem.reserve(row) for row in (twin, other)] == [False, True]


def test_new_ones_are_neighbours_of_the_front(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, walked, mutate = make_problem(), [], ToySpace.mutate
    outcome = problem.evaluate(problem.samples(12))
    front = {
        problem.history.architectures[row]
        for row, losses in enumerate(outcome.losses)
        if not any((other <= losses).all() and (other < losses).any() for other in outcome.losses)
    }

    def walk(space: ToySpace, architecture: Row, rng: np.random.Generator) -> Row:
        walked.append((architecture, mutate(space, architecture, rng)))
        return walked[-1][1]

    monkeypatch.setattr(ToySpace, "mutate", walk)
    monkeypatch.setattr(ToySpace, "sample", None)  # is not asked
    assert len(problem.fresh(5)) == 5
    begun = {SPACE.format(row) for row, _ in walked} - {SPACE.format(row) for _, row in walked}
    assert begun
    assert begun <= front


@pytest.mark.parametrize("one_by_one", [False, True])
def test_no_answer_is_spent_where_it_costs(one_by_one: bool) -> None:
    told: list[int] = []
    evaluator = Unanswering()
    on_answer = (lambda history: told.append(len(history))) if one_by_one else None
    problem = make_problem(evaluator=evaluator, on_answer=on_answer)
    outcome = problem.evaluate(rows("0120", "0121", "0122"))
    assert outcome.complete.tolist() == [True, False, True]
    np.testing.assert_array_equal(outcome.objectives[[0, 2]], [true_values(row)[:2] for row in rows("0120", "0122")])
    assert problem.evaluations == (3 if one_by_one else 2)
    assert told == ([1, 2, 3] if one_by_one else [])
    assert [len(batch) for batch in evaluator.batches] == ([1, 1, 1] if one_by_one else [3])
    assert problem.history.feasible == [True, False, True]


def test_what_is_recorded_is_not_asked_again() -> None:
    evaluator, known = ToyEvaluator(), SPACE.architecture_key(Row((0, 1, 2, 1)))
    values = np.arange(6.0).reshape(1, 2, 3)
    recorded = History(toy_config().objectives, ["0-1-2-1"], [known], [(0, 1, 2, 1)], list(values), [True])
    outcome = make_problem(evaluator=evaluator, recorded=recorded).evaluate(rows("0120", "0121"))
    assert evaluator.batches == [[SPACE.architecture_key(Row((0, 1, 2, 0)))]]
    assert outcome.objectives[1].tolist() == [0, 3]


def test_a_search_gives_up_after_so_many_without_an_answer_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studies.problem.FUTILE_EVALUATIONS", 4)
    problem = make_problem(evaluator=Unanswering())
    for genes in (["0011", "0021", "0031"], ["0041", "0120"], ["0121", "0131", "0141"]):
        problem.evaluate(rows(*genes))
        assert not problem.done
    problem.evaluate(rows("1121"))
    assert problem.stopped == "the evaluator had no result for the last 4 architectures"


def test_a_batch_ends_where_the_trials_do() -> None:
    spent: list[int] = []
    problem = make_problem(
        changes={"trials": 15, "earlier_trials": (5, 14)}, on_batch=lambda x: spent.append(x.evaluations)
    )
    for size in (5, 9, 1):
        assert (problem.batch_size, problem.done) == (size, False)
        problem.evaluate(problem.fresh(size))
    assert problem.done
    assert spent == [5, 14, 15]


@pytest.mark.parametrize("few", [499, 500])
def test_a_space_of_few_is_looked_through_to_its_last(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studies.problem.RANDOM_SAMPLES", 1)
    monkeypatch.setattr("studies.problem.MAX_ENUMERATED", few)  # the space has 500
    problem = make_problem()
    found = problem.fresh(200)
    assert len(set(map(SPACE.architecture_key, found))) == len(found)
    assert (len(found) == 120) == (few == 500)
    assert few == 499 or problem.samples(1) == []


def test_a_warm_start_that_is_not_drawn_is_told() -> None:
    notations = ("0-1-2-2", "0-1-2-3", "0-0-1-3")
    assert make_problem(Narrow(), changes={"warm_start": notations}).undrawn_warm_start == "0-1-2-3"
    assert make_problem(Narrow(), changes={"warm_start": notations[:1]}).undrawn_warm_start == ""
    assert make_problem(changes={"warm_start": notations, "trials": 2}).warm_start() == rows("0122", "0123")
