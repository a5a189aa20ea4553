"""Specialists learn for as many steps as the joint model spent on their space, and are compared on the same rows."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

import benchmarks.specialists
from benchmarks.specialists import Config, compare, steps_by_space, table
from nasrlm.files import write_table
from nasrlm.training.config import TrainConfig
from nasrlm.training.train import train
from studies.tables.training_examples import training_examples
from tests.nasrlm.scenes import OBJECTIVES, architecture_table

SIZES = {"width": 16, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "hidden": 32}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """Of two spaces: 16 train rows each, one drawn three times as often, 8 steps."""
    cells = architecture_table(32)
    stages = pd.DataFrame({"space": "nasbench_macro", "architecture": [f"{i:08b}" for i in range(32)]})
    stages = stages.assign(split=cells["split"], **{OBJECTIVES[0]: range(32)})
    write_table(pd.concat([cells, stages], ignore_index=True), tmp_path / "rows.parquet")
    values = {
        "table": str(tmp_path / "rows.parquet"),
        "out": str(tmp_path / "joint"),
        "objectives": list(OBJECTIVES),
        "space_weights": {"nasbench201": 3.0},
        "objective_weights": {OBJECTIVES[1]: 2.0},
        "model": SIZES,
        "max_steps": 8,
        "batch_size": 4,
        "num_digits": 2,
    }
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(values))
    return tmp_path / "recipe.yaml"


def test_steps_follow_the_weights(recipe: Path) -> None:
    config = TrainConfig.load(recipe)
    assert steps_by_space(config, training_examples(config)) == {"nasbench201": 6, "nasbench_macro": 2}


def test_both_models_are_asked(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    joint = TrainConfig.load(recipe)
    train(joint, training_examples(joint), progress=False)
    config = Config((recipe, recipe), out=tmp_path / "alone")
    cells, stages = compare(config)
    assert (cells.space, cells.steps, stages.space, stages.steps) == ("nasbench201", 12, "nasbench_macro", 4)
    assert cells.accuracies == [OBJECTIVES[0]]
    assert cells.costs == [OBJECTIVES[1]]
    assert stages.costs == []
    assert cells.joint[OBJECTIVES[0]]["n"] == cells.specialist[OBJECTIVES[0]]["n"] == 8
    lines = table([cells, stages])
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        f"| nasbench201 {OBJECTIVES[0]}",
        "| nasbench201 median of 1 costs",
        f"| nasbench_macro {OBJECTIVES[0]}",
    ]
    monkeypatch.setattr(benchmarks.specialists, "train", lambda *_: pytest.fail("trained again"))
    assert table(compare(config)) == lines
    with pytest.raises(ValueError, match="specialists: expected spaces among nasbench201, nasbench_macro, got fbnet"):
        compare(Config((recipe,), only=("fbnet",), out=tmp_path / "alone"))
