"""Storages that lost something, or are something else."""

import multiprocessing
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from optuna.exceptions import StorageInternalError
from optuna.study import StudyDirection
from sqlalchemy.exc import OperationalError

from nasrlm.files import UnwritableError
from studies.folder import HISTORY_FILE, STUDY_FILE, StudyError, config_given
from studies.ledger import Ledger
from studies.storage import optuna_storage
from studies.storage.optuna_storage import open_storage
from tests.studies.guided import guided_config, run

pytestmark = pytest.mark.usefixtures("without_figures")


def test_results_that_the_storage_lost_are_not_dropped(tmp_path: Path) -> None:
    journal, out = tmp_path / "journal.log", tmp_path / "out"
    run(guided_config(), out, storage=str(journal))
    history = (out / HISTORY_FILE).read_bytes()
    journal.write_bytes(b"")
    with pytest.raises(
        StudyError, match=r"journal\.log: expected the \d+ results of the study's history, got all but \d+"
    ):
        run(guided_config(), out, storage=str(journal), resume=True)
    assert (out / HISTORY_FILE).read_bytes() == history


@pytest.mark.parametrize("storage", ["journal.log", "sqlite:///study.db"])
def test_a_relative_storage_is_not_created_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    run(guided_config(), tmp_path / "out", storage=storage)
    monkeypatch.chdir(tmp_path / "there")
    with pytest.raises(StudyError, match=r"expected the \d+ results of the study's history, got no such file"):
        run(guided_config(), tmp_path / "out", storage=storage, resume=True)
    assert not list(Path().iterdir())
    monkeypatch.chdir(tmp_path / "here")
    run(guided_config(), tmp_path / "out", storage=storage, resume=True)


def test_more_trials_are_recorded_only_if_the_study_is_resumed(tmp_path: Path) -> None:
    journal, out, config = tmp_path / "journal.log", tmp_path / "out", guided_config()
    run(config, out, storage=str(journal))
    journal.rename(tmp_path / "away.log")
    recorded = (out / STUDY_FILE).read_bytes()
    with pytest.raises(StudyError, match="got no such file"):
        run(replace(config, trials=config.trials + 2), out, storage=str(journal), resume=True)
    assert (out / STUDY_FILE).read_bytes() == recorded
    (tmp_path / "away.log").rename(journal)
    run(replace(config, trials=config.trials + 1), out, storage=str(journal), resume=True)
    assert config_given(out)["earlier_trials"] == [config.trials]


def test_what_a_killed_worker_was_writing_is_cut_off(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    run(guided_config(), tmp_path / "out", storage=str(journal))
    whole = journal.read_bytes()
    torn = whole + whole.splitlines()[0][:-5]
    journal.write_bytes(torn)
    storage = open_storage(str(journal))
    assert journal.read_bytes() == whole
    assert len(storage.get_all_studies()) == 1


def test_a_first_record_that_was_cut_off_leaves_an_empty_storage(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    run(guided_config(), tmp_path / "out", storage=str(journal))
    journal.write_bytes(journal.read_bytes().splitlines()[0][:-5])
    assert open_storage(str(journal)).get_all_studies() == []
    assert journal.read_bytes() == b""


def test_what_another_worker_could_not_write_whole_is_cut_off(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    storage = open_storage(str(journal))
    storage.create_new_study([StudyDirection.MINIMIZE], "a")
    with journal.open("ab") as file:  # as where the disk was full
        file.write(journal.read_bytes().splitlines()[0][:-5])
    storage.create_new_study([StudyDirection.MINIMIZE], "b")
    assert [study.study_name for study in open_storage(str(journal)).get_all_studies()] == ["a", "b"]


def test_a_damaged_record_is_told_with_its_line(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    storage = open_storage(str(journal))
    storage.create_new_study([StudyDirection.MINIMIZE], "a")
    with journal.open("a") as file:
        file.write("of another program\n")
    message = rf"^{journal}, line 2: expected a record of Optuna, got .* Restore the file, or remove that line\.$"
    with pytest.raises(StudyError, match=message):
        storage.create_new_study([StudyDirection.MINIMIZE], "b")
    with pytest.raises(StudyError, match=message):
        open_storage(str(journal))


def die_while_writing(folder: Path, journal: str) -> None:
    """Be a worker that is killed while it holds the journal's lock."""
    os.chdir(folder)
    storage = open_storage(journal)
    with mock.patch("os.fsync", side_effect=lambda _: os._exit(9)):
        storage.create_new_study([StudyDirection.MINIMIZE], "a")


def test_a_lock_that_a_killed_worker_left_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    worker = multiprocessing.get_context("forkserver").Process(
        target=die_while_writing, args=(tmp_path, "out/journal.log")
    )
    worker.start()
    worker.join()
    assert worker.exitcode == 9
    monkeypatch.chdir(tmp_path)
    clock = SimpleNamespace(monotonic=iter(range(1000)).__next__, sleep=lambda _: None)
    monkeypatch.setattr("optuna.storages.journal._file.time", clock)
    assert [study.study_name for study in open_storage("out/journal.log").get_all_studies()] == ["a"]


@pytest.mark.parametrize(
    "contents", [b"a,b", b"architecture,x\n1,2\n", b"\x89PNG\n", b'{"foo": 1}\n', b'["op_code"]\n']
)
def test_a_file_that_is_no_journal_is_left_as_it_is(tmp_path: Path, contents: bytes) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(contents)
    with pytest.raises(StudyError, match=r"expected a database URL or a journal file, got '.*table\.csv'"):
        open_storage(str(file))
    assert file.read_bytes() == contents


def test_a_history_that_cannot_be_written_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = Ledger.save

    def save(ledger: Ledger, path: Path) -> None:
        if ledger.evaluated:
            raise UnwritableError(f"{path}: expected to write this file, got No space left on device.")
        saved(ledger, path)

    monkeypatch.setattr(Ledger, "save", save)
    with pytest.raises(UnwritableError, match=r"^.*history\.parquet: expected to write this file"):
        run(guided_config(), tmp_path / "out", storage=str(tmp_path / "journal.log"))


def test_a_connection_that_breaks_while_a_database_is_opened_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, real = [], optuna_storage.RDBStorage

    def opening(*given: Any) -> Any:
        opened.append(given)
        if len(opened) == 1:
            lost = OperationalError("SELECT 1", {}, Exception("terminating connection"), connection_invalidated=True)
            raise StorageInternalError("An exception is raised during the commit.") from lost
        return real(*given)

    monkeypatch.setattr(optuna_storage, "RDBStorage", opening)
    monkeypatch.setattr(optuna_storage.time, "sleep", lambda _: None)
    open_storage(f"sqlite:///{tmp_path / 'study.db'}")
    assert len(opened) == 2
    with pytest.raises(StudyError, match="expected a database URL or a journal file"):
        open_storage(f"sqlite:///{tmp_path / 'none' / 'study.db'}")
    assert len(opened) == 3  # what cannot be opened is told at once
