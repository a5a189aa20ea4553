"""The verb train: what it writes, reads and warns of, and its JSON document."""

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.files import write_table
from spaces import get_space
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.scenes import OBJECTIVES, architecture_table, layer_table
from tests.nasrlm.workplace import assert_one_line


def train_config(folder: Path, table: pd.DataFrame, **changes: object) -> Path:
    write_table(table, folder / "train.csv")
    sizes = {"width": 16, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "hidden": 32}
    config = {
        "table": str(folder / "train.csv"),
        "out": str(folder / "run"),
        "model": sizes,
        "epochs": 2,
        "batch_size": 8,
    }
    (folder / "train.yaml").write_text(yaml.safe_dump(config | changes))
    return folder / "train.yaml"


def _show_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """On stderr, where pytest does not look."""
    monkeypatch.setattr("warnings.showwarning", lambda *told: sys.stderr.write(warnings.formatwarning(*told[:4])))


def test_train_writes_a_checkpoint_with_a_card(answers: Any, tmp_path: Path) -> None:
    frame = layer_table(48).assign(split=["train", "valid", "train", "test"] * 12)
    config = train_config(tmp_path, frame, sources=["Labels: made up."])
    result = answers("train", "--config", config, "--seed", 4)
    assert result["steps"] == 6
    assert set(result["test"]["text"]) == set(OBJECTIVES)
    folder = Path(result["checkpoint"])
    loaded = Checkpoint.from_pretrained(folder)
    assert loaded.card["test"] == result["test"]
    assert loaded.card["training"]["seed"] == 4
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"nasrlm train --config {config}" in card
    assert "- Labels: made up.\n" in card
    assert any("texts of valid rows are also in train rows" in words for words in result["caveats"])
    assert all(f"- {words}.\n" in card for words in result["caveats"])


def test_a_recipe_is_named_without_its_folder(
    nasrlm: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("nasbench201_unseen").mkdir()  # such as an earlier run's
    for name in ("nasbench201_unseen", "encoders"):  # the second is like another recipe
        told = nasrlm("train", "--config", name)
        assert_one_line(told, "../shared/data/nasbench201.parquet: expected a table, got no such file.")
    Path("nasbench201_unseen").rmdir()
    train_config(Path(), layer_table(16)).rename("nasbench201_unseen")  # a file of one's own goes first
    assert nasrlm("train", "--config", "nasbench201_unseen").status == 0


@pytest.mark.filterwarnings("default")
def test_training_without_valid_rows_says_what_it_lacks(
    nasrlm: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _show_warnings(monkeypatch)
    told = nasrlm("train", "--config", train_config(tmp_path, layer_table(16).assign(split="train")), "--json")
    assert told.status == 0
    assert json.loads(told.stdout)["caveats"] == []  # the key is there for scripts
    assert told.stderr == (
        "nasrlm: no row of split valid has a label: the last weights are kept, intervals are not calibrated.\n"
    )


def test_training_without_train_rows_is_told_in_one_line(nasrlm: CommandLine, tmp_path: Path) -> None:
    write_table(layer_table(8).assign(split="test"), tmp_path / "t.csv")
    (tmp_path / "t.yaml").write_text(f"table: {tmp_path / 't.csv'}\nout: {tmp_path / 'run'}\n")
    finished = nasrlm("train", "--config", tmp_path / "t.yaml")
    assert finished.status == 2
    assert finished.stderr == (
        "nasrlm: train: expected labelled rows with split 'train', got none. See the column `split`.\n"
    )


@pytest.mark.filterwarnings("default")
def test_what_our_code_warns_of_is_one_line(
    nasrlm: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(layer_table(8), tmp_path / "t.csv")
    sizes = "{width: 16, num_heads: 2, hidden: 32, num_encoder_layers: 1, max_text_tokens: 2, truncation: tail}"
    (tmp_path / "t.yaml").write_text(
        f"table: {tmp_path / 't.csv'}\nout: {tmp_path / 'run'}\nmodel: {sizes}\nmax_steps: 1\n"
    )
    _show_warnings(monkeypatch)
    told = nasrlm("train", "--config", tmp_path / "t.yaml").stderr
    assert re.search(r"^nasrlm: text: \d of \d are longer than 2 tokens; only tail is read", told, re.MULTILINE)
    assert all(line.startswith("nasrlm: ") for line in told.splitlines())


def test_train_reads_texts_and_architectures_from_one_table(answers: Any, tmp_path: Path) -> None:
    texts = layer_table(16).assign(split=["train", "valid", "train", "test"] * 4)
    architectures = architecture_table(16).drop(columns=OBJECTIVES[1])  # these have no latency
    config = train_config(tmp_path, pd.concat([texts, architectures]), objectives=list(OBJECTIVES), epochs=1)
    found = answers("train", "--config", config)["test"]
    assert {space: set(quality) for space, quality in found.items()} == {
        "nasbench201": {OBJECTIVES[0]},
        "text": set(OBJECTIVES),
    }


def test_train_reads_lists_and_spaces_of_texts(answers: Any, nasrlm: CommandLine, tmp_path: Path) -> None:
    fbnet, rng = get_space("fbnet"), np.random.default_rng(0)
    lists = pd.DataFrame(
        {"space": "fbnet", "architecture": [json.loads(fbnet.format(fbnet.sample(rng))) for _ in range(6)]}
    )
    texts = pd.DataFrame({"space": "mine", "architecture": "unread", "text": ["Conv3\n", "Pool\n"] * 3})
    rows = pd.concat([lists, texts], ignore_index=True)
    rows = rows.assign(split=["train", "valid", "test"] * 4, **{OBJECTIVES[0]: np.linspace(90, 95, 12)})
    write_table(rows, tmp_path / "rows.jsonl")
    config = train_config(tmp_path, rows, epochs=1)
    config.write_text(config.read_text().replace("train.csv", "rows.jsonl"))
    assert set(answers("train", "--config", config)["test"]) == {"fbnet", "mine"}
    write_table(rows.assign(architecture="[1]"), tmp_path / "rows.jsonl")
    told = nasrlm("train", "--config", config)
    assert "rows.jsonl, row 1: fbnet notation: expected a list" in told.stderr


def test_train_reads_architectures(answers: Any, tmp_path: Path) -> None:
    config = train_config(tmp_path, architecture_table(16), objectives=list(OBJECTIVES), epochs=1)
    assert set(answers("train", "--config", config, "--out", tmp_path / "other")["test"]) == {"nasbench201"}
    assert (tmp_path / "other" / "checkpoint" / "model.safetensors").is_file()
