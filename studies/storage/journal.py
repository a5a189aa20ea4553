"""A study's journal file, whose every line is a whole record, whoever was killed or had no room to write."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from studies.folder import StudyError

BLOCK = 65_536  # bytes of a journal that are looked at together


def open_journal(path: Path) -> JournalStorage:
    """A journal file, made where it is not there.

    Raises:
        StudyError: a line is no record.
        ValueError: the file is no journal; it is left as it is.
    """
    lock = WholeLinesLock(path)
    if path.exists():
        lock.acquire()
        lock.release()
    return JournalStorage(NamedLines(str(path), lock_obj=lock))


class WholeLinesLock(JournalFileOpenLock):
    """Whoever holds it finds whole lines alone.

    What a worker was writing as it was killed, or as the disk was full, is a line without an end; nobody was told that
    it is there, and what comes next would be glued to it. Such a worker's lock may be left as well, and is broken after
    half a minute.

    NOTE: Optuna's default lock, a link to the path as it was named, leads nowhere where that is relative and not of the
    current folder, or the journal was moved: of a killed worker's it then waits forever.

    Args:
        path: of the journal.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path

    def acquire(self) -> bool:
        """Wait for the lock, and cut off an unfinished line.

        Raises:
            ValueError: the file is no journal; it is left as it is.
        """
        super().acquire()
        try:
            _cut_unfinished_line(self._path)
        except BaseException as error:
            self.release()
            if isinstance(error, FileNotFoundError):
                raise StudyError(f"{self._path}: expected a study's journal, got no such file. Restore it.") from error
            raise
        return True


class NamedLines(JournalFileBackend):
    """Optuna's file of records, which names a line that is none."""

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any]]:
        """The records from a number on.

        Raises:
            StudyError: one cannot be read.
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
                f"{self._file_path}, line {line}: expected a record of Optuna's, got {error}. "
                "Restore the file, or remove that line."
            ) from error


def _cut_unfinished_line(path: Path) -> None:
    with path.open("r+b") as file:
        first = file.readline()
        is_cut = first.startswith(b'{"op_code"') and not first.endswith(b"\n")
        if first and not is_cut and not (first.startswith(b"{") and b"op_code" in first):
            raise ValueError("expected Optuna's records in its lines")
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
