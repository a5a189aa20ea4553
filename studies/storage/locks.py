"""Locks beside a study's storage that end with the process that holds them, however it ends.

A worker takes its turn alone, and holds the trial that it evaluates. A running trial that nobody holds is that of a
dead worker: a slow evaluation is never taken for a dead one. A search that is not shared holds its whole run.
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

from studies.config import without_password
from studies.folder import StudyError

TURN, RUN = -1, -2  # in the place of a trial's number

PING_SECONDS = 5.0  # between looks whether a connection that does nothing else is there
GRACE_SECONDS = 15.0  # in which a worker whose connection broke takes its locks again
BROKEN = (InterfaceError, OperationalError)  # as of a connection that is no longer


class TurnLostError(StorageInternalError):
    """A worker's turn has ended without its doing."""


class StorageLocks(Protocol):
    """Locks of the workers of one study.

    Attributes:
        grace_seconds: how long nobody has to hold a running trial before its worker is dead.
    """

    grace_seconds: float

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Alone among all workers; waits until it may."""
        yield

    def check_turn(self) -> None:
        """Check, before something is written in a turn, that the turn still lasts.

        Raises:
            TurnLostError: somebody else may have taken theirs.
        """

    def hold(self, number: int) -> None:
        """Hold a trial, by its number, until it is released, all is closed, or the process ends."""

    def release(self, number: int) -> None:
        """Let go of a trial, if it is held."""

    def is_held(self, number: int) -> bool:
        """Whether any worker, this one too, holds a trial."""

    def close(self) -> None:
        """Let go of everything."""


class FileLocks:
    """Locked files in a folder; on a network drive, if its locks work there."""

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
        """A locked file stays locked."""

    def hold(self, number: int) -> None:
        lock = FileLock(self._path(number))
        lock.acquire()
        self._held[number] = lock

    def release(self, number: int) -> None:
        if (lock := self._held.pop(number, None)) is not None:
            self._path(number).unlink(missing_ok=True)  # while it is held: who has it open then looks for a new one
            lock.release()

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
    """Advisory locks of one connection to the database; the server ends them with the connection.

    A connection that breaks, as at a restart of the server, is made anew within seconds, also while an evaluation runs,
    and takes the trials that were held again.
    """

    grace_seconds = GRACE_SECONDS

    def __init__(self, storage: RDBStorage, study_name: str) -> None:
        self._study = zlib.crc32(study_name.encode()) - 2**31  # a signed 32-bit number
        self._engine = storage.engine
        self._held: set[int] = set()
        self._lost: set[int] = set()  # of what is held, what the connection has not taken again yet
        self._connection: Connection | None = self._connect()
        self._of_turn: Connection | None = None  # that took the turn
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
            with suppress(*BROKEN):  # before it was asked, as far as is known
                return self._ask(*asked)
            return self._ask(*asked)

    def _keep_connected(self) -> None:
        while not self._closed.wait(PING_SECONDS):
            with self._one_at_a_time, suppress(*BROKEN):  # then the next look tries again
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
        """Try to take the locks again that a broken connection held.

        This fails while the server has not noticed yet that it broke, or another worker looks whether they are held.
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
    """Locks beside a storage.

    Args:
        storage: the opened one.
        name: the URL or path by which it was opened.
        study_name: of the study that is locked.

    Raises:
        StudyError: it is another database than PostgreSQL or SQLite with a file.
    """
    if not isinstance(storage, RDBStorage):
        return _locks_beside(name, study_name)
    if storage.engine.dialect.name == "postgresql":
        return PostgresLocks(storage, study_name)
    file = storage.engine.url.database
    if storage.engine.dialect.name == "sqlite" and file and file != ":memory:":
        return _locks_beside(file, study_name)
    raise StudyError(
        f"storage: expected a journal file, postgresql:// or sqlite:/// with a file, got "
        f"{storage.engine.url.render_as_string(hide_password=True)}: a study needs its locks."
    )


@contextmanager
def held_alone(storage: BaseStorage, name: str, study_name: str) -> Iterator[None]:
    """Hold a study that one process evaluates, until the block or the process ends; arguments as of ``open_locks``.

    Raises:
        StudyError: another process holds it, or there are no locks.
    """
    locks = open_locks(storage, name, study_name)
    try:
        with locks.turn():
            if locks.is_held(RUN):
                raise StudyError(
                    f"storage {without_password(name)}: expected {study_name} to be nobody's now, got one that another "
                    "process evaluates. Wait for it, or choose another storage or seed: only searches that a model "
                    "guides are shared."
                )
            locks.hold(RUN)
        yield
    finally:
        locks.close()


def _locks_beside(file: str, study_name: str) -> FileLocks:
    """Locks beside a storage's file, the same by whatever link or relative path it is named.

    The study's name is quoted, as a user's own space is named by a path.
    """
    return FileLocks(Path(f"{Path(file).resolve()}.locks") / quote(study_name, safe=""))
