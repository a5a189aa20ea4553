"""What a run reads: rows of tables with their texts, and what becomes of the docs' Python."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nasrlm
from converters import to_measured_text
from nasrlm.checkpoints.folder import released_folder
from nasrlm.model.config import ModelConfig
from nasrlm.training.config import TrainConfig
from spaces import get_space
from studies.tables.training_examples import _digest, limit_notations, training_examples
from tests.nasrlm.scenes import OBJECTIVES, architecture_table, layer_table

DOCS = Path(__file__).resolve().parents[3] / "docs"
ARCHITECTURE = "|nor_conv_3x3~0|+|none~0|nor_conv_1x1~1|+|skip_connect~0|avg_pool_3x3~1|nor_conv_3x3~2|"


def python_of(page: str) -> list[str]:
    return re.findall(
        r"^```python\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def test_architectures_and_texts_are_read_alike(tmp_path: Path) -> None:
    networks, texts = architecture_table(8), layer_table(8)
    networks.to_parquet(tmp_path / "networks.parquet")
    texts.to_csv(tmp_path / "texts.csv")
    tables = (tmp_path / "networks.parquet", tmp_path / "texts.csv")
    rows = training_examples(TrainConfig(table=tables, out=tmp_path / "run", objectives=OBJECTIVES))
    space = get_space("nasbench201")
    spelled = [to_measured_text(space, space.parse(notation)) for notation in networks["architecture"]]
    assert rows.texts == [*spelled, *texts["text"]]
    assert rows.spaces.tolist() == ["nasbench201"] * 8 + ["text"] * 8
    np.testing.assert_array_equal(rows.labels, pd.concat([networks, texts])[list(OBJECTIVES)].to_numpy())


def test_a_network_of_many_spellings_has_five_valid_rows() -> None:
    unread = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
    same = [f"|{operation}~0|+|none~0|none~1|+|none~0|none~1|none~2|" for operation in unread]
    rows = {
        "space": "nasbench201",
        "architecture": [*same, *same, same[0], ARCHITECTURE],
        "split": ["train"] * len(same) + ["valid"] * (len(same) + 2),
        "latency_ms@x": 1.0,
    }
    kept = limit_notations(pd.DataFrame(rows), Path("t.csv"), ["latency_ms@x"])
    assert kept["architecture"].tolist() == [*same, *same, ARCHITECTURE]


def test_rows_of_one_label_each_are_counted_label_by_label() -> None:
    rows = pd.DataFrame({"space": "nasbench201", "architecture": ARCHITECTURE, "split": ["valid"] * 14})
    rows["latency_ms@x"] = [np.nan, *[1.0] * 7, *[np.nan] * 6]
    rows["latency_ms@y"] = [*[np.nan] * 8, *[1.0] * 6]
    kept = limit_notations(rows, Path("t.csv"), ["latency_ms@x", "latency_ms@y"])
    assert kept.index.tolist() == [0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12]


@pytest.mark.parametrize(
    ("columns", "objectives", "message"),
    [
        ("params", ("params",), "b.csv: expected numbers in column params, got 'many' in row 0."),
        ("latency ms@mine", (), "b.csv: objective: expected metric_unit@context, got 'latency ms@mine'."),
    ],
)
def test_a_column_that_is_no_label_is_told_by_its_table(
    tmp_path: Path, columns: str, objectives: tuple[str, ...], message: str
) -> None:
    tables = tmp_path / "a.csv", tmp_path / "b.csv"
    tables[0].write_text("text,params,latency_ms@mine\na,1,2\n")
    tables[1].write_text(f"text,{columns}\nb,{'many' if objectives else 3}\n")
    config = TrainConfig(table=tables, out=tmp_path / "run", objectives=objectives)
    with pytest.raises(ValueError, match=re.escape(message)):
        training_examples(config)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"initial_checkpoint": released_folder(), "tokenizer": "code"}, "tokenizer: expected chains, as "),
        ({"initial_checkpoint": released_folder(), "num_digits": 5}, "num_digits: expected 3, as "),
        ({"initial_tokenizer": released_folder(), "vocabulary_size": 300}, "released, or more, or no value, got 300"),
        ({"initial_tokenizer": Path("absent")}, "absent: expected a checkpoint folder with"),
        ({"model": ModelConfig(backbone="absent")}, "model.backbone: expected compact, or a T5Gemma"),
        ({"augment": "absent:swap"}, "augment absent:swap: expected"),
        ({"device": "abacus"}, "device: expected one that torch can use here, got 'abacus'"),
        ({"monitor": ("speed@x",)}, "train: monitor: expected names among "),
        ({"objective_weights": {"speed@x": 2.0}}, "train: objective_weights: expected names among "),
    ],
)
def test_what_cannot_be_trained_is_told_before_architectures_are_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
) -> None:
    architecture_table(8).to_parquet(tmp_path / "networks.parquet")
    monkeypatch.setattr("studies.tables.training_examples.texts_of_tables", lambda *_, **__: pytest.fail("converted"))
    config = TrainConfig(table=(tmp_path / "networks.parquet",), out=tmp_path / "run", **changes)
    with pytest.raises(ValueError, match=re.escape(message)):
        training_examples(config)


def test_examples_are_read_from_a_table(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"table: expected a config that names a table or several, got none\."):
        training_examples(TrainConfig(out=tmp_path))


def test_texts_are_made_again_when_the_space_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space, *_ = python_of("new-space.md")
    frame = pd.DataFrame({"space": ["my_space.py:MySpace"], "architecture": ['[16, 2, 3, "relu"]']})
    config = TrainConfig(out=Path("run"))
    Path("my_space.py").write_text(space)
    before = _digest(config, [frame])
    Path("my_space.py").write_text(f"{space}\n")
    assert _digest(config, [frame]) != before
    assert _digest(config, [frame]) == _digest(config, [frame])


def test_the_python_of_the_docs_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    layer_table(40).to_csv("labels.csv")
    sizes = "model: {width: 16, num_heads: 2, hidden: 32}"
    Path("train.yaml").write_text(f"table: labels.csv\nout: run\nmax_steps: 2\n{sizes}\n")
    (script,) = (part for part in python_of("training.md") if "nasrlm.train(" in part)
    values: dict[str, object] = {"__name__": "__main__"}
    exec(compile(script.replace("max_steps=100", "max_steps=2"), "training.md", "exec"), values)
    result = values["result"]
    assert isinstance(result, nasrlm.training.train.TrainResult)
    assert result.checkpoint.objectives == ("latency_ms@mine",)
    assert Path("runs/depth/checkpoint/config.json").is_file()


def test_settings_in_place_of_a_config_are_refused() -> None:
    with pytest.raises(ValueError, match=r"training_examples: expected a TrainConfig, got dict\."):
        training_examples({"table": ["a.csv"]})  # type: ignore[arg-type]
