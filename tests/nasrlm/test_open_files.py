"""Windows removes and renames no open files, so nothing may depend on that."""

import os
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import pandas as pd
import psutil
import pytest

from converters.tables.stream import StreamConfig, convert_table
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.checkpoints.folder import SPACES_FILE, released_folder
from nasrlm.files import only_one_in, write_atomically, write_table
from studies.storage.locks import FileLocks
from tests.nasrlm.scenes import OBJECTIVES, architecture_table

pytestmark = pytest.mark.skipif(not hasattr(psutil.Process, "memory_maps"), reason="macOS does not tell what is mapped")


@pytest.fixture
def open_files_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse what Windows refuses."""

    def refusing(change: Callable[..., None]) -> Callable[..., None]:
        def changed(path: Path | str, *rest: Any, **options: Any) -> None:
            if {*map(os.path.abspath, (path, *rest))} & {x.path for x in psutil.Process().open_files()}:
                raise PermissionError(13, "the file is being used", str(path))
            change(path, *rest, **options)

        return changed

    for name in ("unlink", "replace"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))


@pytest.mark.usefixtures("open_files_stay")
def test_a_folder_is_free_again_after_its_work(tmp_path: Path) -> None:
    for _ in range(2):
        with only_one_in(tmp_path / "study", "search"):
            pass


@pytest.mark.usefixtures("open_files_stay")
def test_a_file_is_replaced_as_soon_as_others_have_read_it(tmp_path: Path) -> None:
    path = tmp_path / "history.parquet"
    path.write_bytes(b"old")
    with path.open("rb") as stream:
        Timer(0.2, stream.close).start()
        write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("open_files_stay")
def test_a_trial_is_free_again_after_its_evaluation(tmp_path: Path) -> None:
    mine, others = FileLocks(tmp_path), FileLocks(tmp_path)
    mine.hold(0)
    assert others.is_held(0)
    mine.release(0)
    assert not others.is_held(0)


@pytest.mark.usefixtures("open_files_stay")
def test_a_table_is_converted(tmp_path: Path) -> None:
    write_table(architecture_table(4), tmp_path / "table.csv")
    convert_table(StreamConfig(tmp_path / "table.csv", tmp_path / "texts.parquet", workers=1))
    assert pd.read_parquet(tmp_path / "texts.parquet")["text"].notna().all()


@pytest.mark.usefixtures("open_files_stay")
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_table_is_predicted(answers: Any, tmp_path: Path, ending: str) -> None:
    write_table(architecture_table(4)[["architecture", "space"]], tmp_path / "table.csv")
    words = ("--table", tmp_path / "table.csv", "--out", tmp_path / f"predicted{ending}")
    assert answers("predict", *words, "--objectives", OBJECTIVES[1])["rows"] == 4


def test_a_loaded_checkpoint_keeps_no_file_in_use() -> None:
    loaded = Checkpoint.from_pretrained()
    assert loaded.encoders
    in_use = {x.path for x in psutil.Process().memory_maps()}
    assert not in_use & {str(released_folder() / name) for name in ("model.safetensors", SPACES_FILE)}
