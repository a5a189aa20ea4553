"""A gated problem passes on what pymoo passes, and can be wrapped by pymoo's own problems."""

from typing import Any

import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.evaluator import Evaluator
from pymoo.core.problem import ElementwiseProblem
from pymoo.operators.sampling.rnd import IntegerRandomSampling
from pymoo.optimize import minimize
from pymoo.problems.static import StaticProblem

from nasrlm.pymoo import GatedProblem
from tests.studies.pymoo_scenes import GOALS, SPACE_ROWS, Bench, Tolerant, make_gated
from tests.studies.scenes import SPACE, Row, ToyPredictor


def test_a_problem_that_requires_the_algorithm_gets_it() -> None:
    class Aware(Bench):
        def __init__(self) -> None:
            super().__init__(num_constraints=0)
            self.requires_kwargs = True
            self.algorithms: list[Any] = []

        def _evaluate(self, X: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
            super()._evaluate(X, out)
            self.algorithms.append(kwargs["algorithm"])

    aware = Aware()
    gated = make_gated(aware, Tolerant(sigma=0.1))
    minimize(gated, NSGA2(pop_size=5, sampling=IntegerRandomSampling()), ("n_gen", 1), seed=1)
    assert [type(algorithm) for algorithm in aware.algorithms] == [NSGA2]


def test_rows_may_be_a_list() -> None:
    class Looped(ElementwiseProblem):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(n_var=4, n_obj=2, xl=0, xu=4, vtype=int)

        def _evaluate(self, x: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
            out["F"] = [-float(x[0]), 1.0]

    losses = make_gated(Looped(), ToyPredictor(), to_architecture=None).evaluate([list(SPACE_ROWS[5])])
    assert losses.tolist() == [[-SPACE_ROWS[5][0], 1.0]]


def test_results_of_a_gated_problem_can_be_told_to_an_algorithm() -> None:
    gated = make_gated(Bench(num_constraints=0), ToyPredictor(sigma=0.1))
    algorithm = NSGA2(pop_size=4, sampling=np.array(SPACE_ROWS[:4]))
    algorithm.setup(gated, seed=1, termination=("n_gen", 2))
    population = algorithm.ask()
    losses = gated.evaluate(population.get("X"))
    Evaluator().eval(StaticProblem(gated, F=losses), population)
    algorithm.tell(infills=population)
    np.testing.assert_array_equal(algorithm.pop.get("F"), losses)


def test_a_gated_problem_may_be_derived_from() -> None:
    class Plain(GatedProblem):  # type: ignore[type-arg]
        pass

    class OfRows(GatedProblem[Row]):
        pass

    for derived in (Plain, OfRows):
        assert derived(Bench(), SPACE, GOALS, ToyPredictor(), to_architecture=Row).n_obj == 2


def test_a_space_in_place_of_the_problem_is_refused() -> None:
    with pytest.raises(ValueError, match=r"GatedProblem: expected a Problem, got ToySpace\."):
        GatedProblem(SPACE, Bench(), GOALS)  # type: ignore[arg-type]


def test_a_seed_that_is_none_proposes_nothing() -> None:
    gated = make_gated(Bench(), Tolerant(sigma=0.1))
    with pytest.raises(ValueError, match=r"gate: seed: expected a whole number, got None\."):
        gated.propose(1, seed=None)
