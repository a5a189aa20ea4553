"""Files that are there whole or not at all."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import math
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

LOCK_FILE = ".lock"  # in a folder while somebody works there
TABLE_ENDINGS = (".parquet", ".csv", ".jsonl")
_UMASK_LOCK = threading.Lock()


class UnwritableError(OSError):
    """A file cannot be written; one line that names it."""


class BusyFolderError(ValueError):
    """Somebody else writes to a folder; one line that names it."""


@contextmanager
def only_one_in(folder: Path, work: str) -> Iterator[None]:
    """Make a folder and work there alone, until the block or the process ends; a new one that stays empty is removed.

    Args:
        folder: to work in.
        work: what is done there, for the message: "search".

    Raises:
        BusyFolderError: another process, or thread, works there.
        OSError: it cannot be written.
    """
    from filelock import FileLock, Timeout  # here: 25 ms, of which most commands have no use

    was_there, lock = folder.exists(), FileLock(folder / LOCK_FILE, timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise BusyFolderError(
            f"{folder}: expected a folder that no other {work} works in, got one of a {work} that runs. "
            "Wait for it, or choose another folder."
        ) from None
    except OSError as error:
        raise OSError(f"{folder}: expected a folder that can be made, got {error.strerror}. Choose another.") from error
    try:
        yield
    finally:
        (folder / LOCK_FILE).unlink(missing_ok=True)
        lock.release()
        if not was_there:
            with suppress(OSError):  # something has been written to it
                folder.rmdir()


def write_atomically(path: Path, contents: bytes) -> None:
    """Write beside ``path``, then rename: a reader sees the old file or the new one.

    Raises:
        UnwritableError: the folder cannot be written, or its disk is full; the message names the file.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(contents)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside ``path`` to write to, which takes its place at the end, or is removed if that fails.

    Raises:
        UnwritableError: the folder cannot be written, or its disk is full; the message names the file.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as stream:
            temporary = Path(stream.name)
        yield temporary
        make_readable(temporary)
        temporary.replace(path)
    except OSError as e:
        if temporary is not None and (e.errno is None or e.filename not in (None, str(temporary))):
            raise  # of something else that is done meanwhile
        full = e.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "Free some space." if full else "Name a folder you may write."
        raise UnwritableError(f"{path}: expected to write this file, got {e.strerror}. {advice}") from e
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Strict JSON: NaN and infinities, which it has no word for, become null."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def check_table_path(path: Path) -> None:
    """Check, before long work, that ``write_table`` can write to ``path``.

    Raises:
        ValueError: it ends in none of .parquet, .csv and .jsonl, or is a folder.
        OSError: the folder that it is in cannot be written; the message names it.
    """
    if path.suffix not in TABLE_ENDINGS:
        ending = path.suffix or "no ending"
        raise ValueError(f"{path}: expected a table ending in .parquet, .csv or .jsonl, got {ending}.")
    if path.is_dir():
        raise ValueError(f"{path}: expected a table to write, got a folder. Name another.")
    check_folder(path.parent)


def check_not_read(out: Path, *given: Path | str | None) -> None:
    """Check that a file to be written is none of those that are read.

    Raises:
        ValueError: it is one of them.
    """
    if any(x is not None and Path(x).resolve() == out.resolve() for x in given):
        raise ValueError(f"{out}: expected another file than the one that is read, got the same.")


def file_digest(path: Path) -> str:
    """Hash of a file's bytes.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_folder(folder: Path) -> None:
    """Check, before long work, that a folder can be written, which need not exist yet.

    Raises:
        OSError: nothing can be written there; the message names it.
    """
    nearest = next(place for place in (folder.resolve(), *folder.resolve().parents) if place.exists())
    try:
        tempfile.TemporaryDirectory(dir=nearest).cleanup()
    except OSError as e:
        raise OSError(f"{folder}: expected a folder that can be written, got {e.strerror}. Name another.") from e


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as its ending says: .parquet, .csv or .jsonl. Raises what ``check_table_path`` does."""
    check_table_path(path)
    buffer = io.BytesIO()
    if path.suffix == ".parquet":
        frame.to_parquet(buffer, index=False)
    elif path.suffix == ".csv":
        text = frame.to_csv(index=False)
        if "\r" in text:  # which ends a row where it is not quoted
            text = frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)
        buffer.write(text.encode())
    else:  # not by pandas, which keeps ten decimals
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        buffer.write("".join(f"{to_json(row)}\n" for row in rows).encode())
    write_atomically(path, buffer.getvalue())


def make_readable(path: Path) -> None:
    """Give a file the permissions that the umask allows.

    Temporary files, and those that safetensors writes, are otherwise readable by their owner alone.
    """
    path.chmod(0o666 & ~_umask())


def _umask() -> int:
    with _UMASK_LOCK:  # it is told only while it is another: of two threads one would keep that
        mask = os.umask(0o022)
        os.umask(mask)
    return mask


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
