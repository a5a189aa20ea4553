"""Locks for a study's storage; the operating system or the server releases them when their process ends.

There is a lock for the turn, in which one worker at a time changes the study, and one for each running trial, held by
the worker that evaluates it. If nobody holds a running trial, its worker is dead, so a slow evaluation is never
mistaken for a dead one. A search that is not shared holds one lock for its whole run.
"""

import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from filelock import FileLock, Timeout
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, RDBStorage
from sqlalchemy import Connection, text
from sqlalchemy.exc import InterfaceError, OperationalError

from nasrlm.files import let_go
from studies.config import without_password
from studies.folder import StudyError

TURN, RUN = -1, -2  # used in place of a trial's number

PING_SECONDS = 5.0  # between checks of an idle connection
GRACE_SECONDS = 15.0  # time for a worker whose connection broke to take its locks again
BROKEN = (InterfaceError, OperationalError)  # raised by a broken connection


class TurnLostError(StorageInternalError):
    """A worker's turn ended because its connection broke."""


class StorageLocks(Protocol):
    """Locks of the workers of one study.

    Attributes:
        grace_seconds: time for which a running trial has to be unheld before its worker counts as dead.
    """

    grace_seconds: float

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until no other worker has a turn, and keep others out meanwhile."""
        yield

    def check_turn(self) -> None:
        """Check, before writing in a turn, that the turn has not been lost.

        Raises:
            TurnLostError: another worker may have begun its turn.
        """

    def hold(self, number: int) -> None:
        """Hold a trial, by its number, until ``release``, ``close``, or the end of the process."""

    def release(self, number: int) -> None:
        """Release a trial, if it is held."""

    def is_held(self, number: int) -> bool:
        """Return whether any worker, including this one, holds a trial."""

    def close(self) -> None:
        """Release everything."""


class FileLocks:
    """Locked files in a folder, which may be on a network drive if file locks work there."""

    grace_seconds = 0.0

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: dict[int, FileLock] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(f"{folder}: expected a folder for locks, got {error.strerror}. Check the path.") from error

    @contextmanager
    def turn(self) -> Iterator[None]:
        with FileLock(self.folder / "turn"):
            yield

    def check_turn(self) -> None:
        """Do nothing, because a file lock cannot be lost."""

    def hold(self, number: int) -> None:
        lock = FileLock(self._path(number))
        lock.acquire()
        self._held[number] = lock

    def release(self, number: int) -> None:
        if (lock := self._held.pop(number, None)) is not None:
            let_go(lock)

    def is_held(self, number: int) -> bool:
        if number in self._held:
            return True
        try:
            with FileLock(self._path(number), timeout=0):
                return False
        except Timeout:
            return True

    def close(self) -> None:
        for number in list(self._held):
            self.release(number)

    def _path(self, number: int) -> Path:
        return self.folder / f"trial {number}"


class PostgresLocks:
    """Advisory locks of one connection to the database, which the server releases when the connection ends.

    If the connection breaks, for example at a restart of the server, a thread makes a new one within seconds and takes
    the locks of held trials again, even while an evaluation runs.
    """

    grace_seconds = GRACE_SECONDS

    def __init__(self, storage: RDBStorage, study_name: str) -> None:
        self._study = zlib.crc32(study_name.encode()) - 2**31  # a signed 32-bit number
        self._engine = storage.engine
        self._held: set[int] = set()
        self._lost: set[int] = set()  # held trials whose lock the new connection has not taken again yet
        self._connection: Connection | None = self._connect()
        self._of_turn: Connection | None = None  # the connection that took the turn
        self._one_at_a_time = threading.RLock()
        self._closed = threading.Event()
        threading.Thread(target=self._keep_connected, daemon=True).start()

    @contextmanager
    def turn(self) -> Iterator[None]:
        with self._one_at_a_time:
            self._call("pg_advisory_lock", TURN)
            self._of_turn = self._connection
        try:
            yield
        finally:
            self._of_turn = None
            self._call("pg_advisory_unlock", TURN)

    def check_turn(self) -> None:
        with self._one_at_a_time:
            self._ask("SELECT 1", {})
            if self._connection is not self._of_turn:
                raise TurnLostError("the connection broke in this worker's turn")

    def hold(self, number: int) -> None:
        with self._one_at_a_time:
            self._call("pg_advisory_lock", number)
            self._held.add(number)

    def release(self, number: int) -> None:
        self._held.discard(number)
        self._lost.discard(number)
        self._call("pg_advisory_unlock", number)

    def is_held(self, number: int) -> bool:
        if number in self._held:
            return True
        if not self._call("pg_try_advisory_lock", number):
            return True
        self._call("pg_advisory_unlock", number)
        return False

    def close(self) -> None:
        self._closed.set()
        with self._one_at_a_time:
            self._disconnect()

    def _call(self, function: str, number: int) -> object:
        asked = f"SELECT {function}(:a, :b)", {"a": self._study, "b": number}
        with self._one_at_a_time:
            with suppress(*BROKEN):  # the connection probably broke before this call: ask once more
                return self._ask(*asked)
            return self._ask(*asked)

    def _keep_connected(self) -> None:
        while not self._closed.wait(PING_SECONDS):
            with self._one_at_a_time, suppress(*BROKEN):  # the next check tries again
                if not self._closed.is_set():
                    self._ask("SELECT 1", {})
                    self._take_again()

    def _ask(self, question: str, values: dict[str, int]) -> object:
        try:
            if self._connection is None:
                self._connection = self._connect()
                self._take_again()
            return self._connection.execute(text(question), values).scalar()
        except BROKEN:
            self._disconnect()
            raise

    def _connect(self) -> Connection:
        self._lost |= self._held
        return self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")

    def _take_again(self) -> None:
        """Try to take the locks of a broken connection again.

        This fails as long as the server has not noticed that the connection broke, and at moments when another worker
        checks whether they are held.
        """
        for number in tuple(self._lost):
            if self._ask("SELECT pg_try_advisory_lock(:a, :b)", {"a": self._study, "b": number}):
                self._lost.discard(number)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()  # a pooled connection would keep its locks
            connection.close()


def open_locks(storage: BaseStorage, name: str, study_name: str) -> StorageLocks:
    """Return the locks of a study in a storage.

    Args:
        storage: the opened storage.
        name: URL or path by which it was opened.
        study_name: name of the study to lock.

    Raises:
        StudyError: the storage is a database, but neither PostgreSQL nor SQLite with a file.
    """
    if not isinstance(storage, RDBStorage):
        return _locks_beside(name, study_name)
    if storage.engine.dialect.name == "postgresql":
        return PostgresLocks(storage, study_name)
    file = storage.engine.url.database
    if storage.engine.dialect.name == "sqlite" and file and file != ":memory:":
        return _locks_beside(file, study_name)
    raise StudyError(
        "storage: expected a journal file, postgresql:// or sqlite:/// with a file, got "
        f"{storage.engine.url.render_as_string(hide_password=True)}: a study needs a storage with locks."
    )


@contextmanager
def held_alone(storage: BaseStorage, name: str, study_name: str) -> Iterator[None]:
    """Lock a study for one process until the block or the process ends; arguments as for ``open_locks``.

    Raises:
        StudyError: another process holds the study, or the storage has no locks.
    """
    locks = open_locks(storage, name, study_name)
    try:
        with locks.turn():
            if locks.is_held(RUN):
                raise StudyError(
                    f"storage {without_password(name)}: expected {study_name} not to be in use, got one that another "
                    "process runs. Wait for it, or choose another storage or seed: only searches guided by a model "
                    "can be shared."
                )
            locks.hold(RUN)
        yield
    finally:
        locks.close()


def _locks_beside(file: str, study_name: str) -> FileLocks:
    """Return locks in a folder beside a storage's file; links are resolved, so that all workers use the same folder.

    The study's name is quoted, because it contains a path if the space is a user's own.
    """
    return FileLocks(Path(f"{Path(file).resolve()}.locks") / quote(study_name, safe=""))
