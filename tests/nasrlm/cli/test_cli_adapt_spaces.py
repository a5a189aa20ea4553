"""The command `nasrlm adapt` with networks of several spaces."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nasrlm.checkpoints.checkpoint import Checkpoint
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.scenes import architecture_table

NEW = "latency_ms@unheard"


def test_a_space_is_learned_beside_another(nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path) -> None:
    cells = architecture_table(8)[["space", "architecture"]]
    cells.assign(**{NEW: np.linspace(1.0, 2.0, len(cells))}).to_csv(tmp_path / "cells.csv", index=False)
    blocks = pd.DataFrame({"space": "nasbench_macro", "architecture": ["00000000", "11111111", "22222222", "01201201"]})
    blocks.assign(**{NEW: [80.0, 90.0, 100.0, 95.0]}).to_csv(tmp_path / "blocks.csv", index=False)
    checkpoint = checkpoint_folder
    for name in ("cells", "blocks"):
        words = ("adapt", "--table", tmp_path / f"{name}.csv", "--objectives", NEW, "--samples", 4, "--pool", 8)
        with warnings.catch_warnings(action="error"):
            done = nasrlm(*words, "--checkpoint", checkpoint, "--out", tmp_path / name, "--beside")
        assert done.status == 0, done.stderr
        checkpoint = tmp_path / name
    assert Checkpoint.from_pretrained(checkpoint).taught_spaces(NEW) == ["nasbench201", "nasbench_macro"]
    words = ("predict", "--checkpoint", checkpoint, "--objectives", NEW, "--json", "--space")
    medians = [
        json.loads(nasrlm(*words, space, architecture).stdout)[0][NEW]["median"]
        for space, architecture in (("nasbench201", cells["architecture"].iloc[0]), ("nasbench_macro", "00000000"))
    ]
    assert medians[0] < 3 < 50 < medians[1]


def test_each_space_is_learned_by_itself(nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path) -> None:
    cells = architecture_table(24).drop_duplicates("architecture")[["space", "architecture"]]
    blocks = pd.DataFrame({"space": "nasbench_macro", "architecture": ["00000000", "11111111", "22222222", "01201201"]})
    costs = [*np.linspace(1.0, 2.0, len(cells)), 80.0, 90.0, 100.0, 95.0]
    pd.concat([cells, blocks]).assign(**{NEW: costs}).to_csv(tmp_path / "table.csv", index=False)
    words = ("adapt", "--table", tmp_path / "table.csv", "--objectives", NEW, "--checkpoint", checkpoint_folder)
    words += ("--pool", 10, "--like-table", "--out", tmp_path / "new")
    done = nasrlm(*words, "--samples", 7, "--json")
    assert done.status == 0, done.stderr
    used, others = (json.loads(done.stdout)[key] for key in ("used", "others"))
    assert list(others) == [f"nasbench201/{NEW}"]  # one row of the other space says nothing
    assert others[f"nasbench201/{NEW}"]["n"] == 10  # those of its pool
    assert (len(used), len({*used}.intersection(cells["architecture"])), len({*used})) == (7, 4, 7)
    asked = ("predict", "--checkpoint", tmp_path / "new", "--objectives", NEW, "--json")
    for space, (low, high) in {"nasbench201": (1.0, 2.0), "nasbench_macro": (80.0, 100.0)}.items():
        names = (cells if space == "nasbench201" else blocks)["architecture"]
        told = nasrlm(*asked, "--space", space, *names)
        medians = [row[NEW]["median"] for row in json.loads(told.stdout)]
        assert low / 1.1 < min(medians) <= max(medians) < high * 1.1


@pytest.mark.parametrize("samples", ["all", 3])
def test_one_label_of_a_space_is_not_enough(
    nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path, samples: str | int
) -> None:
    table = architecture_table(8)[["space", "architecture"]]
    macro = pd.DataFrame({"space": "nasbench_macro", "architecture": ["00000000"]})
    pd.concat([table, macro]).assign(**{NEW: np.arange(1.0, 10.0)}).to_csv(tmp_path / "table.csv", index=False)
    words = ("adapt", "--table", tmp_path / "table.csv", "--objectives", NEW, "--checkpoint", checkpoint_folder)
    words += ("--samples", samples, "--pool", 8, "--out", tmp_path / "new")
    done = nasrlm(*words)
    assert (done.status, done.stderr.count("\n")) == (2, 1)
    told = f"table.csv: expected 2 or more labels of {NEW} of each space to learn from, got 1 of nasbench_macro."
    assert told in done.stderr
    assert nasrlm(*words, "--space", "nasbench201").status == 0
