"""What the gate prunes in a study of the user's own, and what it takes for the front."""

import warnings
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from converters import to_onnx_text
from nasrlm.optuna import Guide, ParetoGate
from spaces import get_space
from studies.optuna_trials import read_predictions, recorded_predictions, results_of
from tests.studies.optuna_scenes import make_gate, make_study, objective
from tests.studies.scenes import OBJECTIVES, SPACE, Row, ToyPredictor, true_values

ENDED = (TrialState.COMPLETE,)

pytestmark = pytest.mark.usefixtures("quiet_optuna")


def test_an_objective_can_be_called_once_more_without_a_study() -> None:
    study, trained = make_study(), list[Row]()
    run = objective(make_gate(), trained)
    study.optimize(run, n_trials=4)
    best = study.best_trials[0]
    assert run(optuna.trial.FixedTrial(best.params)) == tuple(best.values)  # type: ignore[arg-type]
    assert run(best) == tuple(best.values)  # type: ignore[arg-type]


def test_predictions_are_recorded_by_name_and_read_again() -> None:
    predicted = np.array([[2.0, 1.0, 3.0], [np.nan] * 3])  # median, low, high
    recorded = recorded_predictions(("a@x", "b@x"), predicted)
    assert recorded == {"a@x": {"low": 1, "median": 2, "high": 3}, "b@x": dict.fromkeys(("low", "median", "high"))}
    np.testing.assert_array_equal(read_predictions(("b@x", "a@x"), recorded), predicted[::-1])


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


def test_guesses_of_another_space_prune_nothing_until_results_have_taught_better() -> None:
    """A model that is as sure of networks unlike those it has learned from prunes all that could teach it."""

    class Guessing(ToyPredictor):
        checkpoint = SimpleNamespace(guessed_of=lambda space: frozenset(OBJECTIVES[:2]))

        def _errors(self, row: Row) -> np.ndarray:
            return np.array([-4000.0, 4000.0, 0.0])

    predictor = Guessing(sigma=0.01)  # of which it says that all is worse than what is evaluated
    gate, study, trained = make_gate(predictor=predictor), make_study("RandomSampler"), list[Row]()
    with pytest.warns(
        UserWarning, match=r"trained on accuracy@toy, latency_ms@toy of networks of toy, .* unreliable"
    ) as told:
        study.optimize(objective(gate, trained), n_trials=12)
    assert len(told) == 1
    assert not [trial for trial in study.trials if trial.user_attrs.get("pruned_stage")]
    assert gate.enqueue(study, 2, guide=Guide(generations=2, samples=4))  # by guesses, for want of better
    gate, study = make_gate(predictor=predictor), make_study("RandomSampler")
    study.optimize(objective(gate, []), n_trials=40, callbacks=[gate.adapt_callback(every=5)])
    assert not [trial for trial in study.trials[:5] if trial.user_attrs.get("pruned_stage")]
    assert [trial for trial in study.trials if trial.user_attrs.get("pruned_stage")]


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
    trial = optuna.trial.create_trial(values=[100.0, 0.0], user_attrs={"architecture": "0-1-2-0"})
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


def test_values_that_stand_for_what_was_pruned_are_no_results() -> None:
    gate, study = make_gate(), make_study("RandomSampler")
    evaluate = objective(gate, [])

    def swallows(trial: optuna.Trial) -> tuple[float, ...]:
        try:
            return evaluate(trial)
        except optuna.TrialPruned:
            return 0.0, 0.0

    callbacks = [gate.adapt_callback(every=5)]
    with pytest.warns(UserWarning, match=r"expected no values of trial \d+, which was pruned, got some: ") as told:
        study.optimize(swallows, n_trials=30, callbacks=callbacks)
    assert len(told) == 1
    assert told[0].filename == __file__
    pruned = [trial for trial in study.get_trials() if "pruned_reason" in trial.user_attrs]
    assert pruned
    assert {trial.state for trial in pruned} == {TrialState.COMPLETE}
    assert not {trial.user_attrs["architecture"] for trial in pruned} & set(gate.gate.names)
    assert (gate.gate.front[:, 1] > 0).all()


def test_a_pruned_trial_that_was_evaluated_after_all_has_results(recwarn: pytest.WarningsRecorder) -> None:
    gate, study = make_gate(goals=["max:accuracy@toy"]), make_study(directions=("maximize",))
    study.add_trial(optuna.trial.create_trial(value=80.0, user_attrs={"architecture": "0-1-2-0"}))

    def evaluates_all(trial: optuna.Trial) -> float:
        try:
            gate.check(trial, SPACE.decode((1, 1, 0, 0)))
        except optuna.TrialPruned:
            trial.set_user_attr("evaluated", True)
        return 99.0

    study.optimize(evaluates_all, n_trials=1)
    assert "pruned_reason" in study.trials[1].user_attrs
    with pytest.raises(optuna.TrialPruned, match="the same network as trial 1, which is complete"):
        gate.check(study.ask(), SPACE.decode((0, 1, 1, 0)))
    assert gate.gate.names == ("1-1-0-0",)
    assert not recwarn.list


def test_accuracies_that_seem_to_be_fractions_are_told_once() -> None:
    study, gate = make_study(), make_gate()

    def fraction(trial: optuna.Trial) -> tuple[float, float]:
        accuracy, latency = objective(gate, [])(trial)
        return accuracy / 100, latency

    with pytest.warns(
        UserWarning, match=r"accuracy@toy, got 0\.\d+ from trial 0\. If it is a fraction, give \d+"
    ) as told:
        study.optimize(fraction, n_trials=5)
    assert len(told) == 1


def test_a_fraction_hides_no_result_that_cannot_be(recwarn: pytest.WarningsRecorder) -> None:
    study, gate = make_study(), make_gate()
    for number, values in enumerate(([0.9, 1.0], [90.0, -1.0])):
        notation = {"architecture": f"0-1-2-{number}"}
        study.add_trial(optuna.trial.create_trial(values=values, user_attrs=notation))
    gate.check(study.ask(), SPACE.decode((0, 1, 3, 3)))
    fraction, impossible = [str(warning.message) for warning in recwarn]
    assert "got 0.9 from trial 0. If it is a fraction, give 90." in fraction
    assert "got -1 from trial 1. The gate ignores such results." in impossible


def test_results_that_cannot_be_prune_nothing_and_are_told_once() -> None:
    gate, study = make_gate(), make_study()
    for values in ([999.0, -1.0], [100.0, -2.0]):
        study.add_trial(optuna.trial.create_trial(values=values, user_attrs={"architecture": "0-1-2-0"}))
    words = r"^gate: expected percent, 0 to 100, for accuracy@toy, got 999 from trial 0\. The gate ignores"
    with pytest.warns(UserWarning, match=words) as told:
        gate.check(study.ask(), SPACE.decode((0, 1, 3, 3)))
    assert len(told) == 1
    assert gate.gate.names == ()


def test_a_number_too_large_to_learn_from_is_no_result() -> None:
    gate, study = make_gate(), make_study()
    study.add_trial(optuna.trial.create_trial(values=[90.0, 1.7e308], user_attrs={"architecture": "0-1-2-0"}))
    words = r"^gate: expected numbers within ±1e\+30 for latency_ms@toy, got 1\.7e\+308 from trial 0\. The gate ignores"
    with pytest.warns(UserWarning, match=words):
        gate.check(study.ask(), SPACE.decode((0, 1, 3, 3)))
    assert gate.gate.names == ()


def test_counts_that_a_trial_leaves_out_are_counted() -> None:
    space = get_space("nasbench201")
    small, large = space.decode((0, 0, 0, 1, 0, 0)), space.decode((3, 3, 3, 3, 3, 3))
    goals, predictor = ["max:accuracy@toy", "min:latency_ms@toy"], ToyPredictor(sigma=0.5)
    gate = ParetoGate(space, goals, predictor, to_text=lambda _: "0-1-2-0", constraints=["params@onnx<=500000"])
    study = make_study()
    for architecture in (small, large):
        values = {"architecture": space.format(architecture)}
        study.add_trial(optuna.trial.create_trial(values=[50.0, 3.0], user_attrs=values))
    with pytest.raises(optuna.TrialPruned, match="the same network as trial 1"):
        gate.check(study.ask(), large)
    assert gate.gate.names == (space.format(small),)


def test_nothing_is_counted_of_what_failed_or_still_runs() -> None:
    space = get_space("nasbench201")
    told = {"architecture": space.format(space.decode((3, 3, 3, 3, 3, 3)))}
    for state in (TrialState.FAIL, TrialState.RUNNING):
        trial = optuna.trial.create_trial(state=state, user_attrs=told)
        assert np.isnan(results_of(trial, space, 2, ["params@onnx"])).all()
    complete = optuna.trial.create_trial(values=[50.0, 3.0], user_attrs=told)
    assert results_of(complete, space, 2, ["params@onnx"])[2] > 1e6


def test_what_is_no_predictor_or_constraint_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"gate: expected a predictor, got 'runs/mine'\. To load a folder, use nasrlm\.Pred"
    ):
        ParetoGate(SPACE, ["max:accuracy@toy"], "runs/mine")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"constraint: expected objective<=number .*, got \('latency_ms@toy', 1\)"):
        make_gate(constraints=[("latency_ms@toy", 1)])


def test_a_queue_of_other_genes_is_told() -> None:
    gate, study = make_gate(), make_study()
    study.enqueue_trial({"gene_0": 77})
    with pytest.raises(ValueError, match=r"expected trial 0 to have gene_0, gene_1, .*, got: '?77'? not in"):
        gate.suggest(study.ask())


@pytest.mark.filterwarnings("ignore:ParetoGate. expected completed trials")
@pytest.mark.parametrize("told", ["fast", [1.0, 2.0], {}])
def test_a_real_value_that_is_no_number_is_named_with_its_trial(told: object) -> None:
    gate, study = make_gate(constraints=["energy_mj@toy<=9"]), make_study()
    study.add_trial(optuna.trial.create_trial(values=[1.0, 1.0], user_attrs={"energy_mj@toy": told}))
    with pytest.raises(ValueError, match=r"^trial 0, attribute energy_mj@toy: expected a number, got .*\.$"):
        study.optimize(objective(gate, []), n_trials=5)


@pytest.mark.filterwarnings("ignore:ParetoGate. expected completed trials")
def test_without_the_real_value_of_a_constraint_a_trial_stays_off_the_front() -> None:
    gate = make_gate(constraints=["energy_mj@toy<=100"])
    study = make_study()
    study.add_trial(optuna.trial.create_trial(values=[100.0, 0.0], user_attrs={"architecture": "0-1-2-0"}))
    gate.check(study.ask(), SPACE.decode((0, 1, 3, 3)))
    assert gate.gate.names == ()


def test_a_class_is_no_space() -> None:
    with pytest.raises(ValueError, match=r"expected a space, got the class ToySpace. Create an instance: ToySpace\(\)"):
        ParetoGate(type(SPACE), ["max:accuracy@toy"], ToyPredictor())  # type: ignore[arg-type]


def test_a_constraint_that_no_trial_tells_is_told_once() -> None:
    gate = make_gate(constraints=["energy_mj@toy<=100"])
    study = make_study()
    study.add_trial(optuna.trial.create_trial(values=[100.0, 0.0], user_attrs={"architecture": "0-1-2-0"}))
    with pytest.warns(UserWarning, match="their real energy_mj@toy in the attribute of that name, got none among 1"):
        gate.check(study.ask(), SPACE.decode((0, 1, 3, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gate.check(study.ask(), SPACE.decode((0, 1, 4, 3)))


def test_goals_in_another_order_than_the_studys_are_refused() -> None:
    gate = make_gate(goals=["min:latency_ms@toy", "min:energy_mj@toy"])
    study = make_study(directions=("minimize", "minimize"))
    study.set_metric_names(["energy_mj@toy", "latency_ms@toy"])
    with pytest.raises(ValueError, match="metric names latency_ms@toy, energy_mj@toy, got energy_mj@toy, lat"):
        gate.check(study.ask(), Row((0, 1, 2, 3)))
    other = make_study(directions=("minimize", "minimize"))
    other.set_metric_names(["time", "power"])  # names of the user's own
    gate.check(other.ask(), Row((0, 1, 2, 3)))


def test_goals_that_look_for_the_worst_are_told() -> None:
    with pytest.warns(UserWarning, match=r"^max:latency_ms@toy: looks for the largest values; is that what") as told:
        make_gate(goals=["max:accuracy@toy", "max:latency_ms@toy", "max:other@toy"])
    assert "max:other@toy" not in " ".join(str(warning.message) for warning in told if "looks" in str(warning.message))


def test_directions_of_another_study_are_named() -> None:
    study = make_study(directions=("minimize", "minimize"))
    with pytest.raises(
        ValueError,
        match="expected a study with directions max:accuracy@toy, min:latency_ms@toy, got minimize, minimize",
    ):
        make_gate().check(study.ask(), Row((0, 1, 2, 3)))


@pytest.mark.parametrize("given", ["[0, 0, 1]", (0, 0, 1)])
def test_a_notation_is_no_architecture(given: object) -> None:
    gate = make_gate()
    with pytest.raises(ValueError, match=r"expected an architecture of toy, got .*0, 0, 1.*`gate\.space\.parse`"):
        gate.check(make_study().ask(), given)


@pytest.mark.parametrize("option", ["goals", "constraints"])
def test_one_goal_is_no_list_of_goals(option: str) -> None:
    words = rf"^gate: expected a list of {option}, got 'max:accuracy@toy'\. Put it in a list\.$"
    with pytest.raises(ValueError, match=words):
        make_gate(**{option: "max:accuracy@toy"})


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


def test_trials_from_before_the_gate_are_told_once() -> None:
    study, gate = make_study(), make_gate()
    for value in (90.0, 91.0):
        study.add_trial(optuna.trial.create_trial(values=[value, 5.0]))
    with pytest.warns(UserWarning, match=r"attribute architecture, got 2 without") as told:
        study.optimize(objective(gate, []), n_trials=3)
    assert len(told) == 1


def test_trials_from_before_the_gate_are_known_in_a_new_study_with_their_notation() -> None:
    old, new, gate = make_study(), make_study(), make_gate()
    old.optimize(lambda trial: true_values(_suggested(trial))[:2], n_trials=5)
    for trial in old.trials:
        trial.set_user_attr("architecture", SPACE.format(_suggested(trial)))
        new.add_trial(trial)
    proposed = gate.enqueue(new, 3)
    assert proposed
    assert {SPACE.format(row) for row in proposed}.isdisjoint(SPACE.format(_suggested(trial)) for trial in old.trials)


def test_networks_of_trials_that_were_suggested_but_never_checked_are_known() -> None:
    study, gate = make_study("RandomSampler"), make_gate(to_params=None)

    def unchecked(trial: optuna.Trial) -> tuple[float, ...]:
        return true_values(gate.suggest(trial))[:2]

    study.optimize(unchecked, n_trials=60)
    known = {SPACE.architecture_key(SPACE.decode(list(x.params.values()))) for x in study.get_trials(states=ENDED)}
    proposed = gate.enqueue(study, 5, guide=Guide(generations=2, samples=4))
    assert known.isdisjoint(map(SPACE.architecture_key, proposed))
    (again, *_) = study.get_trials(states=ENDED)
    study.enqueue_trial(again.params, skip_if_exists=False)
    twins = [x for x in study.get_trials() if x.state == TrialState.WAITING]
    study.optimize(lambda trial: gate.check(trial, gate.suggest(trial)) or (90.0, 1.0), n_trials=len(twins))
    last = study.get_trials()[-1]
    assert (last.state, last.user_attrs["pruned_stage"]) == (TrialState.PRUNED, 0)
    assert last.user_attrs["pruned_reason"] == f"the same network as trial {again.number}, which is complete"


def _suggested(trial: optuna.Trial | optuna.trial.FrozenTrial) -> Row:
    genes = [trial.suggest_int(f"gene_{index}", 0, size - 1) for index, size in enumerate(SPACE.gene_sizes)]
    return SPACE.decode(genes)


def test_a_goal_that_is_nearly_known_is_told() -> None:
    with pytest.warns(UserWarning, match=r"got acuracy@toy, which must be learned .* Did you mean accuracy@toy\?"):
        ParetoGate(SPACE, ["max:acuracy@toy"], ToyPredictor(), to_text=SPACE.format)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ParetoGate(SPACE, ["max:accuracy@toy", "min:latency_ms@toy2"], ToyPredictor(), to_text=SPACE.format)
