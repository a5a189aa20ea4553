"""What a search refuses, and that it leaves nothing behind then."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optuna.distributions import IntDistribution

from nasrlm.prediction import Prediction
from studies.evaluators import TableEvaluator
from studies.folder import StudyError, config_given
from studies.search import search
from studies.storage.optuna_storage import open_storage, stored_study
from tests.studies.guided import guided_config, run
from tests.studies.scenes import (
    OBJECTIVES,
    SPACE,
    Row,
    ToyEvaluator,
    history_of,
    toy_config,
    toy_results,
    toy_table,
)

pytestmark = pytest.mark.usefixtures("without_figures")


def test_a_stored_study_that_was_changed_is_noticed(tmp_path: Path) -> None:
    config = toy_config(storage=str(tmp_path / "journal.log"), trials=10)
    search(config, SPACE, ToyEvaluator(), tmp_path / "out")
    (tmp_path / "journal.log").unlink()
    with stored_study(config, is_new=True) as stored:
        assert stored is not None
        stored.study.ask({"gene_0": IntDistribution(0, 1)})
    with pytest.raises(StudyError, match=r"expected trial 0 of toy-nsga2-3-\w+ to be {'gene_0'.*Was the study changed"):
        search(config, SPACE, ToyEvaluator(), tmp_path / "out", resume=True)


def test_what_a_search_would_ignore_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected a config without a guide, got one\. Use search_with_model"):
        search(toy_config(guide={}), SPACE, ToyEvaluator(), tmp_path / "out")
    with pytest.raises(ValueError, match="expected a config of space toy, got one of nasbench201"):
        search(toy_config(space="nasbench201"), SPACE, ToyEvaluator(), tmp_path / "out")
    with pytest.raises(ValueError, match=r"^search: expected the path of a folder, got None\."):
        search(toy_config(), SPACE, ToyEvaluator(), None)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("engine", ["optuna", "pymoo"])
def test_a_space_of_one_architecture_is_refused(engine: str, tmp_path: Path) -> None:
    class One(type(SPACE)):  # type: ignore[misc]
        gene_sizes = (1, 1, 1, 1)

        def _build(self, genotype: tuple[int, ...]) -> Row:
            return Row(genotype)

    with pytest.raises(ValueError, match="search: expected a space of two or more architectures, toy has one"):
        search(toy_config(trials=5, engine=engine), One(), ToyEvaluator(), tmp_path / "one")
    assert not (tmp_path / "one").exists()


def test_what_is_no_evaluator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"expected an evaluator, or a function that takes a notation, got 'surrogate'"
    ):
        search(toy_config(), SPACE, "surrogate", tmp_path)  # type: ignore[arg-type]


def test_a_study_of_real_results_does_not_go_on_with_predictions(tmp_path: Path) -> None:
    search(toy_config(), SPACE, toy_results, tmp_path)
    assert json.loads((tmp_path / "study.json").read_text())["config"]["evaluator"] == "function"
    with pytest.raises(StudyError, match=r"got evaluator 'surrogate' \(recorded 'function'\)"):
        search(toy_config(), SPACE, ToyEvaluator(), tmp_path, resume=True)


def test_an_older_study_that_does_not_tell_what_answered_goes_on(tmp_path: Path) -> None:
    search(toy_config(trials=20), SPACE, toy_results, tmp_path)
    study = json.loads((tmp_path / "study.json").read_text())
    del study["config"]["space_sha256"]
    (tmp_path / "study.json").write_text(json.dumps(study | {"config": {**study["config"], "evaluator": "surrogate"}}))
    assert search(toy_config(trials=30), SPACE, toy_results, tmp_path, resume=True).evaluations == 30


def test_infinite_answers_are_refused(tmp_path: Path) -> None:
    class Endless(ToyEvaluator):
        def evaluate(self, architectures: Sequence[Row]) -> Prediction:
            return replace(found := super().evaluate(architectures), values=found.values / 0.0)

    with (
        np.errstate(divide="ignore"),
        pytest.raises(ValueError, match=r"expected a finite number for accuracy@toy, got inf"),
    ):
        search(toy_config(), SPACE, Endless(), tmp_path)


def test_a_bad_storage_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="storage: expected a database URL or a journal file, got 'what://is'"):
        search(toy_config(storage="what://is"), SPACE, ToyEvaluator(), tmp_path)


def test_a_study_is_not_overwritten(tmp_path: Path) -> None:
    config = toy_config(trials=10)
    search(config, SPACE, ToyEvaluator(), tmp_path)
    with pytest.raises(StudyError, match=r"expected a folder without a study.*Resume it"):
        search(config, SPACE, ToyEvaluator(), tmp_path)
    evaluator = ToyEvaluator()
    search(config, SPACE, evaluator, tmp_path, resume=True)  # finished: nothing is left to evaluate
    assert evaluator.keys == []


def test_resuming_another_config_names_the_difference(tmp_path: Path) -> None:
    search(toy_config(trials=10), SPACE, ToyEvaluator(), tmp_path)
    with pytest.raises(StudyError, match=r"got population_size 8 \(recorded 10\), seed 4 \(recorded 3\)\. Resume with"):
        search(toy_config(trials=20, population_size=8, seed=4), SPACE, ToyEvaluator(), tmp_path, resume=True)
    assert json.loads((tmp_path / "study.json").read_text())["config"]["trials"] == 10


def test_options_of_a_study_are_kept_where_it_is_resumed_without(tmp_path: Path) -> None:
    search(toy_config(options={"seed": 3}), SPACE, ToyEvaluator(), tmp_path)
    for trials in (60, 70):
        search(toy_config(trials=trials), SPACE, ToyEvaluator(), tmp_path, resume=True)
        assert config_given(tmp_path)["options"] == {"seed": 3}
    search(toy_config(trials=70, options={"seed": 3, "truth": "a"}), SPACE, ToyEvaluator(), tmp_path, resume=True)
    assert config_given(tmp_path)["options"] == {"seed": 3, "truth": "a"}


def test_resuming_with_fewer_choices_names_the_history(tmp_path: Path) -> None:
    class Shrunk(type(SPACE)):  # type: ignore[misc]
        gene_sizes = (3, 3, 3, 2)

    expected = r"history\.parquet, row \d+: .*got .*\. Has the space changed since then\? Use another folder\."
    search(toy_config(trials=10), SPACE, ToyEvaluator(), tmp_path / "a")
    with pytest.raises(StudyError, match=expected):
        search(toy_config(trials=20), Shrunk(), ToyEvaluator(), tmp_path / "a", resume=True)
    run(guided_config(), tmp_path / "b")
    with pytest.raises(StudyError, match=expected):
        run(guided_config(trials=20), tmp_path / "b", space=Shrunk(), resume=True)


def test_a_study_is_not_given_fewer_trials(tmp_path: Path) -> None:
    search(toy_config(trials=20), SPACE, ToyEvaluator(), tmp_path)
    with pytest.raises(StudyError, match=r"expected at least the 20 trials of the study, got 19\. Resume"):
        search(toy_config(trials=19), SPACE, ToyEvaluator(), tmp_path, resume=True)


@pytest.mark.parametrize("damage", ["truncated", "text", "empty", "columns"])
def test_a_damaged_history_is_named(damage: str, tmp_path: Path) -> None:
    config = toy_config(trials=10)
    search(config, SPACE, ToyEvaluator(), tmp_path)
    path = tmp_path / "history.parquet"
    if damage == "columns":
        history_of(tmp_path).drop(columns="latency_ms@toy").to_parquet(path)
    else:
        path.write_bytes({"truncated": path.read_bytes()[:-40], "text": b"hello", "empty": b""}[damage])
    with pytest.raises(StudyError, match=re.escape(f"{path}: expected the history of a study")):
        search(config, SPACE, ToyEvaluator(), tmp_path, resume=True)


def test_a_damaged_study_file_is_named(tmp_path: Path) -> None:
    config = toy_config(trials=10)
    search(config, SPACE, ToyEvaluator(), tmp_path)
    for content in ("{", "[]", '{"config": 3}'):
        (tmp_path / "study.json").write_text(content)
        with pytest.raises(StudyError, match=re.escape(f"{tmp_path / 'study.json'}: expected")):
            search(config, SPACE, ToyEvaluator(), tmp_path, resume=True)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        *(({"config": {"trials": trials}}, "whole numbers as trials, got ") for trials in ("60", None, 2.5)),
        *(({"config": {"earlier_trials": x}}, "whole numbers as earlier_trials, got ") for x in (["5"], None, 5)),
        ({"seconds": "3"}, "a number of seconds, got '3'"),
    ],
)
def test_numbers_of_an_edited_study_file_are_checked(change: dict[str, object], expected: str, tmp_path: Path) -> None:
    search(toy_config(trials=10), SPACE, ToyEvaluator(), tmp_path)
    study = json.loads((tmp_path / "study.json").read_text())
    edited = study | change | {"config": study["config"] | change.get("config", {})}  # type: ignore[operator]
    (tmp_path / "study.json").write_text(json.dumps(edited))
    with pytest.raises(StudyError, match=re.escape(f"{tmp_path / 'study.json'}: expected {expected}")):
        search(toy_config(trials=10), SPACE, ToyEvaluator(), tmp_path, resume=True)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match=r"file/out: expected a folder that can be created, got Not a directory\. Choose"):
        search(toy_config(), SPACE, ToyEvaluator(), tmp_path / "file" / "out")


def test_a_folder_in_which_a_search_runs_is_refused(tmp_path: Path) -> None:
    config = toy_config(trials=20)

    class Meeting(ToyEvaluator):
        def evaluate(self, architectures: Sequence[Row]) -> Prediction:
            with pytest.raises(
                StudyError, match="expected a folder that no other search uses, got one that a running search uses"
            ):
                search(config, SPACE, ToyEvaluator(), tmp_path, resume=True)
            return super().evaluate(architectures)

    assert search(config, SPACE, Meeting(), tmp_path).evaluations == 20
    assert search(config, SPACE, ToyEvaluator(breaks_at=0), tmp_path, resume=True).evaluations == 20


def test_an_evaluator_must_answer_every_objective(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"evaluator: expected accuracy@toy, latency_ms@toy, got no latency_ms@toy"):
        search(toy_config(), SPACE, ToyEvaluator(OBJECTIVES[:1]), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_what_fails_at_once_leaves_no_study_behind(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="expected a database URL or a journal file"):
        search(toy_config(storage="nosuch://storage"), SPACE, ToyEvaluator(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    config = toy_config(trials=20)

    class FailingLater(ToyEvaluator):
        def evaluate(self, architectures: Sequence[Row]) -> Prediction:
            if self.batches:
                raise ValueError("later")
            return super().evaluate(architectures)

    with pytest.raises(ValueError, match="later"):
        search(config, SPACE, FailingLater(), tmp_path / "out")
    with pytest.raises(StudyError, match="expected a folder without a study"):
        search(config, SPACE, ToyEvaluator(), tmp_path / "out")


def test_a_storage_is_named_without_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "studies.storage.optuna_storage.open_storage", lambda name: open_storage(str(tmp_path / "journal.log"))
    )
    config = toy_config(trials=10, storage="postgresql://me:secret@host/studies")
    search(config, SPACE, ToyEvaluator(), tmp_path / "out")
    with pytest.raises(StudyError, match=r"^storage postgresql://me@host/studies: expected no study"):
        search(config, SPACE, ToyEvaluator(), tmp_path / "elsewhere")


def test_a_truth_must_have_complete_rows(tmp_path: Path) -> None:
    truth = TableEvaluator(SPACE, toy_table().assign(**{"latency_ms@toy": np.nan}), objectives=OBJECTIVES)
    with pytest.raises(
        ValueError, match="truth table: expected rows with accuracy@toy, latency_ms@toy, got none in 480 rows"
    ):
        search(toy_config(trials=10), SPACE, ToyEvaluator(), tmp_path, truth=truth)
    accuracies = TableEvaluator(SPACE, toy_table(), objectives=OBJECTIVES[:1])
    with pytest.raises(ValueError, match="truth table: expected accuracy@toy, latency_ms@toy, got no latency_ms@toy"):
        search(toy_config(trials=10), SPACE, ToyEvaluator(), tmp_path, truth=accuracies)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"config": {"trials": 10}}, "search: expected a SearchConfig, got dict."),
        ({"truth": toy_table()}, "truth: expected a TableEvaluator, got DataFrame."),
        ({"known": ["0-1-2-3"]}, "known: expected a list of architectures, got ['0-1-2-3']. Parse notations"),
        ({"known": 3}, "known: expected a list of architectures, got 3. Parse notations"),
        ({"resume": "no"}, "search: resume: expected True or False, got 'no'."),
    ],
)
def test_arguments_of_other_kinds_are_refused(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    arguments = {"config": toy_config(), "space": SPACE, "evaluator": ToyEvaluator(), "out": tmp_path / "out", **given}
    with pytest.raises(ValueError, match=re.escape(message)):
        search(**arguments)
    assert not (tmp_path / "out").exists()
