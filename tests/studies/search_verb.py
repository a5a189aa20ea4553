"""What the tests of ``nasrlm search`` share: goals, an evaluator of the user's, networks to begin with."""

from collections.abc import Callable
from typing import Any

from spaces import get_space

GOALS = "max:accuracy@cifar10,min:latency_ms@raspi4"
FUNCTION = """
def results(architecture):
    with open("asked.txt", "a") as stream:
        stream.write(architecture + "\\n")
    return {"accuracy@cifar10": float(architecture.count("conv")), "latency_ms@raspi4": 1.0 + architecture.count("3x3")}
"""
GENOTYPES = [(3, 3, 0, 0, 0, 3), (0, 0, 1, 3, 2, 0), (2, 2, 2, 2, 2, 2)]
NOTATIONS = [get_space("nasbench201").format(get_space("nasbench201").decode(genes)) for genes in GENOTYPES]
Search = Callable[..., tuple[Any, str]]
