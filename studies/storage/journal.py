"""A study's journal file, kept free of unfinished lines even if a process is killed or the disk is full."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from studies.folder import StudyError

BLOCK = 65_536  # bytes read at a time from the end of a journal


def open_journal(path: Path) -> JournalStorage:
    """Open a journal file, created if missing.

    Raises:
        StudyError: a line is not a record.
        ValueError: the file is not a journal; it is left unchanged.
    """
    lock = WholeLinesLock(path)
    if path.exists():
        lock.acquire()
        lock.release()
    return JournalStorage(NamedLines(str(path), lock_obj=lock))


class WholeLinesLock(JournalFileOpenLock):
    """A lock that removes an unfinished last line of the journal when it is acquired.

    If a worker is killed while it writes, or the disk is full, the last line has no end, and the next record would be
    appended to it. Nobody relies on the unfinished record, because its write never returned. The lock of a killed
    worker is broken after half a minute.

    NOTE: Optuna's default lock is a symbolic link to the path as it was given. If that is relative to another folder,
    or the journal was moved, the link points nowhere, and after a worker is killed others wait forever.

    Args:
        path: path of the journal.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path

    def acquire(self) -> bool:
        """Wait for the lock, and remove an unfinished line.

        Raises:
            StudyError: the file is missing.
            ValueError: the file is not a journal; it is left unchanged.
        """
        super().acquire()
        try:
            _cut_unfinished_line(self._path)
        except BaseException as error:
            self.release()
            if isinstance(error, FileNotFoundError):
                raise StudyError(
                    f"{self._path}: expected the journal of a study, got no such file. Restore it."
                ) from error
            raise
        return True


class NamedLines(JournalFileBackend):
    """Optuna's journal file, with errors that name the line."""

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any]]:
        """Yield the records from a number on.

        Raises:
            StudyError: a record cannot be read.
        """
        line = log_number_from + 1
        try:
            for record in super().read_logs(log_number_from):
                if not isinstance(record, dict) or "op_code" not in record:
                    raise ValueError(f"{record!r:.60}")
                yield record
                line += 1
        except ValueError as error:
            raise StudyError(
                f"{self._file_path}, line {line}: expected a record of Optuna, got {error}. Restore the file, or "
                "remove that line."
            ) from error


def _cut_unfinished_line(path: Path) -> None:
    with path.open("r+b") as file:
        first = file.readline()
        is_cut = first.startswith(b'{"op_code"') and not first.endswith(b"\n")
        if first and not is_cut and not (first.startswith(b"{") and b"op_code" in first):
            raise ValueError("expected records of Optuna in its lines")
        size = end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(end - BLOCK, 0)
            file.seek(start)
            if (last := file.read(end - start).rfind(b"\n")) >= 0:
                end = start + last + 1
                break
            end = start
        if end < size:
            file.truncate(end)
