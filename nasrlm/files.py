"""Write files atomically, and check paths before long work."""

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
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from filelock import BaseFileLock

LOCK_FILE = ".lock"  # in a folder while a process works there
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)  # seconds between attempts to replace a file that is being read
TABLE_ENDINGS = (".parquet", ".csv", ".jsonl")  # or in capitals
_UMASK_LOCK = threading.Lock()


class UnwritableError(OSError):
    """The error for a file that cannot be written; one line that names it."""


class BusyFolderError(ValueError):
    """The error for a folder that another process or thread writes to; one line that names it."""


@contextmanager
def only_one_in(folder: Path, work: str) -> Iterator[None]:
    """Create a folder and lock it until the block or the process ends; a new folder that stays empty is removed.

    Args:
        folder: to work in.
        work: the kind of work, for the message, such as "search".

    Raises:
        BusyFolderError: another process or thread has locked it.
        OSError: it cannot be written.
    """
    from filelock import FileLock, Timeout  # here: takes 25 ms, and most commands do not need it

    was_there, lock = folder.exists(), FileLock(folder / LOCK_FILE, timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise BusyFolderError(
            f"{folder}: expected a folder that no other {work} uses, got one that a running {work} uses. Wait for it, "
            "or choose another folder."
        ) from None
    except OSError as error:
        raise OSError(
            f"{folder}: expected a folder that can be created, got {error.strerror}. Choose another."
        ) from error
    try:
        yield
    finally:
        let_go(lock)
        if not was_there:
            with suppress(OSError):  # the folder is not empty
                folder.rmdir()


def let_go(lock: BaseFileLock) -> None:
    """Release a lock and remove its file, while it is held, so that others who have the file open notice and reopen."""
    with suppress(PermissionError):  # Windows removes no open file; there, filelock removes it when it releases it
        Path(lock.lock_file).unlink(missing_ok=True)
    lock.release()


def write_atomically(path: Path, contents: bytes) -> None:
    """Write a file beside ``path``, then rename it, so that a reader sees either the old file or the new one.

    Raises:
        UnwritableError: the folder cannot be written, or its disk is full; the message names the file.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(contents)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside ``path`` to write to; it replaces ``path`` at the end, or is removed on failure.

    Raises:
        UnwritableError: the folder cannot be written, or its disk is full; the message names the file.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=_prefix(path), delete=False) as stream:
            temporary = Path(stream.name)
        yield temporary
        make_readable(temporary)
        _rename(temporary, path)
    except OSError as e:
        if temporary is not None and (e.errno is None or e.filename not in (None, str(temporary))):
            raise  # not about this file
        full = e.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "Free some space." if full else "Choose a folder that you may write to."
        raise UnwritableError(f"{path}: expected to write this file, got {e.strerror}. {advice}") from e
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _rename(temporary: Path, path: Path) -> None:
    """Rename a file over another; on Windows this fails while another program reads that one, as a virus scanner."""
    for pause in PAUSES:
        with suppress(PermissionError):
            temporary.replace(path)
            return
        time.sleep(pause)
    temporary.replace(path)


def remove_leftovers(path: Path) -> None:
    """Remove what processes that were killed while they wrote ``path`` left; no other process may be writing it."""
    for leftover in path.parent.glob(f"{_prefix(path)}*"):
        leftover.unlink(missing_ok=True)


def _prefix(path: Path) -> str:
    return f".{path.name}."  # of temporary files


def to_json(value: Any, *, indent: int | None = None, spell: Callable[[Any], str] | None = None) -> str:
    """Return strict JSON, in which NaN and infinities become null; ``spell`` writes what JSON has no form for."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False, default=spell)


def check_table_path(path: Path) -> None:
    """Check, before long work, that ``write_table`` can write to ``path``.

    Raises:
        ValueError: it ends in none of .parquet, .csv and .jsonl, or is a folder.
        OSError: its folder cannot be written; the message names it.
    """
    if path.suffix.lower() not in TABLE_ENDINGS:
        ending = path.suffix or "no ending"
        raise ValueError(f"{path}: expected a table ending in .parquet, .csv or .jsonl, got {ending}.")
    if path.is_dir():
        raise ValueError(f"{path}: expected a table to write, got a folder. Choose another path.")
    check_folder(path.parent)


def check_not_read(out: Path, *given: Path | str | None) -> None:
    """Check that an output file is none of the input files.

    Raises:
        ValueError: it is one of them.
    """
    if any(x is not None and Path(x).resolve() == out.resolve() for x in given):
        raise ValueError(f"{out}: expected an output file other than the input, got the same file.")


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_folder(folder: Path) -> None:
    """Check, before long work, that a folder, which need not exist yet, can be written.

    Raises:
        OSError: it cannot be written; the message names it.
    """
    nearest = next(place for place in (folder.resolve(), *folder.resolve().parents) if place.exists())
    try:
        tempfile.TemporaryDirectory(dir=nearest).cleanup()
    except OSError as e:
        raise OSError(f"{folder}: expected a folder that can be written, got {e.strerror}. Choose another.") from e


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table in the format of the path's ending: .parquet, .csv or .jsonl. Raises as ``check_table_path``."""
    check_table_path(path)
    buffer = io.BytesIO()
    if path.suffix.lower() == ".parquet":
        frame.to_parquet(buffer, index=False)
    elif path.suffix.lower() == ".csv":
        text = frame.to_csv(index=False)
        if "\r" in text:  # an unquoted one would end a row
            text = frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)
        buffer.write(text.encode())
    else:  # pandas would round to ten decimals
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        buffer.write("".join(f"{to_json(row, spell=str)}\n" for row in rows).encode())  # a date, for example
    write_atomically(path, buffer.getvalue())


def make_readable(path: Path) -> None:
    """Give a file the permissions that the umask allows.

    Otherwise temporary files, and those that safetensors writes, are readable only by their owner.
    """
    path.chmod(0o666 & ~_umask())


def _umask() -> int:
    with _UMASK_LOCK:  # reading the umask means changing it for a moment, and two threads could keep the changed one
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
