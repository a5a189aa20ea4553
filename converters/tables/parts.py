"""A long table in the making: finished parts beside the output, assembled at the end by one rename."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

MANIFEST = "run.json"
SETTINGS = "nasrlm.settings"  # what a finished output was made of, in its metadata
TABLE = "table"  # the setting that tells the contents of the table that parts are made of
COMPRESSION = "zstd"
ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "Free some space and go on with --resume."),
    **dict.fromkeys((errno.ENOLCK, errno.EOPNOTSUPP), "Choose a folder of a file system with locks."),
}

Settings = Mapping[str, str | int | None]


@dataclass(frozen=True)
class Parts:
    """The parts of one output: Parquet files, and lines about the rows that failed.

    Attributes:
        out: the Parquet file that they will become.
        schema: Arrow's schema of every part.
        settings: all that decides what the parts hold; another run's parts must have been made with the same.
        table: the file that they are made of, for messages.
    """

    out: Path
    schema: Any
    settings: Settings
    table: Path

    @property
    def folder(self) -> Path:
        """Where the parts lie."""
        return self.out.with_name(f".{self.out.name}.parts")

    @property
    def errors(self) -> Path:
        """The file of rows that failed; absent if none did."""
        return self.out.with_name(f"{self.out.name}.errors.jsonl")

    @property
    def is_finished(self) -> bool:
        """Whether the output is there and its parts were done with."""
        return self.out.exists() and not (self.folder / MANIFEST).exists()

    @contextmanager
    def held_alone(self) -> Iterator[None]:
        """Hold the output, so that nobody else writes it, until the block or the process ends.

        Raises:
            ValueError: another process, or thread, holds it.
            OSError: the folder that it is in cannot be written.
        """
        from filelock import FileLock, Timeout  # here: 25 ms, of which single networks have no use

        lock = FileLock(self.out.with_name(f".{self.out.name}.lock"), timeout=0)
        with self._told():
            self.out.parent.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
            except Timeout:
                raise ValueError(
                    f"{self.out}: expected a file that no other run writes, got one of a run that goes on. "
                    "Wait for it, or choose another file."
                ) from None
            except OSError:
                Path(lock.lock_file).unlink(missing_ok=True)
                raise
        try:
            yield
        finally:
            Path(lock.lock_file).unlink(missing_ok=True)  # while it is held, as only_one_in of nasrlm.files does
            lock.release()

    def begin(self, *, resume: bool) -> int:
        """Make the folder, or find that of a killed run.

        Returns:
            The number of finished parts.

        Raises:
            ValueError: there is an output or a folder and ``resume`` is not set, or the folder is of another run.
            OSError: the folder cannot be made; none is left then.
        """
        manifest = self.folder / MANIFEST
        if manifest.exists() and not resume:
            raise ValueError(
                f"{self.folder}: expected no such folder, got the parts of an unfinished run. "
                "Go on with --resume, or delete it."
            )
        if self.out.exists() and not resume:
            raise ValueError(f"{self.out}: expected no such file, got one. Delete it, or name another.")
        if not manifest.exists():
            self._make_folder()
        self._check(json.loads(manifest.read_text()), f"{self.folder}: expected parts", "Delete it to start anew.")
        finished = 0
        while self._part(finished).exists():
            finished += 1
        return finished

    def write(self, index: int, table: Any, errors: Sequence[Mapping[str, Any]]) -> None:
        """Write one part; it counts as finished when its Parquet file is there, which comes last."""
        with self._told():
            _write(self._part_errors(index), "".join(f"{json.dumps(error)}\n" for error in errors))
            temporary = _temporary(self._part(index))
            pq.write_table(table.cast(self.schema), temporary, compression=COMPRESSION)
            temporary.replace(self._part(index))

    def assemble(self, count: int) -> None:
        """Join ``count`` parts to the output and the file of errors, and remove them. Memory: one part."""
        with self._told():
            self._assemble_errors(count)
            temporary = self.folder / "whole"
            with pq.ParquetWriter(temporary, self.schema, compression=COMPRESSION) as writer:
                for index in range(count):
                    writer.write_table(pq.read_table(self._part(index), schema=self.schema))
                writer.add_key_value_metadata({SETTINGS: json.dumps(self.settings)})
            temporary.replace(self.out)
            (self.folder / MANIFEST).unlink()  # first: without it the output counts as finished
            shutil.rmtree(self.folder)

    def count(self) -> tuple[int, int]:
        """Rows of the finished output, and rows that failed.

        Raises:
            ValueError: the output has other columns, so it was made of another table.
        """
        found = pq.read_schema(self.out).names
        if found != self.schema.names:
            wanted = ", ".join(self.schema.names)
            raise ValueError(f"{self.out}: expected columns {wanted}, got {', '.join(found)}. Name another file.")
        metadata = pq.read_metadata(self.out)
        if (settings := (metadata.metadata or {}).get(SETTINGS.encode())) is not None:
            self._check(json.loads(settings), f"{self.out}: expected an output", "Delete it, or name another.")
        failed = 0
        if self.errors.exists():
            with self.errors.open(encoding="utf-8") as stream:
                failed = sum(1 for _ in stream)
        return metadata.num_rows, failed

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Within this, errors that name no file, such as Arrow's, name the output."""
        try:
            yield
        except OSError as e:
            advice = ADVICE.get(e.errno or 0, "Name a file that you may write.")
            got = e.strerror or e
            raise OSError(f"{self.out}: expected to write this file and its parts, got {got}. {advice}") from e

    def _make_folder(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)  # of a run that was killed before it began or after it ended
        with self._told():
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
                wanted = f"{self.table} as it is now, {value}" if name == TABLE else value
                other = f"another, or {self.table.name} before it was changed, " if name == TABLE else ""
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
