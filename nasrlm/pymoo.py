"""Use nasrlm with a pymoo problem of your own.

gated = nasrlm.pymoo.GatedProblem(problem, "nasbench201", ["max:accuracy@cifar10", "min:latency_ms@pixel3"])
callback = gated.adapt_callback()  # before proposing, so that unknown objectives will be learned
algorithm = NSGA2(pop_size=20, sampling=gated.propose(20))
minimize(gated, algorithm, ("n_gen", 10), callback=callback)
"""

from studies.guide import Guide
from studies.pymoo_gate import GatedProblem

__all__ = ["GatedProblem", "Guide"]
