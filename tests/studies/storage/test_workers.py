"""Several workers of one search, some of them killed with SIGKILL: nothing is lost, and nothing evaluated twice."""

import random
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import optuna
import pandas as pd
import pytest
from optuna.trial import TrialState
from sqlalchemy import create_engine, text

from studies.storage.optuna_storage import open_storage, study_name, with_driver
from tests.studies import killed
from tests.studies.scenes import SPACE, toy_results
from tests.studies.storage.postgres import postgres_url  # noqa: F401

PATIENCE = 180  # seconds; on busy cores the first worker's imports alone take one minute


WAITING_FOR_TURNS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
OTHERS_ENDED = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


def assert_nothing_is_lost(storage: str, folder: Path, *, kills: int, seconds: float, seed: int = 0) -> None:
    """One worker stays; another one is killed in the middle of an evaluation and begins anew, ``kills`` times.

    The one that stays is held until the other evaluates, which takes seconds on a busy machine.
    """
    wanted = killed.WORKERS_TRIALS + 3 * (kills - 1)  # what the worker that stays leaves for the other one
    rng = random.Random(seed)
    asked, hold, begun = (folder / name for name in (killed.ASKED_FILE, killed.HOLD_FILE, "killed.begun"))

    def started() -> BaseProcess:
        begun.unlink(missing_ok=True)
        hold.touch()
        process = killed.start(killed.work, storage, folder, "killed", seconds, wanted)
        _wait_for(begun)
        hold.unlink()
        return process

    hold.touch()
    stays = killed.start(killed.work, storage, folder, "stays", seconds, wanted)
    for _ in range(kills):
        other = started()
        time.sleep(rng.uniform(0, 2 * seconds))
        other.kill()
        other.join()
        assert other.exitcode in (-signal.SIGKILL, 0)
    last = started()
    for process in (stays, last):
        process.join(PATIENCE)
        assert process.exitcode == 0

    study = optuna.load_study(study_name=study_name(killed.worker_config(wanted)), storage=open_storage(storage))
    trials = [trial for trial in study.get_trials(deepcopy=False) if "pruned_stage" not in trial.user_attrs]
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    names = [trial.user_attrs["architecture"] for trial in complete]
    assert len({SPACE.architecture_key(SPACE.parse(name)) for name in names}) == len(names)
    assert len(names) == wanted
    for trial in complete:
        results = toy_results(trial.user_attrs["architecture"])
        assert trial.values == [results[name] for name in study.metric_names]
    assert len({trial.user_attrs["worker"] for trial in complete}) >= 2
    failed = {trial.number for trial in trials if trial.state == TrialState.FAIL}
    assert failed == {trial.user_attrs["retry_of"] for trial in trials if "retry_of" in trial.user_attrs}
    assert len(complete) + len(failed) == len(trials)
    asked_for = asked.read_text().split()
    assert set(asked_for) == set(names)
    assert len(asked_for) - len(names) <= len(failed) <= kills  # only what was running when its worker was killed
    for worker in ("stays", "killed"):
        history = pd.read_parquet(folder / worker / "history.parquet")
        assert set(history["architecture"][history["status"] == "evaluated"]) == set(names)


def _wait_for(begun: Path, before: int = -1) -> None:
    """Wait until a file exists, with more bytes than before."""
    deadline = time.monotonic() + PATIENCE
    while not begun.exists() or begun.stat().st_size == before:
        assert time.monotonic() < deadline, f"expected an evaluation, got none in {PATIENCE} s."
        time.sleep(0.01)


def test_two_workers_on_a_journal(tmp_path: Path) -> None:
    assert_nothing_is_lost(str(tmp_path / "journal.log"), tmp_path, kills=1, seconds=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_twenty_kills_on_a_journal(tmp_path: Path, seed: int) -> None:
    assert_nothing_is_lost(str(tmp_path / "journal.log"), tmp_path, kills=20, seconds=0.4, seed=seed)


@pytest.mark.service
@pytest.mark.parametrize("seconds_to_propose", [0.0, 3.0])
def test_broken_connections_lose_nothing_and_nothing_is_evaluated_twice(
    seconds_to_propose: float,
    tmp_path: Path,
    postgres_url: str,  # noqa: F811
) -> None:
    """Ended while both evaluate; or while one proposes and the other waits for its turn."""
    wanted, asked = 8, tmp_path / killed.ASKED_FILE
    names, seconds, database = ("first", "second"), 2.0 - seconds_to_propose / 2, f"broken{seconds_to_propose:.0f}"
    engine = create_engine(with_driver(postgres_url), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {database}"))
    given = (postgres_url.replace("/postgres", f"/{database}"), tmp_path)
    workers = [killed.start(killed.work, *given, name, seconds, wanted, seconds_to_propose) for name in names]
    for _ in range(2):
        _wait_for(asked, asked.stat().st_size if asked.exists() else 0)
        time.sleep(0.5)
        with engine.connect() as connection:
            deadline = time.monotonic() + 3 * seconds_to_propose
            while time.monotonic() < deadline and not connection.execute(text(WAITING_FOR_TURNS)).scalar():
                time.sleep(0.05)
            connection.execute(text(OTHERS_ENDED))
    for process in workers:
        process.join(PATIENCE)
        assert process.exitcode == 0
    asked_for = asked.read_text().split()
    assert len(asked_for) == len(set(asked_for)) == wanted
    for name in names:
        history = pd.read_parquet(tmp_path / name / "history.parquet")
        assert sorted(history["architecture"][history["status"] == "evaluated"]) == sorted(asked_for)


@pytest.mark.service
def test_two_workers_on_postgresql(tmp_path: Path, postgres_url: str) -> None:  # noqa: F811
    assert_nothing_is_lost(postgres_url, tmp_path, kills=3, seconds=0.3)
