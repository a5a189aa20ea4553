"""The gate and its proposals in a study of the user's own."""

import pickle
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.exceptions import ExperimentalWarning
from optuna.trial import TrialState

from converters import to_onnx_text
from nasrlm.optuna import Guide, ParetoGate
from tests.studies.scenes import OBJECTIVES, SPACE, Row, ToyPredictor, true_values

GOALS = ["max:accuracy@toy", "min:latency_ms@toy"]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield
    optuna.logging.set_verbosity(verbosity)


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


def test_what_another_worker_enqueued_meanwhile_is_not_enqueued_again(monkeypatch: pytest.MonkeyPatch) -> None:
    study, trained = make_study(), list[Row]()
    first, second = make_gate(), make_gate()
    study.optimize(objective(first, trained), n_trials=4)
    propose = first._advisor.propose

    def slowly(*arguments: Any, **options: Any) -> Any:
        entries = propose(*arguments, **options)
        assert len(second.enqueue(study, 3)) == 3
        return entries

    monkeypatch.setattr(first._advisor, "propose", slowly)
    assert first.enqueue(study, 3) == []
    assert len(study.get_trials(states=(TrialState.WAITING,))) == 3


def test_an_objective_can_be_called_once_more_without_a_study() -> None:
    study, trained = make_study(), list[Row]()
    run = objective(make_gate(), trained)
    study.optimize(run, n_trials=4)
    best = study.best_trials[0]
    assert run(optuna.trial.FixedTrial(best.params)) == tuple(best.values)  # type: ignore[arg-type]
    assert run(best) == tuple(best.values)  # type: ignore[arg-type]


def test_proposals_that_the_objective_does_not_take_up_are_told() -> None:
    gate, study = make_gate(to_params=None), make_study()
    run = objective(gate, [])

    def renamed(trial: optuna.Trial) -> tuple[float, ...]:
        genes = [trial.suggest_int(f"op_{index}", 0, size - 1) for index, size in enumerate(SPACE.gene_sizes)]
        gate.check(trial, SPACE.decode(genes))
        return 1.0, 1.0

    study.optimize(run, n_trials=3)
    gate.enqueue(study, 1, guide=Guide(generations=2, samples=4))
    with pytest.warns(UserWarning, match=r"expected trial 3 to be the proposed .*, got .*\. Let `to_params` name"):
        study.optimize(renamed, n_trials=1)


@pytest.mark.parametrize(("told", "got"), [("resnet50", "'resnet50'"), (-1.5, r"'-1\.5'"), ([50], r"'\[50\]'")])
def test_an_attribute_that_is_no_architecture_is_named_with_its_trial(told: object, got: str) -> None:
    study = make_study()
    study.add_trial(optuna.trial.create_trial(values=[1.0, 1.0], user_attrs={"architecture": told}))
    with pytest.raises(ValueError, match=f"trial 0, attribute architecture: toy: expected digits, got {got}"):
        make_gate().enqueue(study, 1)


@pytest.mark.parametrize("sampler", ["NSGAIISampler", "TPESampler"])
def test_trials_that_cannot_move_the_front_are_pruned_with_their_reason(sampler: str) -> None:
    study, trained = make_study(sampler), list[Row]()
    study.optimize(objective(make_gate(predictor=ToyPredictor(sigma=0.1)), trained), n_trials=60)
    checked = [trial for trial in study.trials if "architecture" in trial.user_attrs]
    complete = [trial for trial in checked if trial.state == TrialState.COMPLETE]
    pruned = [trial for trial in checked if trial.state == TrialState.PRUNED and trial.user_attrs["pruned_stage"]]
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


def test_results_that_break_the_users_constraints_prune_nothing() -> None:
    gate, study = make_gate(), make_study()
    trial = optuna.trial.create_trial(values=[200.0, 0.0], user_attrs={"architecture": "0-1-2-0"})
    trial.set_constraint("memory", 1.0)
    study.add_trial(trial)
    gate.check(study.ask(), SPACE.decode((0, 1, 3, 3)))
    assert gate.gate.names == ()
    assert gate.enqueue(study, 1, guide=Guide(generations=2, samples=4))


def test_results_that_are_not_finite_prune_nothing() -> None:
    gate = make_gate(constraints=["soft:latency_ms@toy<=2", "energy_mj@toy<=100"])
    study = make_study()
    values = {"architecture": "0-1-2-0", "energy_mj@toy": None}
    study.add_trial(optuna.trial.create_trial(values=[100.0, 0.0], user_attrs=values))
    infinite = {"architecture": "0-1-3-0", "energy_mj@toy": 1.0}
    study.add_trial(optuna.trial.create_trial(values=[0.0, float("inf")], user_attrs=infinite))
    for row in ((0, 1, 3, 3), (0, 1, 4, 3)):
        gate.check(study.ask(), SPACE.decode(row))
    assert gate.gate.names == ()


def test_proposals_begin_with_results_whose_twins_were_pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, study = make_gate(), make_study()
    study.add_trial(optuna.trial.create_trial(values=[100.0, 1.0], user_attrs={"architecture": "0-1-2-0"}))
    with pytest.raises(optuna.TrialPruned, match="the same network as trial 0"):
        gate.check(twin := study.ask(), SPACE.decode((2, 1, 0, 0)))
    study.tell(twin, state=TrialState.PRUNED)
    told: list[Any] = []
    monkeypatch.setattr(gate._advisor, "propose", lambda tried, *args, **options: told.extend(tried) or ([], []))
    gate.enqueue(study)
    assert [(entry.architecture, entry.real.tolist()) for entry in told] == [("0-1-2-0", [100.0, 1.0])]


@pytest.mark.parametrize("told", ["fast", [1.0, 2.0], {}])
def test_a_real_value_that_is_no_number_is_named_with_its_trial(told: object) -> None:
    gate, study = make_gate(constraints=["energy_mj@toy<=9"]), make_study()
    study.add_trial(optuna.trial.create_trial(values=[1.0, 1.0], user_attrs={"energy_mj@toy": told}))
    with pytest.raises(ValueError, match=r"^trial 0, attribute energy_mj@toy: expected a number, got .*\.$"):
        study.optimize(objective(gate, []), n_trials=5)


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_fewer_than_one_are_not_proposed(count: int) -> None:
    gate, study = make_gate(), make_study()
    for propose in (lambda: gate.enqueue(study, count), lambda: gate.enqueue_callback(count)):
        with pytest.raises(ValueError, match=r"^gate: expected a count of 1 or more to propose, got"):
            propose()


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
        proposed += gate.enqueue(study, 3, guide=guide)
        proposed += gate.enqueue(study, 2, guide=guide)  # knows what is waiting
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


def test_no_network_is_evaluated_twice() -> None:
    study, trained = make_study("RandomSampler"), list[Row]()
    study.optimize(objective(make_gate(predictor=ToyPredictor(sigma=50.0)), trained), n_trials=80)  # prunes nothing
    assert len({SPACE.architecture_key(row) for row in trained}) == len(trained)
    twins = [trial for trial in study.trials if trial.user_attrs.get("pruned_stage") == 0]
    assert len(twins) > 5
    for trial in twins:
        reason, other = trial.user_attrs["pruned_reason"], trial.user_attrs["pruned_by"]
        assert reason.startswith("the same network as trial ")
        assert reason.endswith("complete")
        first, second = SPACE.parse(trial.user_attrs["architecture"]), SPACE.parse(other)
        assert SPACE.architecture_key(first) == SPACE.architecture_key(second)


def test_what_another_worker_evaluates_now_is_left_to_it() -> None:
    study = make_study()
    make_gate().check(study.ask(), SPACE.decode((0, 1, 2, 3)))
    with pytest.raises(optuna.TrialPruned, match="the same network as trial 0, which is running"):
        make_gate().check(study.ask(), SPACE.decode((2, 1, 0, 3)))
    study.tell(0, state=TrialState.FAIL)
    make_gate().check(study.ask(), SPACE.decode((2, 1, 0, 3)))


def test_the_gate_suggests_architectures_and_keeps_the_queue_filled() -> None:
    gate, study, trained = make_gate(to_params=None), make_study("RandomSampler"), list[Row]()

    def run(trial: optuna.Trial) -> tuple[float, ...]:
        row = gate.suggest(trial)
        gate.check(trial, row)
        trained.append(row)
        return tuple(true_values(row)[:2])

    callback = gate.enqueue_callback(3, guide=Guide(generations=2, samples=4))
    study.optimize(run, n_trials=20, callbacks=[callback])
    proposed = [trial for trial in study.trials if "fixed_params" in trial.system_attrs]
    assert len(proposed) >= 19
    evaluated = [trial for trial in proposed if trial.state == TrialState.COMPLETE]
    genotypes = [tuple(trial.params[f"gene_{index}"] for index in range(4)) for trial in evaluated]
    assert [SPACE.format(SPACE.decode(genes)) for genes in genotypes] == [
        trial.user_attrs["architecture"] for trial in evaluated
    ]
    other = make_study()
    other.enqueue_trial({f"gene_{index}": 1 for index in range(4)})
    with pytest.raises(optuna.TrialPruned, match="toy: expected different genes"):
        gate.suggest(other.ask())


def test_the_model_learns_from_results_and_what_it_did_not_know() -> None:
    tables: list[pd.DataFrame] = []

    def adapt(table: pd.DataFrame) -> ToyPredictor:
        tables.append(table)
        return ToyPredictor(sigma=0.1)

    gate = make_gate(predictor=ToyPredictor(objectives=OBJECTIVES[:1]))
    study, trained = make_study("RandomSampler"), list[Row]()
    with pytest.raises(ValueError, match=r"expected a predictor of .*, got none of latency_ms@toy\. Let it learn"):
        study.optimize(objective(gate, trained), n_trials=8)
    callbacks = [gate.adapt_callback(6, adapt=adapt), gate.enqueue_callback(4, guide=Guide(generations=2, samples=4))]
    study.optimize(objective(gate, trained), n_trials=24, callbacks=callbacks)
    assert [len(table) for table in tables[:2]] == [6, 12]
    assert list(tables[0].columns) == ["space", "architecture", *OBJECTIVES[:2]]
    assert tables[0]["architecture"].tolist() == [SPACE.format(row) for row in trained[:6]]
    assert tables[0]["latency_ms@toy"].tolist() == [true_values(row)[1] for row in trained[:6]]
    stages = [trial.user_attrs.get("pruned_stage", 0) for trial in study.trials]
    first = next(index for index, stage in enumerate(stages) if stage)
    before = [trial for trial in study.trials[:first] if trial.state == TrialState.COMPLETE]
    assert len(before) >= 6  # nothing is pruned before it has learned


def test_without_more_words_it_learns_by_processes() -> None:
    class Shifted(ToyPredictor):
        def _centres(self, texts: Any, objectives: Any) -> Any:
            return super()._centres(texts, objectives) + 5

    gate, study, trained = make_gate(predictor=Shifted(sigma=0.5)), make_study("RandomSampler"), list[Row]()
    study.optimize(objective(gate, trained), n_trials=12, callbacks=[gate.adapt_callback(4)])
    last = study.trials[-1]
    predicted = [last.user_attrs["predicted"][name]["median"] for name in OBJECTIVES[:2]]
    np.testing.assert_allclose(predicted, true_values(SPACE.parse(last.user_attrs["architecture"]))[:2], atol=3)


def test_threads_may_share_a_gate() -> None:
    gate, study, trained = make_gate(), make_study("RandomSampler"), list[Row]()
    callbacks = [gate.adapt_callback(every=5), gate.enqueue_callback(count=3)]
    study.optimize(objective(gate, trained), n_trials=60, n_jobs=4, callbacks=callbacks)
    assert sum(trial.state.is_finished() for trial in study.trials) == 60
    keys = [SPACE.architecture_key(row) for row in trained]
    assert len(keys) == len(set(keys)) > 5


COPIES = [
    pytest.param(lambda gate: pickle.loads(pickle.dumps(gate)), id="pickle"),
    pytest.param(deepcopy, id="deepcopy"),
]


@pytest.mark.parametrize("copied", COPIES)
def test_a_copied_gate_goes_on_by_itself(copied: Callable[[Any], Any]) -> None:
    gate, study, trained = make_gate(to_params=None), make_study("RandomSampler"), list[Row]()
    study.optimize(objective(gate, trained), n_trials=12, callbacks=[gate.adapt_callback(every=5)])
    other, fill, learn = copied((gate, gate.enqueue_callback(count=3), gate.adapt_callback(every=5)))
    assert other.gate.names == gate.gate.names
    assert (fill.func.__self__, learn.__self__) == (other, other)
    before = gate.gate.names
    study.optimize(objective(other, trained), n_trials=24, callbacks=[fill, learn])
    assert other.gate.names != before == gate.gate.names
    study.optimize(objective(gate, trained), n_trials=1)
    assert gate.gate.names == other.gate.names
    again = copied(other)
    for row in ((0, 1, 3, 3), (4, 4, 3, 0)):
        (mine,), (theirs,) = (known._advisor.check([SPACE.decode(row)]) for known in (other, again))
        assert (mine.stage, mine.reason) == (theirs.stage, theirs.reason)
        np.testing.assert_array_equal(mine.values, theirs.values)


def test_a_gate_with_the_released_checkpoint_is_pickled() -> None:
    gate = ParetoGate("nasbench201", ["max:accuracy@cifar10", "min:latency_ms@pixel3"])
    architecture = gate.space.decode((3, 0, 0, 0, 0, 3))
    (expected,) = gate._advisor.check([architecture])
    (found,) = pickle.loads(pickle.dumps(gate))._advisor.check([architecture])
    np.testing.assert_array_equal(found.values, expected.values)


def test_a_gate_is_of_one_study() -> None:
    gate = make_gate()
    make_study().optimize(objective(gate, []), n_trials=3)
    other = make_study()
    with pytest.raises(ValueError, match=rf"expected trials of study no-name-.*, got one of {other.study_name}"):
        gate.enqueue(other)


def test_another_study_of_the_same_name_is_told_apart() -> None:
    gate = make_gate()
    first, again = (optuna.create_study(study_name="mine", directions=["maximize", "minimize"]) for _ in range(2))
    first.optimize(objective(gate, []), n_trials=3)
    with pytest.raises(ValueError, match="expected trials of study mine, got one of another study of that name"):
        again.optimize(objective(gate, []), n_trials=3)


def test_threads_fill_the_queue_once() -> None:
    gate, study = make_gate(), make_study()
    study.optimize(objective(gate, []), n_trials=4)
    fill = gate.enqueue_callback(count=5)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda trial: fill(study, trial), study.trials))
    assert len(study.get_trials(states=(TrialState.WAITING,))) == 5


def test_a_network_faster_than_any_seen_is_not_pruned_on_its_accuracy() -> None:
    """A gate that comes later has seen one slow result and no predictions."""
    study = make_study()
    rows = sorted(SPACE.enumerate(), key=lambda row: true_values(row)[1])
    accurate = max(rows, key=lambda row: true_values(row)[0])
    fast = next(row for row in rows if true_values(row)[0] < true_values(accurate)[0] - 5)
    gate = make_gate(predictor=ToyPredictor(sigma=0.01))
    for row in (accurate, fast):
        trial = study.ask()
        gate.check(trial, row)
        study.tell(trial, list(true_values(row)[:2]))
    assert len(study.best_trials) == 2


def test_the_space_of_a_gate_converts() -> None:
    gate = ParetoGate("nasbench201", ["max:accuracy@cifar10", "min:latency_ms@pixel3"], ToyPredictor())
    assert "Conv" in to_onnx_text(gate.space, gate.space.decode((3, 0, 0, 0, 0, 3)))
