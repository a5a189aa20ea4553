"""Every verb does what it says, and prints one JSON document with --json; of others see ``test_cli_….py``."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from converters import to_model, to_onnx_text
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.checkpoints.folder import released_folder
from nasrlm.cli.verbs import predict
from nasrlm.files import write_table
from nasrlm.predictor import Predictor
from spaces import get_space, space_names
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.scenes import OBJECTIVES, architecture_table

SPACE = ("--space", "nasbench201")
ARCHITECTURE = "|nor_conv_3x3~0|+|none~0|nor_conv_1x1~1|+|skip_connect~0|avg_pool_3x3~1|nor_conv_3x3~2|"
GOALS = "max:accuracy@cifar10,min:latency_ms@raspi4"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_table(architecture_table(12), tmp_path / "labels.parquet")
    return tmp_path / "labels.parquet"


def test_spaces(answers: Any, nasrlm: CommandLine) -> None:
    listed = answers("spaces")
    assert [row["name"] for row in listed] == list(space_names())
    assert all(row["size"] > 0 and row["objectives"] for row in listed)
    assert "nasbench201" in nasrlm("spaces").stdout


@pytest.mark.filterwarnings("ignore:adapt. expected about")  # one timed run may stray from the others
def test_a_measured_table_is_one_to_adapt_with(
    answers: Any, nasrlm: CommandLine, table: Path, tmp_path: Path, checkpoint_folder: Path
) -> None:
    text = to_onnx_text(get_space("nasbench201"), get_space("nasbench201").parse(ARCHITECTURE))
    (tmp_path / "net.txt").write_bytes(b"\xef\xbb\xbf" + text.encode())  # some editors begin files so
    pd.DataFrame({"text": [text]}).to_parquet(tmp_path / "texts.parquet")
    measured = tmp_path / "measured.parquet"
    for words in (["--table", tmp_path / "texts.parquet"], [tmp_path / "net.txt"]):
        answers("measure", *words, "--repeats", 1, "--out", measured)
        assert pd.read_parquet(measured)["text"].tolist() == [text]
        measured.unlink()
    answers("measure", "--table", table, "--repeats", 1, "--objective", "latency_ms@mine", "--out", measured)
    assert pd.read_parquet(measured)["split"].tolist() == pd.read_parquet(table)["split"].tolist()
    words = ("--objectives", "latency_ms@mine", "--samples", "all", "--pool", 12, "--out", tmp_path / "adapted")
    assert len(answers("adapt", "--table", measured, *words)["used"]) == 9  # of twelve, a quarter are test rows
    shown = nasrlm("info", "--checkpoint", tmp_path / "adapted").stdout
    assert "`nasrlm adapt` added `latency_ms@mine`, from 9 labels each of measured.parquet." in shown


def test_networks_with_an_input_that_their_space_never_draws_are_told(nasrlm: CommandLine, tmp_path: Path) -> None:
    blocks = [["k3_e1"] * 22, {"dataset": "ImageNet", "op_idx_list": [0] * 22}]
    notations = [*map(json.dumps, blocks)]
    words = ("predict", "--objectives", "latency_ms@raspi4")
    told = (
        "input like those of networks drawn from fbnet, such as float[1,3,32,32], got float[1,3,224,224]: predictions"
    )
    for notation, count in zip(notations, (0, 1), strict=True):
        assert nasrlm(*words, "--space", "fbnet", notation).stderr.count(told) == count
    space, rng = get_space("ofa_mobilenetv3"), np.random.default_rng(0)
    small = [space.format(x) for x in (space.sample(rng) for _ in range(300)) if "128" in space.format(x)]
    assert small
    assert "expected an input" not in nasrlm("predict", "--space", space.name, *small[:2]).stderr  # all are drawn
    pd.DataFrame({"space": "fbnet", "architecture": notations}).to_csv(tmp_path / "both.csv")
    assert nasrlm(*words, "--table", tmp_path / "both.csv").stderr.count(told) == 1


def test_predict(answers: Any, nasrlm: CommandLine, checkpoint_folder: Path) -> None:
    (row,) = answers("predict", *SPACE, ARCHITECTURE)
    assert list(row) == ["architecture", *OBJECTIVES]
    assert row["architecture"] == ARCHITECTURE
    assert all(row[name]["low"] <= row[name]["median"] <= row[name]["high"] for name in OBJECTIVES)
    shown = nasrlm("predict", *SPACE, ARCHITECTURE, "--checkpoint", checkpoint_folder).stdout
    assert f"{row[OBJECTIVES[0]]['median']:.4g} (" in shown


def test_many_objectives_are_rows_of_a_table(
    nasrlm: CommandLine, checkpoint_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict, "MAX_COLUMNS", 1)
    shown = nasrlm("predict", *SPACE, ARCHITECTURE, "--checkpoint", checkpoint_folder).stdout
    assert ARCHITECTURE in shown
    rows = [line for line in shown.splitlines() if any(f" {name} " in line for name in OBJECTIVES)]
    assert len(rows) == len(OBJECTIVES)
    assert all(len(line.split("│")) == 6 for line in rows)


def test_predict_with_more_quantiles_and_samples(answers: Any) -> None:
    words = ("--objectives", OBJECTIVES[1], "--quantiles", ".05,.25,.5,.75", "--samples", 4, "--seed", 3)
    (row,) = answers("predict", *SPACE, ARCHITECTURE, *words)
    assert list(row) == ["architecture", OBJECTIVES[1]]
    answer = row[OBJECTIVES[1]]
    assert list(answer["quantiles"]) == ["0.05", "0.25", "0.5", "0.75"]
    assert (answer["low"], answer["median"], answer["high"]) == tuple(
        answer["quantiles"][q] for q in ("0.05", "0.5", "0.75")
    )
    assert len(answer["samples"]) == 4
    assert answers("predict", *SPACE, ARCHITECTURE, *words) == [row]


def test_quantiles_are_printed_and_samples_need_json(nasrlm: CommandLine, checkpoint_folder: Path) -> None:
    words = ("predict", *SPACE, ARCHITECTURE, "--objectives", OBJECTIVES[1], "--checkpoint", checkpoint_folder)
    shown = nasrlm(*words, "--quantiles", ".05,.25,.5,.75").stdout
    assert all(f" {level} % " in shown for level in (5, 25, 50, 75))
    refused = nasrlm(*words, "--samples", 3)
    assert (refused.status, refused.stderr.count("\n")) == (2, 1)
    assert "expected --json" in refused.stderr


def test_predict_reads_tables(answers: Any, table: Path) -> None:
    rows = answers("predict", "--table", table)
    assert [row["architecture"] for row in rows] == pd.read_parquet(table)["architecture"].tolist()


def read_written(path: Path) -> pd.DataFrame:
    if path.suffix == ".jsonl":
        return pd.read_json(path, lines=True)
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)


@pytest.mark.parametrize(("ending", "to"), [(".parquet", ".parquet"), (".csv", ".csv"), (".jsonl", ".parquet")])
def test_predict_writes_the_predictions_of_a_table(answers: Any, tmp_path: Path, ending: str, to: str) -> None:
    frame = architecture_table(8)[["architecture", "space", "split"]]
    table, out = tmp_path / f"table{ending}", tmp_path / "new" / f"predicted{to}"
    write_table(frame, table)
    told = answers("predict", "--table", table, "--out", out, "--objectives", OBJECTIVES[1], "--quantiles", ".05,.5,.9")
    assert (told["rows"], list(told)) == (8, ["rows", "seconds"])
    written = read_written(out)
    name = OBJECTIVES[1]
    assert list(written) == ["architecture", "space", "split", f"{name}.q0.05", name, f"{name}.q0.9"]
    assert written["architecture"].tolist() == frame["architecture"].tolist()
    rows = answers("predict", "--table", table, "--objectives", name, "--quantiles", ".05,.5,.9")
    for key, column in (("low", f"{name}.q0.05"), ("median", name), ("high", f"{name}.q0.9")):
        np.testing.assert_allclose(written[column], [row[name][key] for row in rows], rtol=1e-4)


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
def test_predict_writes_the_predictions_of_networks_given_as_words(answers: Any, tmp_path: Path, ending: str) -> None:
    words = (*SPACE, ARCHITECTURE, "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|", "--objectives", OBJECTIVES[1])
    out = tmp_path / f"predicted{ending}"
    told = answers("predict", *words, "--out", out)
    assert (told["rows"], list(told)) == (2, ["rows", "seconds"])
    written, rows = read_written(out), answers("predict", *words)
    assert written["architecture"].tolist() == [row["architecture"] for row in rows]
    for key, column in (("low", f"{OBJECTIVES[1]}.q0.1"), ("median", OBJECTIVES[1])):
        np.testing.assert_allclose(written[column], [row[OBJECTIVES[1]][key] for row in rows], rtol=1e-4)


def test_predict_writes_the_rows_of_one_space_and_texts_as_they_are(
    answers: Any, nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path
) -> None:
    frame, out = architecture_table(8)[["architecture", "space", "split"]], tmp_path / "predicted.parquet"
    texts = pd.DataFrame({"space": "nasbench201", "text": ["Conv3\n"] * 300})
    other = frame.assign(space="elsewhere", architecture="unreadable")
    write_table(pd.concat([other, texts, frame], ignore_index=True), tmp_path / "table.parquet")
    words = ("--checkpoint", checkpoint_folder, "--table", tmp_path / "table.parquet", "--out", out, "--json")
    told = nasrlm("predict", *SPACE, *words)
    assert (json.loads(told.stdout)["rows"], told.stderr) == (308, "nasrlm: 8 rows of other spaces were left out\n")
    written = pd.read_parquet(out)
    assert written["architecture"].tolist()[300:] == frame["architecture"].tolist()
    assert written[OBJECTIVES[0]][:300].nunique() == 1
    assert {path.name for path in tmp_path.iterdir()} >= {"predicted.parquet", "table.parquet"}
    write_table(frame.drop(columns="space"), tmp_path / "unnamed.csv")
    named = tmp_path / "named.parquet"
    assert answers("predict", *SPACE, "--table", tmp_path / "unnamed.csv", "--out", named)["rows"] == 8
    assert set(pd.read_parquet(named)["space"]) == {"nasbench201"}


def test_predict_does_not_mind_what_other_columns_hold_and_tells_that_it_leaves_them_out(
    nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path
) -> None:
    predict = ("predict", "--checkpoint", checkpoint_folder, "--table")
    rows = architecture_table(4).assign(note=[1, "two", [3], None]).to_dict("records")
    (tmp_path / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = nasrlm(*predict, tmp_path / "table.jsonl", "--out", tmp_path / "mixed.parquet")
    labels = ", ".join((*OBJECTIVES, "latency_ms@unheard"))
    left_out = f"it keeps the table's architecture, space, split, but not its values of {labels} and 1 more."
    assert (told.status, told.stderr) == (0, f"nasrlm: {tmp_path / 'mixed.parquet'}: {left_out}\n")
    write_table(architecture_table(4), tmp_path / "table.csv")
    nasrlm(*predict, tmp_path / "table.csv", "--out", tmp_path / "plain.parquet")
    pd.testing.assert_frame_equal(*(pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("mixed", "plain")))


def test_predict_reads_a_text_without_its_prelude(
    answers: Any, nasrlm: CommandLine, tmp_path: Path, checkpoint: Checkpoint
) -> None:
    file = tmp_path / "network.onnxtxt"
    nasrlm("convert", *SPACE, ARCHITECTURE, "--out", file)
    (row,) = answers("predict", file)
    assert row.pop("architecture") == str(file)
    text = nasrlm("convert", *SPACE, ARCHITECTURE).stdout
    medians = Predictor(checkpoint).predict([text]).median[0]
    assert [row[name]["median"] for name in OBJECTIVES] == pytest.approx(medians, rel=1e-3)


def test_a_file_of_another_space_is_told(nasrlm: CommandLine, tmp_path: Path) -> None:
    own, other = tmp_path / "own.onnx", tmp_path / "other.onnxtxt"
    mnasnet = nasrlm("sample", "--space", "mnasnet").stdout.strip()
    for words in ((*SPACE, ARCHITECTURE, "--out", own), ("--space", "mnasnet", mnasnet, "--out", other)):
        assert nasrlm("convert", *words).status == 0
    (tmp_path / "note.txt").write_text("hello\n")
    with pytest.warns(UserWarning, match="texts of nasbench201, got canonical ones, which lack operations"):
        told = nasrlm("predict", own, other, tmp_path / "note.txt", *SPACE, "--objectives", OBJECTIVES[0])
    assert told.status == 0
    assert told.stderr == (
        f"nasrlm: {other}: expected a network of nasbench201, got Mul, Sigmoid, float[1,1000] and 1 more, which none "
        "of 64 drawn from it has: predictions may be unreliable.\n"
        f"nasrlm: {tmp_path / 'note.txt'}: expected a network of nasbench201, got no ONNX text: predictions may be "
        "unreliable.\n"
    )


def test_evaluate(answers: Any, nasrlm: CommandLine, table: Path, checkpoint_folder: Path) -> None:
    found = answers("evaluate", "--table", table, "--split", "train")
    assert set(found) == {"nasbench201", "skipped", "predictions_per_second"}
    assert set(found["nasbench201"]) == set(OBJECTIVES)
    assert set(found["nasbench201"][OBJECTIVES[0]]) == {"n", "kendall_tau", "spearman_rho", "mae", "coverage_80"}
    assert found["nasbench201"][OBJECTIVES[0]]["n"] == 6
    assert found["skipped"] == ["latency_ms@unheard"]
    assert found["predictions_per_second"] > 0
    shown = nasrlm("evaluate", "--table", table, "--checkpoint", checkpoint_folder).stdout
    assert (
        "skipped, as the checkpoint does not know them or they have fewer than two labels: latency_ms@unheard" in shown
    )
    told = (released_folder() / "README.md").read_text(encoding="utf-8")
    columns, of_card = (next(line for line in x.splitlines() if "Kendall" in line) for x in (shown, told))
    assert columns.replace("┃", "|").split() == of_card.split()


def test_evaluate_prints_several_tables_as_one(answers: Any, table: Path, tmp_path: Path) -> None:
    frame = pd.read_parquet(table).drop(columns="latency_ms@unheard")
    others = pd.DataFrame({"space": "other", "text": ["Conv3\n", "Pool\n"], OBJECTIVES[1]: [1.0, 2.0]})
    write_table(others, tmp_path / "other.csv")
    write_table(frame, tmp_path / "cells.csv")
    found = answers("evaluate", "--table", tmp_path / "other.csv", "--table", tmp_path / "cells.csv")
    assert (set(found["nasbench201"]), set(found["other"])) == (set(OBJECTIVES), {OBJECTIVES[1]})
    assert (found["other"][OBJECTIVES[1]]["n"], found["nasbench201"][OBJECTIVES[0]]["n"]) == (2, len(frame))
    assert found["skipped"] == []


def test_evaluate_names_the_space_that_was_given(answers: Any, table: Path) -> None:
    frame = pd.read_parquet(table)
    write_table(frame.drop(columns="space"), table)
    assert "nasbench201" in answers("evaluate", "--table", table, *SPACE)
    other = frame.assign(space="elsewhere", architecture="unreadable")
    write_table(pd.concat([frame, other], ignore_index=True), table)
    assert answers("evaluate", "--table", table, *SPACE)["nasbench201"][OBJECTIVES[0]]["n"] == len(frame)


def test_search_and_plot(
    answers: Any, nasrlm: CommandLine, tmp_path: Path, table: Path, checkpoint_folder: Path
) -> None:
    words = ("search", *SPACE, "--objectives", GOALS, "--trials", 30, "--population", 10)
    found = answers(*words, "--out", tmp_path / "study")
    assert found["evaluations"] == 30
    assert found["front"]
    assert found["hypervolume"] > 0
    names = {"front.csv", "front.png", "front.html", "history.parquet", "study.json"}
    assert names <= {path.name for path in (tmp_path / "study").iterdir()}
    drawn = answers("plot", tmp_path / "study", "--out", tmp_path / "figures")
    assert all(Path(path).is_file() for path in drawn)
    assert {Path(path).name for path in drawn} >= {"front.png", "front.html"}


def test_search_a_table_against_its_truth(answers: Any, tmp_path: Path, table: Path) -> None:
    words = ("search", *SPACE, "--objectives", GOALS, "--trials", 30, "--constraint", "latency_ms@raspi4<=15")
    found = answers(*words, "--evaluator", f"table:{table}", "--truth", table, "--out", tmp_path / "study")
    assert found["evaluations"] == 12  # all rows
    assert found["hypervolume_ratio"] == 1


def test_info(answers: Any, nasrlm: CommandLine, checkpoint_folder: Path) -> None:
    told = answers("info")
    assert {"nasrlm", "python", "torch", "onnxruntime"} <= told["versions"].keys()
    assert told["devices"][0] == "cpu"
    assert told["checkpoint"]["objectives"] == list(OBJECTIVES)
    assert "onnxruntime" in nasrlm("info", "--checkpoint", checkpoint_folder).stdout


def test_help_is_no_error(nasrlm: CommandLine) -> None:
    finished = nasrlm("--help")
    assert (finished.status, finished.stderr) == (0, "")
    assert "predict" in finished.stdout


def test_what_a_module_prints_is_no_part_of_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nasrlm: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    module = "import torch\nclass Talker(torch.nn.Linear):\n    def forward(self, x):\n        print('noise')\n"
    Path("talking_network.py").write_text(
        f"{module}        return super().forward(x)\ndef build():\n    return Talker(4, 2)\n"
    )
    finished = nasrlm("stats", "talking_network:build", "--input-shape", "1,4", "--json")
    assert json.loads(finished.stdout)["params"] == 10


def test_a_torch_module_is_predicted_as_its_text_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nasrlm: CommandLine, checkpoint_folder: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plain_network.py").write_text("import torch\ndef build():\n    return torch.nn.Conv2d(3, 4, 3)\n")
    module = "plain_network:build", "--input-shape", "1,3,8,8"
    assert nasrlm("convert", *module, "--out", "text.onnxtxt").status == 0
    words = "--checkpoint", checkpoint_folder, "--json"
    found, expected = (json.loads(nasrlm("predict", *given, *words).stdout) for given in (module, ("text.onnxtxt",)))
    names = [rows[0].pop("architecture") for rows in (found, expected)]
    assert names == ["plain_network:build", "text.onnxtxt"]
    assert found == expected
    of_space = nasrlm("predict", *module, *SPACE, *words)
    assert json.loads(of_space.stdout)[0].keys() >= expected[0].keys(), of_space.stderr
    both = nasrlm("predict", *module, *SPACE, "text.onnxtxt", *words)
    assert [row["architecture"] for row in json.loads(both.stdout)] == names


def test_a_network_of_several_inputs_is_given_a_shape_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nasrlm: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two_inputs.py").write_text("import torch\ndef build():\n    return torch.nn.Bilinear(4, 5, 2)\n")
    shapes = "--input-shape", "1,4", "--input-shape", "1,5"
    assert json.loads(nasrlm("stats", "two_inputs:build", *shapes, "--json").stdout)["params"] == 4 * 5 * 2 + 2
    measured = nasrlm("measure", "two_inputs:build", *shapes, "--objective", "latency_ms@here", "--out", "m.csv")
    assert measured.status == 0, measured.stderr
    one = nasrlm("convert", "two_inputs:build", *shapes[:2])
    told = "two_inputs:build: expected a module that takes one tensor of 1,4, got: Bilinear.forward() missing 1"
    assert (one.status, one.stderr[: len(f"nasrlm: {told}")]) == (2, f"nasrlm: {told}")


def test_texts_from_the_command_line_are_models(answers: Any) -> None:
    to_model(answers("convert", *SPACE, ARCHITECTURE)["text"])
