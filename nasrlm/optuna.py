"""Use nasrlm in an Optuna study of your own.

gate = nasrlm.optuna.ParetoGate("nasbench201", ["max:accuracy@cifar10", "min:latency_ms@pixel3"])
gate.check(trial, architecture)  # in the objective: raises TrialPruned
study.optimize(objective, n_trials=100, callbacks=[gate.adapt_callback(), gate.enqueue_callback()])
"""

from studies.guide import Guide
from studies.optuna_gate import ParetoGate

__all__ = ["Guide", "ParetoGate"]
