"""A gated problem passes on what pymoo passes, and can be wrapped by pymoo's own problems."""

from typing import Any

from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.operators.sampling.rnd import IntegerRandomSampling
from pymoo.optimize import minimize

from tests.studies.pymoo_scenes import Bench, Tolerant, make_gated


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
