"""Search with an evaluator: what to propose, what is found, and how it is kept and drawn.

    config = SearchConfig.from_dict({"space": "nasbench201", "trials": 1000,
                                     "goals": ["max:accuracy@cifar10", "min:latency_ms@raspi4"]})
    result = studies.search.search(config, space, evaluator, Path("study"))

The evaluator is a Surrogate (a predictor, surrogates/) or gives real results (evaluators.py). Engines
(optuna_engine.py, pymoo_engine.py) propose populations to a Problem, which evaluates nothing twice. With real results
and a predictor, guided.py searches on the predictions and spends evaluations where the front can still move; the gate
that decides (gate.py) also serves studies of one's own: ``nasrlm.optuna.ParetoGate`` and ``nasrlm.pymoo.GatedProblem``.
"""
