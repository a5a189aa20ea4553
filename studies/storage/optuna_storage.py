"""A study in an Optuna storage, for dashboards and for other programs to read."""

import hashlib
import json
import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning, OptunaError, StorageInternalError
from optuna.storages import BaseStorage, RDBStorage
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from nasrlm.callers import warn_caller
from nasrlm.files import UnwritableError, file_digest
from studies.config import SearchConfig, without_password
from studies.folder import DIGESTS, HOW_TO_RESUME, MAY_CHANGE, UNRECORDED_EVALUATOR, StudyError, check_same_digests
from studies.optuna_trials import ARCHITECTURE, directions
from studies.storage.journal import open_journal
from studies.storage.locks import held_alone

UNANSWERED = (StorageInternalError, SQLAlchemyError)  # raised, for example, if a connection broke
TRIES = 5  # attempts to open a database
ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}  # TCP options: seconds, and a count
TABLE = "table"  # name of a study's attribute


def open_storage(storage: str) -> BaseStorage:
    """Open a database by its URL, or a journal file by its path.

    Raises:
        StudyError: the storage cannot be opened.
    """
    try:
        if "://" not in storage:
            return open_journal(Path(storage).resolve())
        return _open_database(with_driver(storage))
    except StudyError:
        raise
    except (SQLAlchemyError, OptunaError, OSError, ImportError, ValueError, KeyError) as error:
        reason = f"{type(error).__name__}, {' '.join(str(error).split())[:200]}"
        lacks_driver = isinstance(error, ImportError) and storage.startswith("postgres")
        hint = "Install nasrlm[postgres]." if lacks_driver else "Example: sqlite:///study.db."
        raise StudyError(
            f"storage: expected a database URL or a journal file, got {without_password(storage)!r}: {reason}. {hint}"
        ) from error


def lacks_file(storage: str) -> bool:
    """Return whether a storage is a journal or an SQLite database whose file does not exist."""
    scheme, is_url, rest = storage.partition("://")
    if not is_url:
        return not Path(storage).exists()
    return scheme.startswith("sqlite") and "uri=" not in rest and not Path(rest[1:].partition("?")[0]).exists()


def with_driver(url: str) -> str:
    """Add to ``postgresql://`` the driver that the extra ``postgres`` installs; return other URLs unchanged."""
    return re.sub("^postgres(ql)?://", "postgresql+psycopg://", url)


def _open_database(url: str) -> RDBStorage:
    """Open a database; try again if another worker creates its tables at the same moment, or the connection breaks.

    A connection may break, for example, if the server restarts. A connection that cannot be made is not tried again.
    """
    engine: dict[str, Any] = {"pool_pre_ping": True}  # replaces broken connections
    if url.startswith("postgresql+psycopg"):
        engine["connect_args"] = ALIVE
    for _ in range(TRIES - 1):
        try:
            return RDBStorage(url, engine)
        except UNANSWERED as error:
            is_broken = isinstance(error, StorageInternalError) or getattr(error, "connection_invalidated", False)
            is_made = isinstance(error, IntegrityError) or "already exists" in str(error)
            if not (is_broken or is_made or "terminating connection" in str(error)):
                raise
            time.sleep(1)
    return RDBStorage(url, engine)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Optuna's message for every study, and its warnings that a sampler is experimental."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(verbosity, optuna.logging.WARNING))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)


def study_name(config: SearchConfig) -> str:
    """Return the name of a config's study: space, sampler, seed, and eight digits of a digest of the config.

    The digest leaves out the storage and the folder of a table, which workers may reach by different names; the
    checkpoint, which ``join_study`` compares; and the number of trials, which may change.
    """
    kind, _, path = config.evaluator.partition(":")
    return _named(config, {"evaluator": f"{kind}:{Path(path).name}"} if kind == "table" else {})


def name_in(storage: BaseStorage, config: SearchConfig) -> str:
    """Return the study's name in a storage, or that of an older version, whose digest included more, if it is there."""
    first = [*config.earlier_trials, config.trials][0]
    unrecorded = {"evaluator": UNRECORDED_EVALUATOR} if config.guide else {}
    for told in ({"trials": first}, {}, {"trials": first, **unrecorded}, unrecorded):
        with suppress(KeyError):
            storage.get_study_id_from_name(older := _named(config, told))
            return older
    return study_name(config)


def _named(config: SearchConfig, more: Mapping[str, object]) -> str:
    free = ("storage", *DIGESTS, *MAY_CHANGE)
    values = {**{name: value for name, value in config.to_dict().items() if name not in free}, **more}
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]
    return f"{config.space}-{config.sampler}-{config.seed}-{digest}"


def join_study(config: SearchConfig, storage: BaseStorage, name: str) -> optuna.Study:
    """Return the config's study in a storage, created if missing.

    Args:
        config: names the study, see ``name_in``.
        storage: the opened storage.
        name: URL or path by which it was opened, for messages.

    Raises:
        StudyError: the study was begun with another checkpoint or table.
    """
    own, there = name_in(storage, config), optuna.get_all_study_names(storage)
    place = f"storage {without_password(name)}"
    study = optuna.create_study(
        storage=storage, study_name=own, directions=directions(config.goals), load_if_exists=True
    )
    if own not in there:
        _warn_of_other_studies(config, storage, f"{place}: {own}", own, there)
    known = study.user_attrs
    check_same_digests(f"{place}, {own}", known, config)
    for digest in DIGESTS:
        if getattr(config, digest) and not known.get(digest):
            study.set_user_attr(digest, getattr(config, digest))
    _check_table(f"{place}, {own}", study, config)
    if not study.metric_names:
        study.set_metric_names([goal.objective for goal in config.goals])
    return study


def _warn_of_other_studies(
    config: SearchConfig, storage: BaseStorage, begins: str, own: str, there: Sequence[str]
) -> None:
    """Warn of studies that a new worker may have been meant to join.

    These have the same seed, or differ only in the seed and are running now.
    """
    if same_seed := [other for other in there if other.rpartition("-")[0] == own.rpartition("-")[0]]:
        warn_caller(
            f"{begins} starts next to {', '.join(same_seed)}, which has other settings. Workers of one study need the "
            "same goals, constraints, evaluator and options."
        )
    seeds = [int(seed) for other in there if (seed := other.rsplit("-", 2)[-2]).isdecimal()]
    alike = {study_name(replace(config, seed=seed)) for seed in seeds if seed != config.seed}
    if running := [other for other in there if other in alike and _is_running(storage, other)]:
        warn_caller(
            f"{begins} starts next to {', '.join(running)}, which has running trials. To join it, a worker needs its "
            "seed."
        )


def _is_running(storage: BaseStorage, name: str) -> bool:
    return storage.get_n_trials(storage.get_study_id_from_name(name), TrialState.RUNNING) > 0


def _check_table(where: str, study: optuna.Study, config: SearchConfig) -> None:
    """Check that a table with results is the one that the study was begun with, by its path or its contents."""
    kind, _, name = config.evaluator.partition(":")
    path = Path(name).resolve()
    if kind != "table" or not path.is_file():
        return
    digest = file_digest(path)
    known = study.user_attrs.get(TABLE)
    if known is None:
        study.set_user_attr(TABLE, {"path": str(path), "sha256": digest})
    elif str(path) != known["path"] and digest != known["sha256"]:
        raise StudyError(
            f"{where}: expected the table that the study was started with, {known['path']}, got another, {path}. "
            "Choose another storage or seed, or rename the table."
        )


@contextmanager
def stored_study(config: SearchConfig, *, is_new: bool) -> Iterator["StoredStudy | None"]:
    """Give the study in ``config.storage``, locked for this process; None if there is no storage.

    Raises:
        StudyError: the storage cannot be opened or has no locks, another process holds the study, or as for
            ``StoredStudy``.
    """
    if config.storage is None:
        yield None
        return
    storage = open_storage(config.storage)
    with held_alone(storage, config.storage, name_in(storage, config)):
        yield StoredStudy(config, storage, config.storage, is_new=is_new)


@contextmanager
def answering(name: str) -> Iterator[None]:
    """Convert errors of a storage, named by its URL or path, to a ``StudyError`` of one line.

    Raises:
        StudyError: the storage does not answer, or its disk is full.
    """
    try:
        yield
    except (*UNANSWERED, OSError) as error:
        if isinstance(error, UnwritableError) or (isinstance(error, OSError) and error.filename):
            raise  # the error is of another file
        reason = " ".join(str(error).split())[:200]
        raise StudyError(
            f"storage {without_password(name)}: expected a response, got {reason}. {HOW_TO_RESUME}"
        ) from error


class StoredStudy:
    """The copy of a search's finished trials in a storage.

    Args:
        config: names the study, see ``name_in``.
        storage: the opened storage.
        name: URL or path by which it was opened.
        is_new: whether the search is new, so that the storage may not have trials of it.

    Raises:
        StudyError: the storage already has trials of a new search, or the study has another checkpoint or table.
    """

    def __init__(self, config: SearchConfig, storage: BaseStorage, name: str, *, is_new: bool) -> None:
        self.storage = name
        with answering(name):
            self.study = join_study(config, storage, name)
            self._known = self.study.get_trials(deepcopy=False)
        self._given = 0
        if self._known and is_new:
            raise StudyError(
                f"storage {without_password(name)}: expected no study {self.study.study_name}, got one with "
                f"{len(self._known)} trials. Resume it with its folder, or choose another storage or seed."
            )

    def extend(self, trials: Sequence[FrozenTrial], architectures: Sequence[str]) -> None:
        """Store finished trials with their notations; compare those that were stored before an interruption.

        Raises:
            StudyError: the storage has other trials in their place.
        """
        for trial, architecture in zip(trials, architectures, strict=True):
            if self._given < len(self._known):
                self._compare(self._known[self._given], trial)
            else:
                trial.set_user_attr(ARCHITECTURE, architecture)
                with answering(self.storage):
                    self.study.add_trial(trial)
            self._given += 1

    def _compare(self, known: FrozenTrial, trial: FrozenTrial) -> None:
        if known.params != trial.params:
            raise StudyError(
                f"storage {without_password(self.storage)}: expected trial {known.number} of "
                f"{self.study.study_name} to be {trial.params}, got {known.params}. "
                "Was the study changed? Choose another storage."
            )
