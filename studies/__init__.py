"""Search for architectures: engines, evaluators and surrogates, and the results with their files and figures.

    config = SearchConfig.from_dict({"space": "nasbench201", "trials": 1000,
                                     "goals": ["max:accuracy@cifar10", "min:latency_ms@raspi4"]})
    result = studies.search.search(config, space, evaluator, Path("study"))

The evaluator is a Surrogate (a predictor, surrogates/) or gives real results (evaluators.py). Engines
(optuna_engine.py, pymoo_engine.py) propose populations to a Problem, which evaluates nothing twice. With real results
and a predictor, guided.py searches on the predictions and spends evaluations where the front may still improve. Its
gate (gate.py) also works in the user's own studies: ``nasrlm.optuna.ParetoGate`` and ``nasrlm.pymoo.GatedProblem``.
"""
