"""Texts are read into tokens once a run."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from safetensors import SafetensorError

import nasrlm
from nasrlm.model.config import ModelConfig
from nasrlm.text.tokenizer import TextTokenizer
from nasrlm.training.run import TrainingRun
from nasrlm.training.stored_ids import key_of, store_ids, stored_ids
from nasrlm.training.train import train
from tests.nasrlm.runs import config, log_of
from tests.nasrlm.scenes import OBJECTIVES, SIZES, layer_examples


@pytest.mark.parametrize("truncation", ["error", "head"])
def test_texts_are_read_once_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, truncation: Literal["error", "head"]
) -> None:
    chosen = config(tmp_path, epochs=1, model=replace(SIZES, truncation=truncation))
    train(chosen, layer_examples(), progress=False)
    (tmp_path / "state.pt").unlink()
    first, read = log_of(tmp_path), TextTokenizer.to_ids
    seen: list[int] = []
    monkeypatch.setattr(TextTokenizer, "to_ids", lambda self, texts: seen.append(len(texts)) or read(self, texts))
    train(chosen, layer_examples(), progress=False)
    assert 180 not in seen  # train rows
    assert [entry["loss"] for entry in log_of(tmp_path)] == [entry["loss"] for entry in first]


def test_ids_that_a_full_disk_does_not_hold_are_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: object, **__: object) -> None:
        raise SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr("nasrlm.training.stored_ids.save_file", full_disk)
    with pytest.raises(OSError, match=r"ids: expected to write this file, got I/O error: No space .* disk full\?$"):
        store_ids(tmp_path / "ids", "key", [np.array([1, 2], dtype=np.int32)])
    assert list(tmp_path.iterdir()) == []


def test_other_or_broken_ids_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, ids = tmp_path / "ids", [np.array(x, dtype=np.int32) for x in ([1, 2], [3], [4, 5, 6])]
    tokenizer, sizes = TextTokenizer.train(["Conv3\n"]), ModelConfig()
    key = key_of("rows", tokenizer, sizes)
    assert stored_ids(path, key) is None
    store_ids(path, key, ids)
    assert [x.tolist() for x in stored_ids(path, key) or ()] == [[1, 2], [3], [4, 5, 6]]
    others = [key_of("others", tokenizer, sizes), key_of("rows", TextTokenizer.train(["Pool\n"]), sizes)]
    others += [key_of("rows", tokenizer, replace(sizes, truncation=x)) for x in ("head", "tail")]
    monkeypatch.setattr(nasrlm, "__version__", "another")  # may read texts otherwise
    others.append(key_of("rows", tokenizer, sizes))
    assert len({key, *others}) == 6
    assert stored_ids(path, others[0]) is None
    path.write_bytes(path.read_bytes()[:-3])
    assert stored_ids(path, key) is None


def test_stored_ids_are_those_of_the_rows_that_are_learned(tmp_path: Path) -> None:
    train(config(tmp_path / "first", max_steps=1), layer_examples(), progress=False)
    examples = layer_examples()
    odd = np.arange(len(examples.texts)) % 2 == 1
    labels = examples.labels.copy()
    labels[odd, 0], labels[~odd, 1] = np.nan, np.nan
    tokenizer = tmp_path / "first" / "checkpoint"
    runs = [
        TrainingRun(
            config(tmp_path / "run", initial_tokenizer=tokenizer, objectives=(name,)), replace(examples, labels=labels)
        )
        for name in OBJECTIVES[:2]
    ]
    assert all(run.new_ids for run in runs)
    assert runs[0].new_ids[0] != runs[1].new_ids[0]
