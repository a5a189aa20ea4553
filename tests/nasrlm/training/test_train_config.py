"""Configs of training runs: unknown keys and impossible values are refused in one line that names them."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasrlm.model.config import ModelConfig
from nasrlm.training.config import TrainConfig

LEAST = "table: labels.parquet\nout: runs/first\n"


def load(tmp_path: Path, text: str) -> TrainConfig:
    path = tmp_path / "train.yaml"
    path.write_text(text)
    return TrainConfig.load(path)


def test_a_config_is_a_table_and_a_folder(tmp_path: Path) -> None:
    config = load(tmp_path, LEAST)
    assert (config.table, config.out) == ((Path("labels.parquet"),), Path("runs/first"))
    assert config.model == ModelConfig()


def test_a_config_is_named_by_a_string_too(tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(LEAST)
    assert TrainConfig.load(str(tmp_path / "train.yaml")) == TrainConfig.load(tmp_path / "train.yaml")


@pytest.mark.parametrize("width", [96.0, "96", np.int64(96)])
def test_sizes_of_another_type_are_refused(width: Any) -> None:
    told = re.escape(f"ModelConfig: width: expected an int of 1 or more, got {width!r}.")
    with pytest.raises(ValueError, match=f"^{told}$"):
        ModelConfig(width=width)


def test_tables_may_be_several(tmp_path: Path) -> None:
    several = load(tmp_path, LEAST.replace("labels.parquet", "[labels.parquet, others.csv]"))
    assert several.table == (Path("labels.parquet"), Path("others.csv"))


def test_a_file_may_be_like_another_but_for_what_it_says(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(LEAST + "seed: 3\nspace_weights: {darts: 2}\nmodel: {width: 64, num_heads: 4}\n")
    second.write_text(f"like: {first}\nout: runs/second\nspace_weights: {{}}\n")
    config = load(tmp_path, f"like: {second}\nseed: 5\n")
    assert config == TrainConfig.load(first, out=Path("runs/second"), space_weights={}, seed=5)


def test_a_file_is_like_one_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("first.yaml").write_text("another: 1\n")
    Path("recipes").mkdir()
    first = Path("recipes/first.yaml")
    first.write_text(LEAST + "seed: 3\n")
    assert load(Path("recipes"), "like: first.yaml\n") == TrainConfig.load(first)
    first.write_text(LEAST + "epoch: 3\n")
    with pytest.raises(ValueError, match=r"recipes/first\.yaml: expected a known key, got epoch\."):
        load(Path("recipes"), "like: first.yaml\n")
    first.write_text("like: train.yaml\n")
    with pytest.raises(ValueError, match=r"expected a file that does not inherit from this one, got train\.yaml"):
        load(tmp_path / "recipes", "like: recipes/first.yaml\n")


def test_the_file_that_says_a_wrong_key_is_named(tmp_path: Path) -> None:
    first = tmp_path / "first.yaml"
    first.write_text(LEAST + "epoch: 3\n")
    with pytest.raises(ValueError, match=r"first\.yaml: expected a known key, got epoch\."):
        load(tmp_path, f"like: {first}\nseed: 5\n")
    with pytest.raises(ValueError, match=r"train\.yaml: seed: Input should be greater than or equal to 0, got -5\."):
        load(tmp_path, f"like: {first}\nseed: -5\n")


def test_files_that_are_like_each_other_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(f"like: {tmp_path / 'train.yaml'}\n")
    with pytest.raises(
        ValueError, match=r"other.yaml: like: expected a file that does not inherit from this one, got .*train.yaml"
    ):
        load(tmp_path, f"like: {other}\n")


def test_values_of_the_file_replace_the_defaults_and_overrides_both(tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(LEAST + "seed: 3\nmodel: {width: 64, num_heads: 4}\n")
    config = TrainConfig.load(tmp_path / "train.yaml", seed=5)
    assert config.seed == 5
    assert config.model == ModelConfig(width=64, num_heads=4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LEAST + "evaluate_every_epochs: .inf\n", "evaluate_every_epochs: Input should be a finite number, got inf"),
        (LEAST + "seed: 100000000000000\n", "seed: Input should be less than 4294967296, got 100000000000000"),
        (LEAST + "min_exponent: -400\n", "min_exponent: Input should be greater than or equal to -280, got -400"),
        (LEAST + "objectives: [a@b, a@b]\n", "objectives: expected different names, got a@b, a@b."),
        (LEAST + "epoch: 3\n", "expected a known key, got epoch. Did you mean epochs?"),
        (LEAST + "model: {colour: 3}\n", "expected a known key, got model.colour. docs/training.md lists all."),
        (LEAST + "model: {widht: 3}\n", "expected a known key, got model.widht. Did you mean width?"),
        (
            LEAST + "model: {width: 64, num_heads: 5}\n",
            "model: ModelConfig: expected width to be a multiple of 2 * num_heads, got 64 and 5.",
        ),
        (LEAST + "model: {hidden: 0}\n", "model: ModelConfig: hidden: expected an int of 1 or more, got 0."),
        (LEAST + "model: {dropout: 1}\n", "model: ModelConfig: dropout: expected a number in [0, 1), got 1.0."),
        (LEAST.replace("labels.parquet", "[]"), "table: expected a file or a list of files, got none"),
        (
            LEAST + "extend_tokenizer: true\n",
            "train.yaml: extend_tokenizer: expected an initial_checkpoint of a compact model.",
        ),
        (
            LEAST + "initial_checkpoint: a\ninitial_tokenizer: b\n",
            "train.yaml: initial_tokenizer: expected a compact model and no initial_checkpoint.",
        ),
        (
            LEAST + "initial_share: 0.5\n",
            "train.yaml: initial_share: expected an initial_checkpoint, got none.",
        ),
        (
            LEAST + "model: {num_readouts: 2}\n",
            "train.yaml: model.num_readouts: expected 0, got 2. `nasrlm adapt` sets it.",
        ),
        (LEAST + "like: [a.yaml]\n", "train.yaml: like: expected the path of a YAML file, got ['a.yaml']."),
        (LEAST + "epochs: 0\n", "epochs: Input should be greater than or equal to 1, got 0"),
        (LEAST + "seed: -1\n", "seed: Input should be greater than or equal to 0, got -1"),
        (LEAST + "objective_weights: {a@b: 0}\n", "objective_weights.a@b: Input should be greater than 0, got 0"),
        (LEAST + "learning_rate: fast\n", "learning_rate: Input should be a valid number"),
        (LEAST + "objectives: [a@b]\nmonitor: [c@d]\n", "monitor: expected objectives that are learned, got ['c@d']"),
        (LEAST + "objectives: a@b\n", "objectives: expected a list, got 'a@b'"),
        (LEAST + "model: {head: mae}\n", "model.head: Input should be 'digits' or 'mse', got 'mae'"),
        (LEAST + "model: {lora_rank: 4}\n", "model: ModelConfig: expected lora_rank of 0 or more, and a"),
        (LEAST + "vocabulary_size: 1000000000000\n", "vocabulary_size: Input should be less than or equal to 1048576"),
        (LEAST + "model: {truncation: middle}\n", "model.truncation: Input should be 'error', 'head', 'tail' or"),
        (LEAST + "tokenizer: words\n", "tokenizer: Input should be 'onnx', 'chains' or 'code', got 'words'"),
        (LEAST + "augment: twice\n", "augment: String should match pattern"),
        (LEAST + "accumulation_steps: 0\n", "accumulation_steps: Input should be greater than or equal to 1, got 0"),
        (LEAST + "rank_loss_weight: -1\n", "rank_loss_weight: Input should be greater than or equal to 0, got -1"),
        ("out: runs\n", "train.yaml: table: expected a file or a list of files, got none"),
        ("- a list\n", "expected keys and values, got list"),
        ("", "expected keys and values, got NoneType"),
        ("a: [\n", "expected YAML, got"),
        ("? [1]\n: 2\n", "expected YAML, got"),
        (LEAST + "epochs: 2\nseed: 1\nepochs: 3\n", "train.yaml: expected YAML, got epochs twice in"),
        (LEAST + "model: {width: 64, width: 96}\n", "train.yaml: expected YAML, got width twice in"),
    ],
)
def test_other_configs_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"train\.yaml: ") as raised:
        load(tmp_path, text)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert str(raised.value).count(", got ") <= 1


def test_a_missing_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.yaml: expected a YAML file, got No such file or directory"):
        TrainConfig.load(tmp_path / "none.yaml")
    with pytest.raises(ValueError, match=r"none\.yaml: expected a YAML file, got No such file or directory"):
        load(tmp_path, LEAST + "like: none.yaml\n")


def test_the_documentation_names_every_key() -> None:
    documented = (Path(__file__).resolve().parents[3] / "docs" / "training.md").read_text(encoding="utf-8")
    keys = {*TrainConfig.model_fields, *(field.name for field in fields(ModelConfig))} - {"backbone_sizes"}
    assert [key for key in sorted(keys) if f"`{key}`" not in documented and f"`model.{key}`" not in documented] == []


def test_a_run_of_steps_ends_by_them_and_evaluates_at_equal_distances() -> None:
    config = TrainConfig(out=Path("out"), batch_size=32, warmup_epochs=3, patience=2)
    lasting = config.of_steps(100, 70, evaluations=5)  # three steps an epoch
    assert (lasting.max_steps, lasting.epochs, lasting.patience, lasting.warmup_epochs) == (100, 34, 6, 3)
    assert round(3 * lasting.evaluate_every_epochs) == 20
    assert config.of_steps(100, 70, evaluations=5, warmup_share=0.1).warmup_epochs == pytest.approx(10 / 3)
