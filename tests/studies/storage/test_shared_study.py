"""Trials that workers share, where two of them do something at once."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from optuna.exceptions import StorageInternalError
from optuna.trial import TrialState
from sqlalchemy.exc import OperationalError

from studies.config import SearchConfig
from studies.folder import StudyError
from studies.history import CHOSEN
from studies.ledger import Entry, Ledger
from studies.optuna_trials import PREDICTED, read_predictions, recorded_predictions
from studies.storage import workers
from studies.storage.locks import held_alone
from studies.storage.optuna_storage import open_storage
from studies.storage.shared_study import SharedStudy, TakenTrial
from tests.studies import killed
from tests.studies.scenes import ToySpace

SPACE, CONFIG = ToySpace(), killed.worker_config()
Workers = tuple[SharedStudy[tuple[int, ...]], SharedStudy[tuple[int, ...]], TakenTrial]


def chosen(genotype: tuple[int, ...]) -> Entry:
    architecture = SPACE.decode(genotype)
    num_objectives = len(CONFIG.objectives)
    return Entry(
        architecture=SPACE.format(architecture),
        key=SPACE.architecture_key(architecture),
        genotype=genotype,
        batch=0,
        status=CHOSEN,
        stage=0,
        reason="",
        predicted=np.arange(3.0 * num_objectives).reshape(num_objectives, 3),
        real=np.full(num_objectives, np.nan),
    )


@contextmanager
def two_workers(config: SearchConfig, folder: Path) -> Iterator[Workers]:
    """One that evaluates, one beside it, and the trial that the first has taken."""
    journal = str(folder / "journal.log")
    with (
        SharedStudy(config, SPACE, journal, Ledger(config, [])) as evaluates,
        SharedStudy(config, SPACE, journal, Ledger(config, [])) as other,
    ):
        with evaluates.turn():
            evaluates.add([chosen(SPACE.encode(SPACE.sample(np.random.default_rng(0))))])
            taken = evaluates.take()
        assert taken is not None
        yield evaluates, other, taken


def test_a_result_told_while_another_worker_looks_for_the_dead_is_kept(tmp_path: Path) -> None:
    with two_workers(CONFIG, tmp_path) as (evaluates, looks, taken):
        is_held = looks.locks.is_held

        def told_just_before(number: int) -> bool:
            evaluates.tell(taken, np.ones(len(CONFIG.objectives)))
            return is_held(number)

        with mock.patch.object(looks.locks, "is_held", told_just_before), looks.turn() as ledger:
            assert [entry.real.tolist() for entry in ledger.entries] == [[1.0] * len(CONFIG.objectives)]
        assert [trial.state for trial in looks.study.get_trials()] == [TrialState.COMPLETE]


RESULT = np.ones(len(CONFIG.objectives))


def test_a_result_that_a_dead_worker_had_is_taken_up(tmp_path: Path) -> None:
    with two_workers(CONFIG, tmp_path) as (evaluates, other, taken):
        with (
            mock.patch.object(evaluates.study, "tell", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            evaluates.tell(taken, RESULT)
        evaluates.locks.close()
        with other.turn() as ledger:
            assert [entry.real.tolist() for entry in ledger.evaluated] == [RESULT.tolist()]
            assert other.take() is None
        assert [trial.state for trial in other.study.get_trials()] == [TrialState.COMPLETE]


@pytest.mark.parametrize("begun", [False, True])
def test_a_result_of_a_trial_that_was_taken_over_is_that_of_its_copy(begun: bool, tmp_path: Path) -> None:
    with two_workers(CONFIG, tmp_path) as (evaluates, other, taken):
        evaluates.locks.close()  # as where its connection broke
        with other.turn():
            copy = other.take() if begun else None
        evaluates.tell(taken, RESULT)
        if copy is not None:
            other.tell(copy, 2 * RESULT)  # too late
        with other.turn() as ledger:
            assert [entry.real.tolist() for entry in ledger.evaluated] == [RESULT.tolist()]
        assert [trial.state for trial in other.study.get_trials()] == [TrialState.FAIL, TrialState.COMPLETE]


def test_a_worker_of_another_seed_is_told_that_it_works_for_another_study(tmp_path: Path) -> None:
    other, journal = replace(CONFIG, seed=CONFIG.seed + 1), str(tmp_path / "journal.log")
    with two_workers(CONFIG, tmp_path) as (evaluates, _, taken):
        with pytest.warns(UserWarning, match=r"starts next to toy-nsga2-3-\w+, which has running trials\. To join it"):
            SharedStudy(other, SPACE, journal, Ledger(other, [])).__exit__()
        evaluates.tell(taken, RESULT)
    later = replace(CONFIG, seed=CONFIG.seed + 2)  # as studies of several seeds do in one storage
    SharedStudy(later, SPACE, journal, Ledger(later, [])).__exit__()


def test_a_storage_that_does_not_answer_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studies.storage.shared_study.TRY_SECONDS", (0, 0, 0))
    with SharedStudy(CONFIG, SPACE, str(tmp_path / "journal.log"), Ledger(CONFIG, [])) as study:
        answers = mock.Mock(side_effect=[StorageInternalError("gone"), OperationalError("", {}, OSError("gone")), 3])
        assert study.patiently(answers) == 3
        with pytest.raises(StudyError, match=r"journal\.log: expected a response, got gone\. Resume the search"):
            study.patiently(mock.Mock(side_effect=StorageInternalError("gone")))
        with pytest.raises(StudyError, match=r"expected a response, got .*No space left on device\. Resume"):
            study.patiently(mock.Mock(side_effect=OSError(28, "No space left on device")))


def nothing_more(_: Ledger) -> None:
    """The next batch where the trials are spent."""


def test_a_worker_that_waits_tells_for_whom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MESSAGE_SECONDS", 0.0)
    config = killed.worker_config(trials=1)
    lines: list[str] = []
    with two_workers(config, tmp_path) as (evaluates, waits, taken):

        def tell(line: str) -> None:
            lines.append(line)
            evaluates.tell(taken, RESULT)

        workers.work(nothing_more, mock.Mock(), waits, mock.Mock(), tell)
    (line,) = lines
    assert line.startswith(f"waiting for {taken.architecture} of ")
    assert f", process {os.getpid()}, since 20" in line


def test_what_was_taken_in_a_turn_that_fails_is_let_go(tmp_path: Path) -> None:
    with two_workers(CONFIG, tmp_path) as (evaluates, other, taken):
        evaluates.tell(taken, RESULT)
        with suppress(ZeroDivisionError), evaluates.turn():
            evaluates.add([chosen(SPACE.encode(SPACE.sample(np.random.default_rng(1))))])
            assert evaluates.take() is not None
            raise ZeroDivisionError
        with other.turn():
            assert other.take() is not None


def test_a_worker_that_waits_tells_changes_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = killed.worker_config(trials=1)
    with two_workers(config, tmp_path) as (evaluates, waits, taken):
        told: list[Ledger] = []
        pauses = mock.Mock(side_effect=[None, None, lambda: None])
        ends = partial(evaluates.tell, taken, np.ones(len(config.objectives)))
        monkeypatch.setattr(workers.time, "sleep", lambda _: pauses() and ends())
        workers.work(nothing_more, mock.Mock(), waits, told.append)
    assert pauses.call_count == 3
    assert [len(ledger.evaluated) for ledger in told] == [0, 1]


@pytest.mark.parametrize("storage", ["{}/study", "sqlite:///{}/study"])
def test_a_storage_has_the_same_locks_by_another_name(storage: str, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/study").symlink_to(tmp_path / "study")
    with (
        SharedStudy(CONFIG, SPACE, storage.format(tmp_path), Ledger(CONFIG, [])) as first,
        SharedStudy(CONFIG, SPACE, storage.format(tmp_path / "linked"), Ledger(CONFIG, [])) as second,
    ):
        first.locks.hold(0)
        assert second.locks.is_held(0)


def test_locks_lie_beside_their_storage_where_a_path_names_the_space(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "journal.log"))
    with held_alone(storage, str(tmp_path / "journal.log"), f"{tmp_path / 'my_space.py'}:Mine-nsga2-0-12345678"):
        assert sorted(x.name for x in tmp_path.iterdir()) == ["journal.log", "journal.log.locks"]


def test_a_trial_tells_predictions_by_name(tmp_path: Path) -> None:
    entry = chosen(SPACE.encode(SPACE.sample(np.random.default_rng(0))))
    with SharedStudy(CONFIG, SPACE, str(tmp_path / "journal.log"), Ledger(CONFIG, [])) as study:
        with study.turn():
            study.add([entry])
        (trial,) = study.study.get_trials()
        assert trial.user_attrs[PREDICTED][CONFIG.objectives[1]] == {"low": 4.0, "median": 3.0, "high": 5.0}
        (known,) = study.ledger().entries
        np.testing.assert_array_equal(known.predicted, entry.predicted)


def test_predictions_of_older_studies_are_lists() -> None:
    predicted = np.array([[2.0, 1.0, 3.0], [np.nan] * 3])
    told = recorded_predictions(("a", "b"), predicted)
    assert told == {"a": {"low": 1.0, "median": 2.0, "high": 3.0}, "b": dict.fromkeys(("low", "median", "high"))}
    for given in (told, [[2.0, 1.0, 3.0], [None] * 3]):
        np.testing.assert_array_equal(read_predictions(("a", "b"), given), predicted)
