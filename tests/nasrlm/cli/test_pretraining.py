"""Labels that cost nothing on the command line: architectures are drawn, counted, and a model learns the counts."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from studies.tables.files import objective_columns, read_table
from tests.nasrlm.conftest import CommandLine


def test_drawn_counted_and_learned(tmp_path: Path, nasrlm: CommandLine) -> None:
    drawn, counted = tmp_path / "drawn.parquet", tmp_path / "counted.parquet"
    spaces = ("--space", "nasbench201", "--space", "nasbench_macro")
    assert nasrlm("sample", *spaces, "-n", 60, "--out", drawn, "--json").status == 0
    again = nasrlm("stats", "--table", drawn, "--out", counted, "--workers", 1, "--json")
    assert json.loads(again.stdout)["rows"] == len(pd.read_parquet(drawn))
    assert nasrlm("stats", "--table", drawn, "--out", counted, "--workers", 1, "--resume").status == 0
    frame = read_table(counted)
    assert set(frame["space"]) == {"nasbench201", "nasbench_macro"}
    assert {"params@onnx", "macs@onnx", "activations@onnx", "depth@onnx"} <= set(objective_columns(frame, counted))
    sizes = {"width": 16, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "hidden": 32}
    config = {"table": str(counted), "out": str(tmp_path / "run"), "model": sizes, "max_steps": 2, "num_digits": 2}
    (tmp_path / "train.yaml").write_text(yaml.safe_dump(config))
    trained = json.loads(nasrlm("train", "--config", tmp_path / "train.yaml", "--json").stdout)
    assert trained["steps"] == 2


@pytest.mark.parametrize(("count", "found"), [(2000, "2,000"), (7000, "6,561")])
def test_sample_draws_different_ones_as_far_as_there_are(
    nasrlm: CommandLine, tmp_path: Path, count: int, found: str
) -> None:
    told = nasrlm("sample", "--space", "nasbench_macro", "-n", count, "--out", tmp_path / "drawn.parquet").stdout
    drawn = pd.read_parquet(tmp_path / "drawn.parquet")
    splits = ", ".join(f"{(drawn['split'] == name).sum():,} {name}" for name in ("train", "valid", "test"))
    assert told.startswith(f"{found} different architectures of {count:,} requested ({splits}): ")
    assert drawn["architecture"].nunique() == int(found.replace(",", ""))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sample", "--space", "darts", "--space", "fbnet"), "expected one --space, or --out for a table of several"),
        (("sample", "--out", "x.parquet"), "sample: expected --space, got none"),
        (("sample", "--space", "darts", "--out", "x.txt"), "expected a table ending in .parquet, .csv or .jsonl"),
        (("stats", "--table", "x.parquet"), "stats --table: expected --out and no architecture"),
        (("stats",), "stats: expected an architecture, or --table with --out"),
        (("stats", "--space", "darts", "--latency", "x"), "--latency: expected --table with it, got an architecture"),
        (
            ("stats", "--table", "none.parquet", "--out", "y.parquet"),
            "none.parquet: expected a table, got no such file",
        ),
    ],
)
def test_bad_input(
    words: tuple[str, ...], message: str, nasrlm: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    finished = nasrlm(*words)
    assert finished.status == 2
    assert message in finished.stderr
    assert finished.stdout == ""
