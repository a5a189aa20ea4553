"""``nasrlm refine`` as a command: what it writes, prints, tells and refuses."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nasrlm.checkpoints.checkpoint import Checkpoint
from tests.nasrlm.adaptation.summed import (
    ACCURACY,
    LATENCY,
    NAMES,
    NOISE,
    SPACE,
    THROUGHPUT,
    labelled_table,
    rows_of_test,
    spelling_checkpoint,
)
from tests.nasrlm.conftest import CommandLine


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return labelled_table()


@pytest.fixture
def at_hand(checkpoint: Checkpoint, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the checkpoint and the table, which has architectures alone."""
    monkeypatch.chdir(tmp_path)
    measured = {SPACE.name: {name: {"n": 3, "kendall_tau": 0.5} for name in NAMES}}
    replace(spelling_checkpoint(checkpoint), card={"commands": [], "test": measured}).save_pretrained("old")
    rows = [f"| {space} | {name} | 3 | 0.500 |" for space in (SPACE.name, "fbnet") for name in NAMES]
    Path("old/README.md").write_text("\n".join(["# A model", *rows]))
    table.drop(columns="text").to_parquet("table.parquet")
    return tmp_path


def test_the_command_writes_sums_and_what_no_longer_holds_is_forgotten(
    nasrlm: CommandLine, at_hand: Path, table: pd.DataFrame
) -> None:
    words = ("refine", "--checkpoint", "old", "--table", "table.parquet", "--out", "new")
    done = nasrlm(*words)
    assert done.status == 0, done.stderr
    assert "checkpoint: new, costs predicted as sums: 2, " in done.stdout
    card = Checkpoint.from_pretrained("new").card
    assert list(card["test"][SPACE.name]) == [ACCURACY, NOISE]
    assert card["commands"][-1]["changed"] == {SPACE.name: [LATENCY, THROUGHPUT]}
    readme = Path("new/README.md").read_text(encoding="utf-8").splitlines()
    told = "`nasrlm refine` made sums of costs, from the labels of table.parquet: "
    told += f"of {SPACE.name} `{LATENCY}`, `{THROUGHPUT}`."
    kept = [f"| {SPACE.name} | {name} | 3 | 0.500 |" for name in (ACCURACY, NOISE)]
    kept += [f"| fbnet | {name} | 3 | 0.500 |" for name in NAMES]
    assert readme == ["# A model", *kept, "", told]
    row = rows_of_test(table).iloc[0]
    asked = nasrlm("predict", "--space", SPACE.name, row["architecture"], "--checkpoint", "new", "--json")
    assert json.loads(asked.stdout)[0][LATENCY]["median"] == pytest.approx(row[LATENCY], rel=0.05)
    again = nasrlm(*words[:2], "new", *words[3:-1], "newer", "--objectives", LATENCY, "--json")
    assert again.status == 0, again.stderr
    compared = json.loads(again.stdout)["compared"][SPACE.name]
    assert [(x["objective"], x["is_summed"]) for x in compared] == [(LATENCY, True)]
    assert set(Checkpoint.from_pretrained("newer").sums_by_space[SPACE.name]) == {LATENCY, THROUGHPUT}
    assert Path("newer/README.md").read_text(encoding="utf-8").splitlines() == readme
    latencies = table.drop(columns="text").assign(**{LATENCY: 0.0})
    latencies.to_parquet("zeros.parquet")
    dropped = nasrlm(
        "refine", "--checkpoint", "newer", "--table", "zeros.parquet", "--objectives", LATENCY, "--out", "last"
    )
    assert dropped.status == 0, dropped.stderr
    assert "spelled: a label is not above 0" in dropped.stdout
    assert f"{LATENCY}: no longer predicted as sums but digit by digit" in dropped.stderr
    assert "costs predicted as sums: 0, " in dropped.stdout
    assert f"of {SPACE.name} `{THROUGHPUT}`." in Path("last/README.md").read_text(encoding="utf-8")
    assert f"`{LATENCY}`" not in Path("last/README.md").read_text(encoding="utf-8")


def test_where_no_sum_is_closer_nothing_is_written(nasrlm: CommandLine, at_hand: Path) -> None:
    words = ("refine", "--checkpoint", "old", "--table", "table.parquet", "--objectives", NOISE, "--out", "new")
    done = nasrlm(*words)
    assert done.status == 0, done.stderr
    assert "no sum fits better: nothing is written" in done.stdout
    assert json.loads(nasrlm(*words, "--json").stdout)["checkpoint"] is None
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--objectives", ACCURACY),
            f"--objectives: expected costs that the checkpoint decodes digit by digit, got {ACCURACY}.",
        ),
        (
            ("--objectives", "latency_ms@unheard"),
            "costs that the checkpoint decodes digit by digit, got latency_ms@unheard.",
        ),
        (("--table", "few.csv"), "expected 20 labels of a cost or more in rows of split valid, got fewer."),
        (("--table", "one.csv"), f"expected 20 labels of {THROUGHPUT} or more in rows of split valid, got fewer."),
        (
            ("--table", "accuracies.csv"),
            "expected labels of costs that the checkpoint decodes digit by digit, got none.",
        ),
        (("--table", "missing.csv"), "missing.csv: "),
        (("--out", "table.parquet"), "table.parquet: expected a folder for the checkpoint, got a file."),
    ],
)
def test_what_cannot_be_refined_is_one_line(
    nasrlm: CommandLine, at_hand: Path, table: pd.DataFrame, words: tuple[str, ...], message: str
) -> None:
    table.drop(columns="text")[:60].to_csv("few.csv", index=False)
    table[["space", "architecture", "split", ACCURACY]].to_csv("accuracies.csv", index=False)
    table.drop(columns="text").assign(**{THROUGHPUT: np.nan}).to_csv("one.csv", index=False)
    given = {"--table": "table.parquet", "--out": "new"} | dict([words])  # type: ignore[list-item]
    if words[1] == "one.csv":
        given["--objectives"] = f"{LATENCY},{THROUGHPUT}"
    done = nasrlm("refine", "--checkpoint", "old", *[word for option in given.items() for word in option])
    assert (done.status, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
    assert not Path("new").exists()


def test_a_space_of_ones_own_may_be_named_by_another_path(
    nasrlm: CommandLine, at_hand: Path, table: pd.DataFrame
) -> None:
    old, trained = Checkpoint.from_pretrained("old"), "there/mine.py:Mine"
    card = {"commands": [], "test": {trained: old.card["test"][SPACE.name]}}
    replace(old, card=card).save_pretrained("old")
    table.drop(columns="architecture").assign(space="here/mine.py:Mine").to_parquet("table.parquet")
    done = nasrlm("refine", "--checkpoint", "old", "--table", "table.parquet", "--out", "new")
    assert done.status == 0, done.stderr
    new = Checkpoint.from_pretrained("new")
    assert list(new.of_space("here/mine.py:Mine").sums) == [LATENCY, THROUGHPUT]
    assert list(new.card["test"][trained]) == [ACCURACY, NOISE]
    assert new.card["commands"][-1]["changed"] == {trained: [LATENCY, THROUGHPUT]}
