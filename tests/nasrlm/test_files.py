"""Files that are there whole or not at all, and errors that name the right one."""

import errno
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nasrlm.files import (
    TABLE_ENDINGS,
    check_folder,
    check_not_read,
    file_digest,
    make_readable,
    replacing,
    to_json,
    write_atomically,
    write_table,
)


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("before")
    with (
        pytest.raises(OSError, match=r"out\.txt: expected to write this file, got No space left .* Free some space"),
        replacing(path),
    ):
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


def test_folders_are_made_for_a_file_that_all_may_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    with replacing(path) as temporary:  # beside it, for to rename is quick and certain only there
        assert (temporary.parent, temporary.exists()) == (path.parent, True)
    write_atomically(path, b"abcd")
    assert path.read_bytes() == b"abcd"
    assert list(path.parent.iterdir()) == [path]
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    assert file_digest(path) == "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589"


READERS = dict(
    zip(TABLE_ENDINGS, (pd.read_parquet, pd.read_csv, lambda path: pd.read_json(path, lines=True)), strict=True)
)


@pytest.mark.parametrize("texts", [["plain", "two\nlines", 'say "x, y"'], ["plain", "a\rb", 'say "x, y"']])
@pytest.mark.parametrize("ending", TABLE_ENDINGS)
def test_a_table_is_read_as_written(ending: str, texts: list[str], tmp_path: Path) -> None:
    """All digits of its numbers, what is missing, and texts with every kind of line break and quote."""
    frame = pd.DataFrame({"text": texts, "number": [1 / 3, np.nan, 1e-300]}, index=[4, 5, 6])
    path = tmp_path / f"table{ending}"
    write_table(frame, path)
    read = READERS[ending](path)
    assert read.columns.tolist() == ["text", "number"]
    assert read.index.tolist() == [0, 1, 2]
    assert read["text"].tolist() == texts
    np.testing.assert_allclose(read["number"], frame["number"], rtol=1e-15)
    if ending == ".csv":
        assert path.read_text().startswith("text,") == ("\r" not in texts[1])  # quoted only where it has to be
    if ending == ".jsonl":
        assert json.loads(path.read_text().splitlines()[1]) == {"text": texts[1], "number": None}


@pytest.mark.parametrize(("name", "told"), [("table.xlsx", r"\.xlsx"), ("table", "no ending")])
def test_another_kind_of_table_is_refused(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"{name}: expected a table ending in .*, got {told}\."):
        write_table(pd.DataFrame(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_dates_are_written_as_words_where_json_has_no_form_for_them(tmp_path: Path) -> None:
    write_table(pd.DataFrame({"measured": pd.to_datetime(["2026-11-28", None])}), tmp_path / "t.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert rows == [{"measured": "2026-11-28 00:00:00"}, {"measured": None}]


def test_what_is_read_is_not_written_over(tmp_path: Path) -> None:
    given = tmp_path / "table.csv"
    check_not_read(given, None, tmp_path / "other.csv")
    with pytest.raises(ValueError, match=r"table\.csv: expected an output file other than the input, got the same"):
        check_not_read(given, None, str(tmp_path / "folder" / ".." / "table.csv"))


def test_a_folder_that_cannot_be_written_is_told_beforehand(tmp_path: Path) -> None:
    check_folder(tmp_path / "new" / "folder")
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"file/folder: expected a folder that can be written, got Not a directory"):
        check_folder(tmp_path / "file" / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_json_has_null_for_what_is_no_number() -> None:
    value = {"a": [1.5, float("nan"), (float("inf"), True)], "b": {"c": -float("inf")}, "d": None}
    assert json.loads(to_json(value)) == {"a": [1.5, None, [None, True]], "b": {"c": None}, "d": None}
    assert to_json({"a": 1}, indent=2) == '{\n  "a": 1\n}'


def test_files_are_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_atomically(path, b"first")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(OSError, match=r"expected to write this file, got File exists\. Choose a folder"):
        write_atomically(path / "below", b"")


def test_json_has_null_for_what_is_not_finite() -> None:
    assert (
        to_json({"a": [1.5, float("nan")], "b": (float("-inf"), "x", None)})
        == '{"a": [1.5, null], "b": [null, "x", null]}'
    )
