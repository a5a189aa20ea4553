"""What the gate proposes to a study of the user's own, and what its model learns from results."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.trial import TrialState

from nasrlm.optuna import Guide
from studies.gate import Gate
from studies.guide import levels_of
from tests.studies.optuna_scenes import make_gate, make_study, objective, to_params
from tests.studies.scenes import OBJECTIVES, SPACE, Row, ToyPredictor, true_values

pytestmark = pytest.mark.usefixtures("quiet_optuna")


def test_proposals_that_the_objective_does_not_take_up_are_told() -> None:
    gate, study = make_gate(to_params=None), make_study()
    run = objective(gate, [])

    def renamed(trial: optuna.Trial) -> tuple[float, ...]:
        genes = [trial.suggest_int(f"op_{index}", 0, size - 1) for index, size in enumerate(SPACE.gene_sizes)]
        gate.check(trial, SPACE.decode(genes))
        return 1.0, 1.0

    study.optimize(run, n_trials=3)
    gate.enqueue(study, 1, guide=Guide(generations=2, samples=4))
    with pytest.warns(UserWarning, match=r"expected trial 3 to be the proposed .*, got .*\. Let `to_params` return"):
        study.optimize(renamed, n_trials=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is told once
        gate.enqueue(study, 1, guide=Guide(generations=2, samples=4))
        study.optimize(renamed, n_trials=1)
    gate.enqueue(study, 1, guide=Guide(generations=2, samples=4))
    with pytest.warns(UserWarning, match="3 in a row differed: no more are proposed"):
        study.optimize(renamed, n_trials=1)
    assert gate.enqueue(study, 1) == []


@pytest.mark.filterwarnings("error")
def test_a_proposal_may_be_another_spelling_of_its_network() -> None:
    def in_order(trial: optuna.Trial) -> tuple[float, ...]:
        genes = [trial.suggest_int(f"gene_{index}", 0, size - 1) for index, size in enumerate(SPACE.gene_sizes)]
        gate.check(trial, SPACE.decode([*sorted(genes[:3]), genes[3]]))
        return 1.0, 1.0

    gate, study = make_gate(), make_study()
    study.enqueue_trial(to_params(Row((4, 1, 3, 0))), user_attrs={"architecture": "4-1-3-0"})
    study.optimize(in_order, n_trials=1)
    assert study.trials[0].user_attrs["architecture"] == "1-3-4-0"


def test_proposals_in_numbers_of_numpy_can_be_stored(tmp_path: Path) -> None:
    gate = make_gate(to_params=lambda row: dict(zip("abcd", np.array(row.genes), strict=True)))
    study = optuna.create_study(storage=f"sqlite:///{tmp_path}/study.db", directions=["maximize", "minimize"])
    (proposed,) = gate.enqueue(study, 1, guide=Guide(generations=2, samples=4))
    (trial,) = study.get_trials()
    assert trial.system_attrs["fixed_params"] == dict(zip("abcd", proposed.genes, strict=True))


def test_parameters_without_names_are_told() -> None:
    gate = make_gate(to_params=lambda row: row.genes)
    with pytest.raises(
        TypeError, match=r"^to_params: expected a mapping from parameter names to values, got \(\d, \d, "
    ):
        gate.enqueue(make_study(), 1, guide=Guide(generations=2, samples=4))


def test_an_adapter_that_gives_no_predictor_is_told() -> None:
    gate, study = make_gate(), make_study()
    callbacks = [gate.adapt_callback(2, adapt=lambda table: None)]  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match=r"^adapt: expected a predictor that has learned from 2 results, got None\."):
        study.optimize(objective(gate, []), n_trials=6, callbacks=callbacks)


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ("resnet50", "toy: expected digits, got 'resnet50'"),
        (-1.5, r"toy: expected digits, got '-1\.5'"),
        ([50], r"toy: expected digits, got '\[50\]'"),
        (Row((0, 1, 2, 0)), r"notation: expected a string or list, got Row\("),
    ],
)
def test_an_attribute_that_is_no_architecture_is_named_with_its_trial(told: object, error: str) -> None:
    study = make_study()
    study.add_trial(optuna.trial.create_trial(values=[1.0, 1.0], user_attrs={"architecture": told}))
    with pytest.raises(ValueError, match=f"trial 0, attribute architecture: {error}.*add the trials to a new study"):
        make_gate().enqueue(study, 1)


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


@pytest.mark.parametrize("count", [0, -1, 1.5, 3.0, float("inf"), None])
def test_what_is_no_count_is_not_proposed(count: int) -> None:
    gate, study = make_gate(), make_study()
    for propose in (lambda: gate.enqueue(study, count), lambda: gate.enqueue_callback(count)):
        with pytest.raises(ValueError, match=r"^gate: count: expected (1 or more|a whole number), got"):
            propose()


def test_settings_in_place_of_a_guide_propose_nothing() -> None:
    gate, study, settings = make_gate(), make_study(), {"acquisition": "median"}
    for propose in (lambda: gate.enqueue(study, guide=settings), lambda: gate.enqueue_callback(guide=settings)):  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"^gate: expected a guide, got {'acquisition': 'median'}\. Make it with"):
            propose()
    for propose in (lambda: gate.enqueue(study, seed=None), lambda: gate.enqueue_callback(seed=None)):  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"^gate: seed: expected a whole number, got None\."):
            propose()


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
    with pytest.raises(
        ValueError, match=r"expected a predictor that knows .*, got one without latency_ms@toy\. Let it learn"
    ):
        study.optimize(objective(gate, trained), n_trials=8)
    callbacks = [gate.adapt_callback(6, adapt=adapt), gate.enqueue_callback(4, guide=Guide(generations=2, samples=4))]
    study.optimize(objective(gate, trained), n_trials=24, callbacks=callbacks)
    study.optimize(objective(gate, trained), n_trials=20, callbacks=callbacks[:1])  # random networks are pruned
    assert [len(table) for table in tables[:2]] == [6, 12]
    assert list(tables[0].columns) == ["space", "architecture", *OBJECTIVES[:2]]
    assert tables[0]["architecture"].tolist() == [SPACE.format(row) for row in trained[:6]]
    assert tables[0]["latency_ms@toy"].tolist() == [true_values(row)[1] for row in trained[:6]]
    stages = [trial.user_attrs.get("pruned_stage", 0) for trial in study.trials]
    first = next(index for index, stage in enumerate(stages) if stage)
    before = [trial for trial in study.trials[:first] if trial.state == TrialState.COMPLETE]
    assert len(before) >= 6  # nothing is pruned before it has learned


@pytest.mark.parametrize("proposes", [False, True])
def test_a_gate_that_joins_a_study_learns_before_it_is_asked(proposes: bool) -> None:
    study, first = make_study("RandomSampler"), make_gate()
    study.optimize(objective(first, []), n_trials=15)
    gate = make_gate(predictor=ToyPredictor(objectives=OBJECTIVES[:1]))  # has no latency to begin with
    gate.adapt_callback(every=5)
    if proposes:
        gate.enqueue(study, 1, guide=Guide(generations=2, samples=4))
        (trial,) = study.get_trials(states=(TrialState.WAITING,))
    else:
        study.optimize(objective(gate, []), n_trials=1)
        trial = study.trials[-1]
    assert trial.user_attrs["predicted"]["latency_ms@toy"]["median"] is not None


def test_proposals_are_pruned_at_the_risk_and_by_the_best_values_of_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, study, asked = make_gate(risk=0.001, best={"latency_ms@toy": 0.5}), make_study(), []
    with_front = Gate.with_front

    def spied(self: Gate, *args: Any) -> Gate:
        asked.append((self.levels, self._best.tolist()))
        return with_front(self, *args)

    monkeypatch.setattr(Gate, "with_front", spied)
    gate.enqueue(study, 1)
    gate.enqueue(study, 1, guide=Guide(generations=2, samples=4))
    assert asked == 2 * [(levels_of(0.001, OBJECTIVES[:2]), [-np.inf, 0.5])]


def test_without_more_words_it_learns_by_processes() -> None:
    class Shifted(ToyPredictor):
        def _centres(self, texts: Any, objectives: Any) -> Any:
            return super()._centres(texts, objectives) + 5

    gate, study, trained = make_gate(predictor=Shifted(sigma=0.5)), make_study("RandomSampler"), list[Row]()
    study.optimize(objective(gate, trained), n_trials=12, callbacks=[gate.adapt_callback(4)])
    last = study.trials[-1]
    predicted = [last.user_attrs["predicted"][name]["median"] for name in OBJECTIVES[:2]]
    np.testing.assert_allclose(predicted, true_values(SPACE.parse(last.user_attrs["architecture"]))[:2], atol=3)


def test_studies_with_neighbouring_seeds_draw_other_networks() -> None:
    drawn = []
    for seed, trials in ((1, 0), (0, 1)):
        gate, study = make_gate(predictor=ToyPredictor(objectives=OBJECTIVES[:1])), make_study("RandomSampler")
        gate.adapt_callback(every=5)
        study.optimize(objective(gate, []), n_trials=trials)
        drawn.append(gate.enqueue(study, 5, seed=seed))
    assert drawn[0] != drawn[1]
