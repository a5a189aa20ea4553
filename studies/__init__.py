"""Search with an evaluator: what to propose, what is found, and how it is kept and drawn.

    config = SearchConfig.from_dict({"space": "nasbench201", "trials": 1000,
                                     "goals": ["max:accuracy@cifar10", "min:latency_ms@raspi4"]})
    result = studies.search.search(config, space, evaluator, Path("study"))

The evaluator is a Surrogate (a predictor, surrogate.py) or gives real results (evaluators.py). Engines
(optuna_engine.py, pymoo_engine.py) propose populations to a Problem, which evaluates nothing twice. With real results
and a predictor, guided.py searches on the predictions and spends evaluations where the front can still move; the gate
that decides (gate.py) also serves studies of one's own: ``studies.ParetoGate`` in Optuna, ``studies.GatedProblem`` in
pymoo. Both are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from studies.optuna_gate import ParetoGate
    from studies.pymoo_gate import GatedProblem

__all__ = ["GatedProblem", "ParetoGate"]

_HOME = {"GatedProblem": "studies.pymoo_gate", "ParetoGate": "studies.optuna_gate"}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"studies: expected one of {', '.join(__all__)} or a module, got {name!r}.")
    return getattr(import_module(_HOME[name]), name)
