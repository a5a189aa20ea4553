"""Files that are there whole or not at all, and errors that name the right one."""

import errno
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nasrlm.files import make_readable, replacing, write_atomically


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("before")
    with pytest.raises(OSError, match=r"out\.txt: expected to write this file, got No space left"), replacing(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "front.csv"
    write_atomically(path, b"old")

    def full(source: Path, target: Path) -> Path:
        assert source.read_bytes() == b"new"
        assert target.read_bytes() == b"old"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match=r"front\.csv: expected to write this file, got No space left on device"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["front.csv"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        OSError, match=r"file/front\.csv: expected to write this file, got (File exists|Not a directory)"
    ):
        write_atomically(tmp_path / "file" / "front.csv", b"")


def test_an_error_of_another_file_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No such file or directory"), replacing(tmp_path / "out"):
        (tmp_path / "missing").read_bytes()
    with pytest.raises(OSError, match=r"^no licence$"), replacing(tmp_path / "out"):
        raise OSError("no licence")
    assert list(tmp_path.iterdir()) == []


def test_threads_that_write_leave_the_umask_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    umask, path = os.umask, tmp_path / "file"
    path.touch()

    def slow_umask(mask: int) -> int:
        before = umask(mask)
        time.sleep(0.01)
        return before

    given = umask(0o077)
    try:
        with monkeypatch.context() as patched, ThreadPoolExecutor(8) as pool:
            patched.setattr(os, "umask", slow_umask)
            list(pool.map(make_readable, [path] * 16))
    finally:
        left = umask(given)
    assert left == 0o077
    assert path.stat().st_mode & 0o777 == 0o600
