"""Search with an evaluator: what to propose, what is found, and how it is kept and drawn.

    config = SearchConfig.from_dict({"space": "nasbench201", "trials": 1000,
                                     "goals": ["max:accuracy@cifar10", "min:latency_ms@pixel3"]})
    result = studies.search.search(config, space, evaluator, Path("study"))

The evaluator is a Surrogate (a predictor) or a TableEvaluator (true labels), both in surrogate.py. Engines
(optuna_engine.py, pymoo_engine.py) propose populations to a Problem, which evaluates nothing twice.
"""
