"""Files of a study are whole or absent."""

from pathlib import Path

import pytest

from nasrlm.files import write_atomically
from studies.folder import write_json


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


def test_json_is_strict(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "study.json", {"hypervolume": float("nan")})
    assert list(tmp_path.iterdir()) == []
