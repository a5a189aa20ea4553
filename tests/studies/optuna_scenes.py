"""Studies of the user's own with a gate, whose objective is the toy's truth."""

from collections.abc import Callable
from typing import Any

import optuna

from nasrlm.optuna import ParetoGate
from tests.studies.scenes import SPACE, Row, ToyPredictor, true_values

GOALS = ["max:accuracy@toy", "min:latency_ms@toy"]


def make_gate(**options: Any) -> ParetoGate[Row]:
    predictor = options.pop("predictor", None) or ToyPredictor(sigma=0.5)
    options = {"to_text": SPACE.format, "to_params": to_params, **options}
    return ParetoGate(SPACE, options.pop("goals", GOALS), predictor, **options)


def make_study(sampler: str = "NSGAIISampler", directions: tuple[str, ...] = ("maximize", "minimize")) -> optuna.Study:
    return optuna.create_study(directions=list(directions), sampler=getattr(optuna.samplers, sampler)(seed=0))


def to_params(row: Row) -> dict[str, int]:
    return {f"gene_{index}": gene for index, gene in enumerate(row.genes)}


def objective(gate: ParetoGate[Row], trained: list[Row]) -> Callable[[optuna.Trial], tuple[float, ...]]:
    def run(trial: optuna.Trial) -> tuple[float, ...]:
        genes = [trial.suggest_int(f"gene_{index}", 0, size - 1) for index, size in enumerate(SPACE.gene_sizes)]
        if genes[0] == genes[1] == genes[2]:
            raise optuna.TrialPruned("no architecture")
        row = SPACE.decode(genes)
        gate.check(trial, row)
        trained.append(row)
        accuracy, latency, energy = true_values(row)
        trial.set_user_attr("energy_mj@toy", energy)
        return accuracy, latency

    return run
