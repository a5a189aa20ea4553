"""Writes a long table in parts, so that a killed run can be resumed; at the end one rename makes them the output."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

MANIFEST = "run.json"
SETTINGS = "nasrlm.settings"  # key in the output's metadata of the settings with which it was made
TABLE = "table"  # the setting that identifies the contents of the input table
COMPRESSION = "zstd"
ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "Free some space and continue with --resume."),
    **dict.fromkeys((errno.ENOLCK, errno.EOPNOTSUPP), "Choose a folder on a file system with locks."),
}

Settings = Mapping[str, str | int | None]


def errors_of(out: Path) -> Path:
    """Return the file that lists what could not be converted, beside the table that has the rest."""
    return out.with_name(f"{out.name}.errors.jsonl")


@dataclass(frozen=True)
class Parts:
    """The parts of one output: Parquet files, and files with a line for each row that failed.

    Attributes:
        out: the Parquet file that the parts will become.
        schema: Arrow schema of every part.
        settings: everything that determines the contents of the parts; a run can be resumed only with equal settings.
        table: the input table, for messages.
    """

    out: Path
    schema: Any
    settings: Settings
    table: Path

    @property
    def folder(self) -> Path:
        """The folder of the parts, beside the output."""
        return self.out.with_name(f".{self.out.name}.parts")

    @property
    def errors(self) -> Path:
        """The file of rows that failed; absent if none did."""
        return errors_of(self.out)

    @property
    def is_finished(self) -> bool:
        """Whether the output exists and its parts have been removed."""
        return self.out.exists() and not (self.folder / MANIFEST).exists()

    @contextmanager
    def held_alone(self) -> Iterator[None]:
        """Lock the output, so that no other run writes it, until the block or the process ends.

        Raises:
            ValueError: another process or thread holds the lock.
            OSError: the output's folder cannot be written.
        """
        from filelock import FileLock, Timeout  # imported here: it takes 25 ms, and single networks do not need it

        lock = FileLock(self.out.with_name(f".{self.out.name}.lock"), timeout=0)
        with self._naming_output():
            self.out.parent.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
            except Timeout:
                raise ValueError(
                    f"{self.out}: expected a file that no other run writes, got one that a running command writes. "
                    "Wait for it, or choose another file."
                ) from None
            except OSError:
                Path(lock.lock_file).unlink(missing_ok=True)
                raise
        try:
            yield
        finally:
            with suppress(PermissionError):  # while the lock is held, as let_go of nasrlm.files does
                Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()

    def begin(self, *, resume: bool) -> int:
        """Create the folder of the parts, or open that of a killed run.

        Returns:
            The number of finished parts.

        Raises:
            ValueError: output or folder exist and ``resume`` is not set, or the folder is of a run with other settings.
            OSError: the folder cannot be created; nothing is left behind.
        """
        manifest = self.folder / MANIFEST
        if manifest.exists() and not resume:
            raise ValueError(
                f"{self.folder}: expected no such folder, got the parts of an unfinished run. Continue with --resume, "
                "or delete it."
            )
        if self.out.exists() and not resume:
            raise ValueError(f"{self.out}: expected no such file, got one. Delete it, or choose another.")
        if not manifest.exists():
            self._make_folder()
        self._check(json.loads(manifest.read_bytes()), f"{self.folder}: expected parts", "Delete it to start again.")
        finished = 0
        while self._part(finished).exists():
            finished += 1
        return finished

    def write(self, index: int, table: Any, errors: Sequence[Mapping[str, Any]]) -> None:
        """Write one part; its Parquet file is written last, and its presence marks the part as finished."""
        with self._naming_output():
            _write(self._part_errors(index), "".join(f"{json.dumps(error)}\n" for error in errors))
            temporary = _temporary(self._part(index))
            pq.write_table(table.cast(self.schema), temporary, compression=COMPRESSION)
            temporary.replace(self._part(index))

    def assemble(self, count: int) -> None:
        """Join ``count`` parts to the output and the file of errors, then remove them; one part is in memory."""
        with self._naming_output():
            self._assemble_errors(count)
            temporary = self.folder / "whole"
            with pq.ParquetWriter(temporary, self.schema, compression=COMPRESSION) as writer:
                for index in range(count):
                    writer.write_table(pq.read_table(self._part(index), schema=self.schema))
                writer.add_key_value_metadata({SETTINGS: json.dumps(self.settings)})
            temporary.replace(self.out)
            (self.folder / MANIFEST).unlink()  # before the rest: without it the output counts as finished
            shutil.rmtree(self.folder)

    def count(self) -> tuple[int, int]:
        """Return the number of rows of the finished output, and of rows that failed.

        Raises:
            ValueError: the output has other columns or settings, so another run made it.
        """
        found = pq.read_schema(self.out).names
        if found != self.schema.names:
            wanted = ", ".join(self.schema.names)
            raise ValueError(f"{self.out}: expected columns {wanted}, got {', '.join(found)}. Choose another file.")
        metadata = pq.read_metadata(self.out)
        if (settings := (metadata.metadata or {}).get(SETTINGS.encode())) is not None:
            self._check(json.loads(settings), f"{self.out}: expected an output", "Delete it, or choose another.")
        failed = 0
        if self.errors.exists():
            with self.errors.open(encoding="utf-8") as stream:
                failed = sum(1 for _ in stream)
        return metadata.num_rows, failed

    @contextmanager
    def _naming_output(self) -> Iterator[None]:
        """Add the name of the output to errors raised inside, as those of Arrow name no file."""
        try:
            yield
        except OSError as e:
            advice = ADVICE.get(e.errno or 0, "Choose a file that you may write to.")
            got = e.strerror or e
            raise OSError(f"{self.out}: expected to write this file and its parts, got {got}. {advice}") from e

    def _make_folder(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)  # left by a run that was killed at its very start or end
        with self._naming_output():
            self.folder.mkdir()
            try:
                _write(self.folder / MANIFEST, json.dumps(self.settings))
            except OSError:
                shutil.rmtree(self.folder)
                raise

    def _assemble_errors(self, count: int) -> None:
        temporary, failed = self.folder / "errors", False
        with temporary.open("w", encoding="utf-8") as stream:
            for index in range(count):
                lines = self._part_errors(index).read_text(encoding="utf-8")
                stream.write(lines)
                failed = failed or bool(lines)
        if failed:
            temporary.replace(self.errors)
        else:
            self.errors.unlink(missing_ok=True)

    def _check(self, found: Settings, expected: str, remedy: str) -> None:
        for name, value in self.settings.items():
            if (got := found.get(name)) != value:
                wanted = f"{self.table} in its current state, {value}" if name == TABLE else value
                other = f"another table, or {self.table.name} in an earlier state, " if name == TABLE else ""
                raise ValueError(f"{expected} made with {name} {wanted}, got {other}{got}. {remedy}")

    def _part(self, index: int) -> Path:
        return self.folder / f"part-{index:06}.parquet"

    def _part_errors(self, index: int) -> Path:
        return self.folder / f"part-{index:06}.errors.jsonl"


def _temporary(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")


def _write(path: Path, text: str) -> None:
    temporary = _temporary(path)
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
