"""Code-Regression: a small table of its published columns, made here."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from converters.importers import BenchmarkFileError, read_benchmark
from studies.tables.files import objective_columns

APPS = {
    "identifier": "APPS_0", "space": "APPS", "input": "print([0] * 1000)\n", "target_metric": "val_accuracy",
    "target": 9_400_320.0, "metric_type": "memory_bytes", "metadata": "{'rule_based': True}",
}  # fmt: skip
CODENET = APPS | {
    "identifier": "CDSS_42", "space": "CDSS", "input": "int main() { return 0; }\n", "target": 3_145_728.0,
    "metadata": "{'s_id': 's1', 'language': 'C++', 'cpu_time': 10}",
}  # fmt: skip
KERNELBOOK = APPS | {
    "identifier": "KBSS_1", "space": "KBSS", "input": "@triton.jit\ndef kernel(x): ...\n", "target": 0.0125,
    "metric_type": "latency_ms", "metadata": "{'stddev_ms': 0.001}",
}  # fmt: skip
ROWS = [APPS, CODENET, KERNELBOOK]


def write(path: Path, rows: list[dict[str, Any]], columns: dict[str, str] | None = None) -> Path:
    frame = pd.DataFrame(rows).rename(columns=columns or {})
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_json(path, orient="records", lines=True)
    return path


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_the_table(tmp_path: Path, ending: str) -> None:
    frame = read_benchmark("code-regression", write(tmp_path / f"data.{ending}", ROWS))
    labels = ["memory_bytes@apps", "memory_bytes@codenet", "latency_ms@kernelbook"]
    assert list(frame) == ["space", "identifier", "language", "text", "split", *labels]
    assert frame["text"].tolist() == [APPS["input"], f"C++\n{CODENET['input']}", KERNELBOOK["input"]]
    measured = [row["target"] for row in ROWS]
    assert [frame[label].dropna().tolist() for label in labels] == [[value] for value in measured]
    assert frame["language"].fillna("").tolist() == ["", "C++", ""]


def test_the_column_of_the_card(tmp_path: Path) -> None:
    renamed = read_benchmark("code-regression", write(tmp_path / "a.parquet", ROWS, {"target": "val_accuracy"}))
    assert renamed.equals(read_benchmark("code-regression", write(tmp_path / "b.parquet", ROWS)))


@pytest.mark.parametrize(("space", "context"), [("C++ x", "c-x"), ("Own_Set 1.5", "own_set-1.5"), ("++", "other")])
def test_labels_of_other_spaces_are_named_so_that_a_model_can_learn_them(
    tmp_path: Path, space: str, context: str
) -> None:
    path = write(tmp_path / "data.parquet", [{**APPS, "space": space}])
    assert objective_columns(read_benchmark("code-regression", path), path) == (f"memory_bytes@{context}",)


def test_one_space(tmp_path: Path) -> None:
    path = write(tmp_path / "data.parquet", [*ROWS, {**APPS, "space": None}])
    frame = read_benchmark("code-regression", path, space="CDSS")
    assert frame["identifier"].tolist() == ["CDSS_42"]
    with pytest.raises(BenchmarkFileError, match="expected rows of space APS, got spaces APPS, CDSS, KBSS, None"):
        read_benchmark("code-regression", path, space="APS")
    with pytest.raises(BenchmarkFileError, match="expected rows of space None, got spaces"):  # no name of a space
        read_benchmark("code-regression", path, space="None")
    with pytest.raises(ValueError, match="import nds: expected no space, got APPS"):
        read_benchmark("nds", path, space="APPS")


def test_splits_are_by_source(tmp_path: Path) -> None:
    programs = [APPS | {"input": f"print({number % 500})\n", "target": number + 1} for number in range(1000)]
    frame = read_benchmark("code-regression", write(tmp_path / "data.parquet", programs))
    assert (frame.groupby("text")["split"].nunique() == 1).all()
    shares = frame["split"].value_counts(normalize=True)
    assert [round(float(shares[name]), 1) for name in ("train", "valid", "test")] == [0.8, 0.1, 0.1]


def test_a_program_in_two_languages_is_one_program(tmp_path: Path) -> None:
    programs = [
        CODENET | {"input": f"return {number};\n", "metadata": f"{{'language': '{language}'}}"}
        for number in range(60)
        for language in ("C", "C++")
    ]
    frame = read_benchmark("code-regression", write(tmp_path / "data.parquet", programs))
    assert (frame["split"][::2].to_numpy() == frame["split"][1::2].to_numpy()).all()


def test_what_was_not_measured_is_missing(tmp_path: Path) -> None:
    rows = [APPS | {"target": target} for target in (None, float("nan"), float("inf"), -1.0, 0.0, 7.0)]
    frame = read_benchmark("code-regression", write(tmp_path / "data.parquet", rows))
    assert frame["memory_bytes@apps"].isna().tolist() == [True] * 5 + [False]


def test_rows_without_source_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "data.parquet", [APPS, CODENET | {"input": ""}, CODENET | {"input": None}])
    with pytest.warns(UserWarning, match=r"2 rows without source code are left out"):
        assert len(read_benchmark("code-regression", path)) == 1


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([{"text": "x", "space": "APPS"}], "expected the columns of Code-Regression, got text, space without input, "),
        ([{key: APPS[key] for key in APPS if key != "target"}], "without target or val_accuracy"),
        (
            [APPS, APPS | {"metric_type": "energy"}],
            "row 1: expected source code .* metric_type 'energy', which is not one of",
        ),
        ([APPS | {"target": "much"}], "row 0: expected source code with a number, got ValueError could not convert"),
        ([APPS, APPS | {"metadata": "{'a': open('x')}"}], "row 1: expected source code with a number, got ValueError"),
        ([APPS | {"metadata": "[1]"}], r"metadata '\[1\]', not a dict"),
        ([APPS | {"input": ""}], "expected rows with source code, got spaces APPS"),
    ],
)
def test_bad_files(tmp_path: Path, rows: list[dict[str, Any]], match: str) -> None:
    with pytest.raises(BenchmarkFileError, match=match):
        read_benchmark("code-regression", write(tmp_path / "data.parquet", rows))


@pytest.mark.parametrize("damaged", [slice(0, 200), slice(200, 400)], ids=["footer", "values"])
def test_damaged_tables(tmp_path: Path, damaged: slice) -> None:
    path = write(tmp_path / "data.parquet", ROWS * 2000)
    content = path.read_bytes()
    path.write_bytes(content.replace(content[damaged], b""))
    with pytest.raises(BenchmarkFileError, match=r"data\.parquet: expected a readable parquet table"):
        read_benchmark("code-regression", path)


def test_rows_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(f"{json.dumps(APPS)}\n{json.dumps(APPS | {'input': 5})}\n")
    with pytest.raises(BenchmarkFileError, match=r"data\.jsonl: expected values of one kind .* in row 1"):
        read_benchmark("code-regression", path)
