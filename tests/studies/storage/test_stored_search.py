"""Searches whose trials are kept in a storage."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import optuna
import pandas as pd
import pytest
from optuna.trial import TrialState

from nasrlm.prediction import Prediction
from spaces import get_space
from studies.evaluators import FunctionEvaluator
from studies.folder import DIGESTS, StudyError
from studies.optuna_trials import directions
from studies.search import search
from studies.storage import optuna_storage
from studies.storage.optuna_storage import open_storage, study_name
from tests.studies.guided import guided_config, run
from tests.studies.scenes import (
    OBJECTIVES,
    SPACE,
    HalfFailing,
    Row,
    ToyEvaluator,
    ToyResults,
    ToySpace,
    history_of,
    toy_config,
)

pytestmark = pytest.mark.usefixtures("without_figures")


@pytest.mark.parametrize("storage", ["sqlite:///{}/study.db", "{}/journal.log"])
def test_storage_keeps_the_results(storage: str, tmp_path: Path) -> None:
    config = guided_config(storage=storage.format(tmp_path), constraints=["latency_ms@toy<=8"])
    first, rest = ToyResults(config.objectives, breaks_at=6), ToyResults(config.objectives)
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path / "out", first)
    run(config, tmp_path / "out", rest, resume=True)
    space, asked = ToySpace(), first.asked + rest.asked
    assert len({space.architecture_key(space.parse(notation)) for notation in asked}) == len(asked) == 14
    study = optuna.load_study(study_name=study_name(config), storage=open_storage(config.storage or ""))
    trials = study.get_trials(deepcopy=False)
    (failed,) = [trial for trial in trials if trial.state == TrialState.FAIL]
    (again,) = [trial for trial in trials if trial.user_attrs.get("retry_of") == failed.number]
    assert [trial for trial in trials if "pruned_stage" not in trial.user_attrs].index(failed) == 6
    assert again.params == failed.params
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    history = history_of(tmp_path / "out")
    evaluated = history[history["status"] == "evaluated"]
    assert [trial.user_attrs["architecture"] for trial in complete if trial is not again] == [
        name for name in evaluated["architecture"] if name != again.user_attrs["architecture"]
    ]
    rows = evaluated.set_index("architecture")
    for trial in complete:
        row = rows.loc[trial.user_attrs["architecture"]]
        assert trial.values == row[study.metric_names].tolist()
        assert (trial.constraints["latency_ms@toy<=8"] <= 0) == row["feasible"]
        assert trial.user_attrs["worker"].endswith(f"process {os.getpid()}")


class Wandering(ToyResults):
    """Changes the working directory with every answer."""

    def _result(self, notation: str) -> dict[str, float]:
        folder = Path(f"evaluation {len(self.asked)}")
        folder.mkdir()
        os.chdir(folder)
        return super()._result(notation)


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("storage", [None, "journal.log", "sqlite:///study.db"])
def test_an_evaluator_may_change_the_working_directory(
    storage: str | None, guided: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, evaluator = guided_config(storage=storage), Wandering(OBJECTIVES[:2])
    monkeypatch.chdir(tmp_path)
    if guided:
        run(config, Path("out"), evaluator)
    else:
        search(replace(config, guide=None), ToySpace(), evaluator, Path("out"))
    history = history_of(tmp_path / "out")
    evaluated = history[history["status"] == "evaluated"] if guided else history
    assert evaluated["architecture"].tolist() == evaluator.asked
    assert [path.name for path in tmp_path.glob("evaluation 0/*")] == ["evaluation 1"]


def test_without_a_kill_a_storage_changes_nothing(tmp_path: Path) -> None:
    run(guided_config(), tmp_path / "alone")
    run(guided_config(), tmp_path / "stored", storage=str(tmp_path / "journal.log"))
    pd.testing.assert_frame_equal(history_of(tmp_path / "stored"), history_of(tmp_path / "alone"))


def test_whoever_comes_later_finds_the_work_done(tmp_path: Path) -> None:
    config = guided_config(storage=str(tmp_path / "journal.log"))
    first = run(config, tmp_path / "first")
    evaluator = ToyResults(config.objectives)
    assert run(config, tmp_path / "second", evaluator).front == first.front
    assert evaluator.asked == []


def test_whoever_comes_later_gives_a_stored_study_more_evaluations(tmp_path: Path) -> None:
    config = guided_config(storage=str(tmp_path / "journal.log"))
    less, evaluator = replace(config, trials=6), ToyResults(config.objectives)
    run(less, tmp_path / "first")
    assert run(config, tmp_path / "second", evaluator).evaluations == 14
    assert len(evaluator.asked) == 8
    with pytest.raises(StudyError, match=r"storage .*expected at least the 14 trials of the study, got 6\. Give"):
        run(less, tmp_path / "first", resume=True)
    assert run(config, tmp_path / "first", resume=True).evaluations == 14


@pytest.mark.parametrize("guided", [False, True])
def test_a_stored_study_whose_name_has_its_trials_goes_on(guided: bool, tmp_path: Path) -> None:
    """As names were before studies could be given more."""
    config = guided_config(trials=8, storage=str(tmp_path / "journal.log"))
    config = config if guided else replace(config, guide=None)
    values = {name: value for name, value in config.to_dict().items() if name not in ("storage", *DIGESTS)}
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]
    storage = open_storage(config.storage or "")
    study = optuna.create_study(
        storage=storage, study_name=f"toy-nsga2-3-{digest}", directions=directions(config.goals)
    )
    for trials in (8, 14, 20):
        given = replace(config, trials=trials)
        if guided:
            run(given, tmp_path / "out", resume=True)
        else:
            search(given, ToySpace(), ToyEvaluator(), tmp_path / "out", resume=True)
        assert len([trial for trial in study.get_trials() if trial.state == TrialState.COMPLETE]) == trials
    assert optuna.get_all_study_names(storage) == [study.study_name]


def test_another_checkpoint_does_not_join(tmp_path: Path) -> None:
    config = guided_config(storage=str(tmp_path / "journal.log"), checkpoint_sha256="one")
    run(config, tmp_path / "first")
    with pytest.raises(
        StudyError, match=r"storage .*expected the checkpoint that the study was started with, one, got two"
    ):
        run(replace(config, checkpoint_sha256="two"), tmp_path / "second")
    assert run(replace(config, checkpoint_sha256=""), tmp_path / "third").evaluations == 14


def test_a_table_of_another_path_is_the_same_study_and_other_settings_are_told(tmp_path: Path) -> None:
    storage = str(tmp_path / "journal.log")
    config = guided_config(storage=storage, evaluator="table:/data/toy.csv")
    run(config, tmp_path / "first")
    elsewhere = ToyResults(breaks_at=0)
    run(replace(config, evaluator="table:../toy.csv"), tmp_path / "second", elsewhere)
    assert elsewhere.asked == []
    other = guided_config(storage=storage, evaluator="table:toy.csv", constraints=["latency_ms@toy<=8"])
    with pytest.warns(
        UserWarning, match=rf"journal\.log: .* starts next to {study_name(config)}, which has other settings"
    ):
        run(other, tmp_path / "third")


def test_another_table_of_the_same_name_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "toy.csv").write_text("b" if name == "b" else "a")
    storage = str(tmp_path / "journal.log")
    configs = {name: guided_config(storage=storage, evaluator=f"table:{tmp_path}/{name}/toy.csv") for name in "abc"}
    run(configs["a"], tmp_path / "first")
    with pytest.raises(StudyError, match=r"the table that the study was started with, .*a/toy\.csv, got another"):
        run(configs["b"], tmp_path / "second")
    same = ToyResults(breaks_at=0)
    run(configs["c"], tmp_path / "third", same)
    assert same.asked == []
    (tmp_path / "a" / "toy.csv").write_text("more")  # its own table may grow
    run(configs["a"], tmp_path / "fourth", same)


def test_a_study_whose_name_has_the_path_of_its_table_goes_on(tmp_path: Path) -> None:
    config = guided_config(storage=str(tmp_path / "journal.log"), evaluator="table:/data/toy.csv")
    with mock.patch.object(optuna_storage, "study_name", lambda config: optuna_storage._named(config, {})):
        run(config, tmp_path / "first")
    elsewhere = ToyResults(breaks_at=0)
    run(config, tmp_path / "second", elsewhere)
    assert elsewhere.asked == []


def test_what_has_no_locks_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        StudyError, match=r"expected a journal file, postgresql:// or sqlite:/// with a file, got sqlite"
    ):
        run(guided_config(storage="sqlite:///:memory:"), tmp_path)


def test_no_answer_is_a_pruned_trial(tmp_path: Path) -> None:
    config = guided_config(storage=str(tmp_path / "journal.log"))
    run(config, tmp_path / "stored", HalfFailing(OBJECTIVES[:2]))
    study = optuna.load_study(study_name=study_name(config), storage=open_storage(config.storage or ""))
    evaluated = [trial for trial in study.trials if "pruned_stage" not in trial.user_attrs]
    assert [trial.state.name for trial in evaluated] == ["COMPLETE", "PRUNED"] * 7


@pytest.mark.parametrize("exhaustive", [False, True])
def test_what_the_gate_pruned_is_a_trial_that_tells_why(exhaustive: bool, tmp_path: Path) -> None:
    config = guided_config(storage=str(tmp_path / "journal.log"), guide={"exhaustive": exhaustive})
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path / "out", ToyResults(config.objectives, breaks_at=6))
    assert run(config, tmp_path / "out", resume=True).evaluations == 14
    assert run(config, tmp_path / "later").pruned == 0  # another worker does not read them
    history = history_of(tmp_path / "out").set_index("architecture")
    study = optuna.load_study(study_name=study_name(config), storage=open_storage(config.storage or ""))
    pruned = [trial for trial in study.trials if trial.state == TrialState.PRUNED]
    told = {trial.user_attrs["architecture"]: trial.user_attrs for trial in pruned}
    space = ToySpace()
    assert len({space.architecture_key(space.parse(name)) for name in told}) == len(pruned)
    by_gate = history[history["status"] == "pruned"]
    assert len(by_gate)
    if exhaustive:
        assert not pruned
        return
    assert set(told) >= set(by_gate.index)
    for name, row in by_gate.iterrows():
        assert told[name] == {"architecture": name, "pruned_stage": row["stage"], "pruned_reason": row["reason"]}


@pytest.mark.parametrize("storage", ["sqlite:///{}/study.db", "{}/journal.log"])
def test_storage_keeps_the_study(storage: str, tmp_path: Path) -> None:
    location = storage.format(tmp_path)
    config = toy_config(storage=location, trials=40, constraints=["latency_ms@toy<=12", "soft:energy_mj@toy<=9"])
    broken, rest = ToyEvaluator(breaks_at=2), ToyEvaluator()
    with pytest.raises(KeyboardInterrupt):
        search(config, SPACE, broken, tmp_path / "out")
    search(config, SPACE, rest, tmp_path / "out", resume=True)
    search(replace(config, storage=None), SPACE, ToyEvaluator(), tmp_path / "memory")
    pd.testing.assert_frame_equal(history_of(tmp_path / "out"), history_of(tmp_path / "memory"))
    keys = broken.keys + rest.keys
    assert len(set(keys)) == len(keys) == 40
    assert history_of(tmp_path / "out")["key"].tolist() == keys

    study = optuna.load_study(study_name=study_name(config), storage=open_storage(location))
    trials = study.get_trials(deepcopy=False)
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * 40
    assert study.metric_names == ["accuracy@toy", "latency_ms@toy"]
    assert [direction.name for direction in study.directions] == ["MAXIMIZE", "MINIMIZE"]
    history = history_of(tmp_path / "out")
    assert [trial.values for trial in trials] == history[study.metric_names].to_numpy().tolist()
    assert [trial.user_attrs["architecture"] for trial in trials] == history["architecture"].tolist()
    feasible = [trial.constraints["latency_ms@toy<=12"] <= 0 for trial in trials]
    assert feasible == history["feasible"].tolist()

    with pytest.raises(StudyError, match=rf"expected no study {study_name(config)}, got one with 40 trials"):
        search(config, SPACE, ToyEvaluator(), tmp_path / "elsewhere")
    more = replace(config, trials=55)
    search(more, SPACE, ToyEvaluator(), tmp_path / "out", resume=True)
    study = optuna.load_study(study_name=study_name(more), storage=open_storage(location))
    named = [trial.user_attrs["architecture"] for trial in study.get_trials(deepcopy=False)]
    assert named == history_of(tmp_path / "out")["architecture"].tolist()
    assert len(named) == 55
    assert len(optuna.get_all_study_names(open_storage(location))) == 1


@pytest.mark.parametrize("storage", ["sqlite:///{}/study.db", "{}/journal.log"])
def test_a_search_without_a_guide_is_not_shared(storage: str, tmp_path: Path) -> None:
    config = toy_config(storage=storage.format(tmp_path), trials=20)

    class Meeting(ToyEvaluator):
        def evaluate(self, architectures: Sequence[Row]) -> Prediction:
            with pytest.raises(StudyError, match=r"expected toy-nsga2-\S+ not to be in use, got one that another"):
                search(config, SPACE, ToyEvaluator(), tmp_path / "second")
            return super().evaluate(architectures)

    search(config, SPACE, Meeting(), tmp_path / "first")
    assert not (tmp_path / "second").exists()
    assert search(config, SPACE, ToyEvaluator(breaks_at=0), tmp_path / "first", resume=True).evaluations == 20


def test_a_storage_names_what_was_evaluated(tmp_path: Path) -> None:
    space = get_space("nasbench201")
    evaluator = FunctionEvaluator(space, lambda notation: dict.fromkeys(OBJECTIVES, 1.0), objectives=OBJECTIVES[:2])
    config = toy_config(space=space.name, storage=str(tmp_path / "journal.log"), trials=20, evaluator="function")
    search(config, space, evaluator, tmp_path / "out")
    study = optuna.load_study(study_name=study_name(config), storage=open_storage(config.storage or ""))
    named = [trial.user_attrs["architecture"] for trial in study.get_trials(deepcopy=False)]
    assert named == history_of(tmp_path / "out")["architecture"].tolist()
