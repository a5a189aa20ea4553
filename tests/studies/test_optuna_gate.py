"""The gate and its proposals in a study of the user's own."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.exceptions import ExperimentalWarning
from optuna.trial import TrialState

import studies
from studies.guide import Guide
from tests.studies.scenes import OBJECTIVES, Row, ToyPredictor, ToySpace, true_values

SPACE = ToySpace()
GOALS = ["max:accuracy@toy", "min:latency_ms@toy"]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield
    optuna.logging.set_verbosity(verbosity)


def make_gate(**options: Any) -> studies.ParetoGate[Row]:
    predictor = options.pop("predictor", None) or ToyPredictor(sigma=0.5)
    return studies.ParetoGate(SPACE, predictor, options.pop("goals", GOALS), to_text=SPACE.format, **options)


def make_study(sampler: str = "NSGAIISampler", directions: tuple[str, ...] = ("maximize", "minimize")) -> optuna.Study:
    return optuna.create_study(directions=list(directions), sampler=getattr(optuna.samplers, sampler)(seed=0))


def to_params(row: Row) -> dict[str, int]:
    return {f"gene_{index}": gene for index, gene in enumerate(row.genes)}


def objective(gate: studies.ParetoGate[Row], trained: list[Row]) -> Callable[[optuna.Trial], tuple[float, ...]]:
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


@pytest.mark.parametrize("sampler", ["NSGAIISampler", "TPESampler"])
def test_trials_that_cannot_move_the_front_are_pruned_with_their_reason(sampler: str) -> None:
    study, trained = make_study(sampler), list[Row]()
    study.optimize(objective(make_gate(predictor=ToyPredictor(sigma=0.1)), trained), n_trials=60)
    checked = [trial for trial in study.trials if "architecture" in trial.user_attrs]
    complete = [trial for trial in checked if trial.state == TrialState.COMPLETE]
    pruned = [trial for trial in checked if trial.state == TrialState.PRUNED]
    assert len(complete) == len(trained)
    assert len(pruned) > 5
    for trial in pruned:
        attributes = trial.user_attrs
        assert attributes["pruned_stage"] in (1, 2)
        assert f"dominated by {attributes['pruned_by']}" in attributes["pruned_reason"]
        best = true_values(SPACE.parse(attributes["pruned_by"]))[:2]
        predicted = [attributes["predicted"][name] for name in OBJECTIVES[:2]]
        assert best[0] >= predicted[0]["high"]
        assert attributes["pruned_stage"] == 1 or best[1] <= predicted[1]["low"]
    assert all("pruned_reason" not in trial.user_attrs for trial in complete)
    assert all(trial.user_attrs["predicted"]["accuracy@toy"]["median"] is not None for trial in complete)


def test_a_gate_that_comes_later_or_runs_elsewhere_knows_the_study() -> None:
    study, trained = make_study("RandomSampler"), list[Row]()
    study.optimize(objective(make_gate(), trained), n_trials=30)
    late = make_gate()
    worst = study.ask()
    slow = SPACE.decode((0, 0, 1, 3))
    with pytest.raises(optuna.TrialPruned, match="dominated by"):
        late.check(worst, slow)
    assert set(late.gate.names) == {trial.user_attrs["architecture"] for trial in study.best_trials}


def test_constraints_prune_and_keep_off_the_front() -> None:
    gate = make_gate(constraints=["latency_ms@toy<=8", "energy_mj@toy<=14"], predictor=ToyPredictor(sigma=0.05))
    study, trained = make_study("RandomSampler"), list[Row]()
    study.optimize(objective(gate, trained), n_trials=60)
    values = np.array([true_values(row) for row in trained])
    assert values[:, 1].max() < 8.5
    assert values[:, 2].max() < 14.5
    reasons = [trial.user_attrs.get("pruned_reason", "") for trial in study.trials]
    assert any("outside energy_mj@toy<=14" in reason for reason in reasons)
    assert all(true_values(SPACE.parse(name))[2] <= 14 for name in gate.gate.names)


def test_without_the_real_value_of_a_constraint_a_trial_stays_off_the_front() -> None:
    gate = make_gate(constraints=["energy_mj@toy<=100"])
    study = make_study()
    study.add_trial(optuna.trial.create_trial(values=[100.0, 0.0], user_attrs={"architecture": "0-1-2-0"}))
    gate.check(study.ask(), SPACE.decode((0, 1, 3, 3)))
    assert gate.gate.names == ()


@pytest.mark.parametrize("acquisition", ["hypervolume", "median"])
def test_proposals_are_enqueued_once_and_evaluated(acquisition: str) -> None:
    gate, study, trained = make_gate(), make_study("RandomSampler"), list[Row]()
    guide = Guide(acquisition=acquisition, generations=3, samples=8)
    proposed: list[Row] = []
    for _ in range(3):
        proposed += gate.enqueue(study, 3, to_params=to_params, guide=guide)
        proposed += gate.enqueue(study, 2, to_params=to_params, guide=guide)  # knows what is waiting
        study.optimize(objective(gate, trained), n_trials=5)
    assert len(proposed) == 15
    assert len({SPACE.architecture_key(row) for row in proposed}) == 15
    assert [SPACE.parse(trial.user_attrs["architecture"]) for trial in study.trials] == proposed
    assert trained == proposed  # the gate had let them pass when they were proposed, or will now say why not


def test_directions_of_another_study_are_named() -> None:
    study = make_study(directions=("minimize", "minimize"))
    with pytest.raises(
        ValueError,
        match="expected a study with directions max:accuracy@toy, min:latency_ms@toy, got minimize, minimize",
    ):
        make_gate().check(study.ask(), Row((0, 1, 2, 3)))


def test_the_public_names() -> None:
    assert studies.ParetoGate.__module__ == "studies.optuna_gate"
    assert studies.GatedProblem.__module__ == "studies.pymoo_gate"
    with pytest.raises(AttributeError, match="expected one of GatedProblem, ParetoGate or a module, got 'gate_keeper'"):
        studies.gate_keeper  # noqa: B018
