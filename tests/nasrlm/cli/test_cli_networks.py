"""Verbs about networks themselves: sample, convert, stats, measure."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pandas as pd
import pytest

from converters import runtime, to_measured_text, to_onnx_text
from nasrlm.checkpoints.checkpoint import Checkpoint
from spaces import get_space
from tests.nasrlm.cli.test_cli import ARCHITECTURE, SPACE
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.workplace import assert_one_line


def test_sample(answers: Any, nasrlm: CommandLine) -> None:
    drawn = answers("sample", *SPACE, "-n", 3, "--seed", 1)
    assert len(drawn) == 3
    assert all(get_space("nasbench201").parse(architecture) for architecture in drawn)
    assert nasrlm("sample", *SPACE, "-n", 3, "--seed", 1).stdout.splitlines() == drawn
    assert answers("sample", *SPACE, "-n", 3, "--seed", 2) != drawn


def test_sample_what_tells_most(answers: Any, nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path) -> None:
    words = ("sample", *SPACE, "--choose", "active", "--checkpoint", checkpoint_folder, "--pool", 30)
    chosen = answers(*words, "-n", 4)
    assert len(set(chosen)) == 4
    assert answers(*words, "-n", 2) == chosen[:2]
    pool = set(answers("sample", *SPACE, "-n", 30))
    assert pool > set(chosen)
    pd.DataFrame({"architecture": chosen[:2], "latency_ms@mine": [1.0, 2.0]}).to_csv(tmp_path / "two.csv")
    for part in range(2):
        pd.DataFrame({"architecture": chosen[part : part + 1]}).to_csv(tmp_path / f"part{part}.csv")
    parts = ("--measured", tmp_path / "part0.csv", "--measured", tmp_path / "part1.csv")
    assert answers(*words, "-n", 2, *parts) == chosen[2:]
    pd.DataFrame({"architecture": chosen[:1], "split": "test"}).to_csv(tmp_path / "test.csv")
    beside = answers(*words, "-n", 4, "--measured", tmp_path / "test.csv")
    assert chosen[0] not in beside  # though nothing is learned from it
    assert beside != answers(*words, "-n", 4, "--measured", tmp_path / "part0.csv")
    assert answers(*words, "-n", 2, "--measured", tmp_path / "two.csv") == chosen[2:]
    assert "expected up to 28 architectures to choose, as many as a pool of 30 has that are not measured, got 29." in (
        nasrlm(*words, "-n", 29, "--measured", tmp_path / "two.csv").stderr
    )
    pd.DataFrame({"text": ["Conv"]}).to_csv(tmp_path / "texts.csv")
    refused = nasrlm(*words, "--measured", tmp_path / "texts.csv")
    assert (refused.status, refused.stderr.count("\n")) == (2, 1)
    assert "texts.csv: measured: expected a column architecture, got texts." in refused.stderr
    assert "expected up to 30 architectures to choose" in nasrlm(*words, "-n", 31).stderr
    assert answers(*words, "-n", 3, "--out", tmp_path / "chosen.csv") == [*chosen[:3]]
    table = pd.read_csv(tmp_path / "chosen.csv")
    assert table["architecture"].tolist() == chosen[:3]
    assert {*table["space"], *table["split"]} == {"nasbench201", "train"}
    assert "--held-out: expected --choose random with it" in nasrlm(*words, "--held-out", 5).stderr
    assert "--pool: expected --choose active with it" in nasrlm("sample", *SPACE, "--pool", 30).stderr


def test_convert_prints_the_canonical_text(answers: Any, nasrlm: CommandLine, checkpoint: Checkpoint) -> None:
    space = get_space("nasbench201")
    text = to_onnx_text(space, space.parse(ARCHITECTURE))
    tokens = len(checkpoint.tokenizer.to_ids([text])[0])
    assert answers("convert", *SPACE, ARCHITECTURE) == {"text": text, "tokens": tokens}
    assert nasrlm("convert", *SPACE, ARCHITECTURE).stdout == text + "\n"


def test_convert_writes_a_model_that_runs_and_a_text_that_parses(nasrlm: CommandLine, tmp_path: Path) -> None:
    for name in ("x.onnx", "x.onnxtxt"):
        assert nasrlm("convert", *SPACE, ARCHITECTURE, "--out", tmp_path / name) == (0, "", "")
    session = onnxruntime.InferenceSession(tmp_path / "x.onnx", providers=["CPUExecutionProvider"])
    assert [value.shape for value in session.get_outputs()] == [[1, 10]]
    onnx.checker.check_model(onnx.parser.parse_model((tmp_path / "x.onnxtxt").read_text()), full_check=True)
    again = nasrlm("convert", tmp_path / "x.onnxtxt").stdout
    assert again == nasrlm("convert", *SPACE, ARCHITECTURE).stdout


def test_several_networks_are_converted_to_a_table(answers: Any, nasrlm: CommandLine, tmp_path: Path) -> None:
    files = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    cells = (ARCHITECTURE, "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|")
    for file, architecture in zip(files, cells, strict=True):
        assert nasrlm("convert", *SPACE, architecture, "--out", file).status == 0
    out = tmp_path / "texts.parquet"
    assert nasrlm("convert", *files, "--out", out) == (0, f"2 rows: {out}\n", "")
    told = pd.read_parquet(out)
    assert told["file"].tolist() == [*map(str, files)]
    assert told["text"].tolist() == [answers("convert", *SPACE, cell)["text"] for cell in cells]
    assert [row["architecture"] for row in answers("predict", "--table", out)] == [*map(str, files)]
    assert json.loads(nasrlm("convert", *SPACE, *cells, "--out", out, "--json").stdout) == {"rows": 2, "failed": 0}
    space = get_space(SPACE[1])
    assert pd.read_parquet(out)["text"].tolist() == [to_measured_text(space, space.parse(cell)) for cell in cells]
    for words in (
        (*files,),
        (*files, "--out", tmp_path / "c.onnx"),
        (files[0], "no.onnx", "--out", tmp_path / "c.csv"),
    ):
        status, _, message = nasrlm("convert", *words)
        assert (status, message.count("\n"), sorted(tmp_path.iterdir())) == (2, 1, [*files, out])


def test_networks_that_cannot_be_converted_are_left_out_of_the_table_and_listed(
    nasrlm: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nasrlm("convert", *SPACE, ARCHITECTURE, "--out", "good.onnx")
    Path("bad.onnx").write_bytes(b"no model")
    Path("old.onnxtxt").write_text("no text")
    words = ("convert", "bad.onnx", "good.onnx", "old.onnxtxt", "--out", "texts.csv")
    status, out, told = nasrlm(*words, "--json")
    assert (status, json.loads(out)) == (0, {"rows": 1, "failed": 2})
    assert told.endswith("2 of 3 rows failed, with reasons in texts.csv.errors.jsonl\n")
    assert pd.read_csv("texts.csv")["file"].tolist() == ["good.onnx"]
    listed = [json.loads(line) for line in Path("texts.csv.errors.jsonl").read_text().splitlines()]
    assert [row["file"] for row in listed] == ["bad.onnx", "old.onnxtxt"]
    assert all(row["reason"].startswith(f"{row['file']}: ") for row in listed)
    nasrlm("convert", "good.onnx", "--out", "texts.csv")
    assert not Path("texts.csv.errors.jsonl").exists()
    status, _, told = nasrlm("convert", "bad.onnx", "old.onnxtxt", "--out", "none.csv")
    assert (status, told.count("\n"), Path("none.csv").exists()) == (2, 1, False)
    assert told.startswith("nasrlm: bad.onnx: ")
    assert told.endswith(" All 2 networks failed.\n")


@pytest.mark.parametrize("verb", ["stats", "predict", "measure"])
def test_files_that_cannot_be_read_do_not_stop_the_others(
    verb: str, nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nasrlm("convert", *SPACE, ARCHITECTURE, "--out", "good.onnx")
    Path("bad.onnx").write_bytes(b"no model")
    Path("old.onnxtxt").write_text("no text")
    options = ("--repeats", 1) if verb == "measure" else ("--checkpoint", checkpoint_folder)
    status, out, told = nasrlm(verb, *options, "bad.onnx", "good.onnx", "old.onnxtxt", "--json")
    assert (status, [row["architecture"] for row in json.loads(out)]) == (0, ["good.onnx"])
    left_out = [line for line in told.splitlines() if line.startswith("nasrlm: left out: ")]
    assert [line.split(": ")[2] for line in left_out] == ["bad.onnx", "old.onnxtxt"]
    assert "nasrlm: absent.onnx: " in nasrlm(verb, *options, "good.onnx", "absent.onnx").stderr
    status, _, told = nasrlm(verb, *options, "bad.onnx", "old.onnxtxt")
    assert status == 2
    assert told.endswith(" All 2 networks failed.\n")


def test_an_empty_file_does_not_stop_the_others(
    nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.txt").write_text("Conv3\n")
    Path("empty.txt").write_text("\n")
    status, out, told = nasrlm("predict", "empty.txt", "good.txt", "--checkpoint", checkpoint_folder, "--json")
    assert (status, [row["architecture"] for row in json.loads(out)]) == (0, ["good.txt"])
    assert "nasrlm: left out: empty.txt: expected text, got an empty file.\n" in told


def test_a_table_of_files_gets_their_texts(
    answers: Any, nasrlm: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    space = get_space(SPACE[1])
    for name in ("here.onnx", "there/beside.onnx"):
        nasrlm("convert", *SPACE, ARCHITECTURE, "--out", name)
    Path("bad.onnx").write_bytes(b"no model")
    files = ["here.onnx", "bad.onnx", " beside.onnx ", "here.onnx", "absent.onnx", "absent.onnx"]
    labels = pd.DataFrame({"file": files, "latency_ms@board": [1.5, 2.0, np.nan, 3.0, 4.0, 5.0]})
    labels.to_csv("there/board.csv", index=False)
    status, out, told = nasrlm("convert", "--table", "there/board.csv", "--out", "labels.csv", "--json")
    assert (status, json.loads(out)) == (0, {"rows": 3, "failed": 3})
    assert told.endswith("3 of 6 rows failed, with reasons in labels.csv.errors.jsonl\n")
    listed = [json.loads(line) for line in Path("labels.csv.errors.jsonl").read_text().splitlines()]
    assert [row["file"] for row in listed] == ["absent.onnx", "bad.onnx"]
    assert "there/board.csv, row 4: expected a file" in listed[0]["reason"]
    text = to_onnx_text(space, space.parse(ARCHITECTURE))
    expected = labels.drop(index=[1, 4, 5]).assign(text=text).reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.read_csv("labels.csv"), expected)
    pd.read_csv("labels.csv").drop(columns="latency_ms@board").to_csv("texts.csv", index=False)
    assert answers("predict", "--table", "texts.csv", "--out", "predicted.parquet")["rows"] == 3
    assert pd.read_parquet("predicted.parquet")["file"].tolist() == ["here.onnx", " beside.onnx ", "here.onnx"]
    nasrlm("convert", "--table", "there/board.csv", "--space", "mine", "--out", "labels.parquet")
    assert set(pd.read_parquet("labels.parquet")["space"]) == {"mine"}


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([{"file": "none.onnx"}], [], "t.jsonl, row 0: expected a file, got 'none.onnx', which does not exist."),
        ([{"file": "a"}, {"file": "b"}, {"file": "a"}], [], "All 2 files are missing."),
        (
            [{"file": "a.onnx"}, {"latency_ms@board": 1}],
            [],
            "t.jsonl: expected a file in every row, got none in row 1.",
        ),
        ([{"file": "a.onnx"}], ["--workers", 2], "--workers: expected architectures with it, got files."),
        ([{"files": "a.onnx"}], [], "t.jsonl: expected a column architecture, got files."),
        ([{" File": "a.onnx"}], [], "Is ' File' meant for file?"),
        ([{"file": "a.onnx"}], ["x.onnx"], "convert --table: expected --out and no architecture."),
        ([{"file": "bad.onnx"}], [], "bad.onnx: expected "),
    ],
)
def test_bad_tables_of_files(
    rows: list[dict[str, object]],
    options: list[object],
    message: str,
    nasrlm: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.onnx").write_bytes(b"no model")
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert_one_line(nasrlm("convert", *options, "--table", "t.jsonl", "--out", "out.parquet"), message)
    assert not Path("out.parquet").exists()


def test_a_table_of_files_is_told_to_be_converted(nasrlm: CommandLine, tmp_path: Path, checkpoint_folder: Path) -> None:
    pd.DataFrame({"file": ["a.onnx"], "latency_ms@board": [1.0]}).to_csv(tmp_path / "t.csv", index=False)
    told = nasrlm("evaluate", "--table", tmp_path / "t.csv", "--checkpoint", checkpoint_folder)
    assert_one_line(told, "Convert the files first: nasrlm convert --table … --out …")


def test_stats(answers: Any, nasrlm: CommandLine, checkpoint_folder: Path) -> None:
    counted = answers("stats", *SPACE, ARCHITECTURE)
    keys = {"params", "macs", "convs", "live_macs", "live_convs", "nodes", "depth", "activations", "tokens"}
    assert keys <= counted.keys()
    assert all(value > 0 for value in counted.values())
    shown = nasrlm("stats", *SPACE, ARCHITECTURE, "--checkpoint", checkpoint_folder).stdout
    assert f"{counted['macs']:,}" in shown


def test_stats_of_several_networks(answers: Any, nasrlm: CommandLine, tmp_path: Path, checkpoint_folder: Path) -> None:
    files = [tmp_path / "a.onnx", tmp_path / "b.onnxtxt"]
    for file, architecture in zip(
        files, (ARCHITECTURE, "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|"), strict=True
    ):
        assert nasrlm("convert", *SPACE, architecture, "--out", file).status == 0
    rows = answers("stats", *files)
    assert rows == [{"architecture": str(file), **answers("stats", file)} for file in files]
    shown = nasrlm("stats", *files, "--checkpoint", checkpoint_folder).stdout
    assert all(str(row["architecture"]) in shown and f"{row['params']:,}" in shown for row in rows)


def test_measure(answers: Any, tmp_path: Path) -> None:
    rows = answers("measure", *SPACE, ARCHITECTURE, "--repeats", 2, "--out", tmp_path / "measured.csv")
    assert rows[0]["architecture"] == ARCHITECTURE
    assert 0 < rows[0]["latency_q25_ms"] <= rows[0]["latency_ms@here"] <= rows[0]["latency_q75_ms"]
    assert pd.read_csv(tmp_path / "measured.csv")["latency_ms@here"].tolist() == [rows[0]["latency_ms@here"]]


def test_networks_that_cannot_be_run_do_not_stop_measuring(
    nasrlm: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nasrlm("convert", *SPACE, ARCHITECTURE, "--out", "good.onnxtxt")
    good = Path("good.onnxtxt").read_text()
    random = good[: good.index("network")] + "network (float[1,3] v0) => (float[1,3] v1) {\n   v1 = Bernoulli (v0)\n}\n"
    pd.DataFrame({"text": [good, random, good], "mine": [1, 2, 3]}).to_csv("rows.csv")
    status, _, told = nasrlm("measure", "--table", "rows.csv", "--repeats", 1, "--out", "measured.csv")
    left_out = [line for line in told.splitlines() if line.startswith("nasrlm: left out: ")]
    assert (status, len(left_out), left_out[0].endswith(" in rows.csv, row 1.")) == (0, 1, True)
    measured = pd.read_csv("measured.csv")
    assert (measured["mine"].tolist(), measured["latency_ms@here"].notna().all()) == ([1, 3], True)
    Path("random.onnxtxt").write_text(random)
    out = nasrlm("measure", "random.onnxtxt", "good.onnxtxt", "--repeats", 1, "--json").stdout
    assert [row["architecture"] for row in json.loads(out)] == ["good.onnxtxt"]
    status, _, told = nasrlm("measure", "random.onnxtxt", "--repeats", 1, "--out", "none.csv")
    assert (status, told.count("\n"), Path("none.csv").exists()) == (2, 1, False)
    assert "Bernoulli" in told or "RandomUniformLike" in told


def test_what_was_timed_before_an_interrupt_is_kept(
    nasrlm: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[float] = []

    def run_ms(_: object) -> float:
        if len(timed) == 5:
            raise KeyboardInterrupt
        timed.append(float(len(timed)))
        return timed[-1]

    monkeypatch.setattr(runtime._LoadedModel, "run_ms", run_ms)
    rows = [ARCHITECTURE, "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|"]
    pd.DataFrame({"space": "nasbench201", "architecture": rows, "mine": [1, 2]}).to_csv(tmp_path / "rows.csv")
    done = nasrlm("measure", "--table", tmp_path / "rows.csv", "--out", tmp_path / "measured.csv")
    told = f"nasrlm: {tmp_path / 'measured.csv'}: 2 networks with at least 2 timed runs each.\nnasrlm: interrupted.\n"
    assert (done.status, done.stderr) == (130, told)
    measured = pd.read_csv(tmp_path / "measured.csv")
    assert sorted(measured["repeats"]) == [2, 3]
    assert measured["architecture"].tolist() == rows
    timed.clear()
    again = nasrlm("measure", "--table", tmp_path / "rows.csv", "--out", tmp_path / "measured.csv", "--repeats", 9)
    assert f"{tmp_path / 'measured.partial.csv'}: 2 networks with at least 2 timed runs each." in again.stderr
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "measured.csv"), measured)
    monkeypatch.setattr(runtime._LoadedModel, "run_ms", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    assert nasrlm("measure", "--table", tmp_path / "rows.csv", "--out", tmp_path / "none.csv").status == 130
    assert not (tmp_path / "none.csv").exists()


def test_a_measured_table_keeps_its_spaces(answers: Any, tmp_path: Path) -> None:
    given = pd.DataFrame({"space": ["nasbench_macro", "nasbench201"], "architecture": ["00000000", ARCHITECTURE]})
    given.to_csv(tmp_path / "given.csv", index=False)
    answers("measure", "--table", tmp_path / "given.csv", "--repeats", 1, "--out", tmp_path / "measured.parquet")
    measured = pd.read_parquet(tmp_path / "measured.parquet")
    pd.testing.assert_frame_equal(measured[["space", "architecture"]], given)


def test_a_measured_table_keeps_what_else_stands_in_it(nasrlm: CommandLine, tmp_path: Path) -> None:
    text = to_onnx_text(get_space("nasbench201"), get_space("nasbench201").parse(ARCHITECTURE))
    given = pd.DataFrame({"text": [text], "latency_ms@first": [2.5], "file": ["a.onnx"], "latency_ms@here": [1e9]})
    given.to_parquet(tmp_path / "given.parquet")
    out = tmp_path / "measured.parquet"
    shown = nasrlm("measure", "--table", tmp_path / "given.parquet", "--repeats", 1, "--out", out).stdout
    measured = pd.read_parquet(out)
    pd.testing.assert_frame_equal(measured[["text", "latency_ms@first", "file"]], given.iloc[:, :3])
    assert measured["latency_ms@here"][0] < 1e6
    assert "a.onnx" in shown
    times = given.assign(seen=pd.Timestamp("2026-01-01"), repeats=3, tags=[["a"]])
    times.to_parquet(tmp_path / "given.parquet")
    found = nasrlm("measure", "--table", tmp_path / "given.parquet", "--repeats", 1, "--out", tmp_path / "x.jsonl")
    assert "it does not keep the table's values of seen, tags, latency_ms@here and 1 more." in found.stderr
    kept = pd.read_json(tmp_path / "x.jsonl", lines=True)
    assert (kept["file"].tolist(), kept["repeats"].tolist()) == (["a.onnx"], [1])
    assert "Conv" not in shown


def test_measurements_that_will_be_replaced_are_told_of(nasrlm: CommandLine, tmp_path: Path) -> None:
    words = ("measure", *SPACE, ARCHITECTURE, "--repeats", 1, "--out", tmp_path / "measured.csv")
    told = f"nasrlm: {tmp_path / 'measured.csv'}: the existing table will be replaced."
    assert told not in nasrlm(*words).stderr
    assert told in nasrlm(*words).stderr


@pytest.mark.parametrize("ending", [".PARQUET", ".CSV", ".Jsonl"])
def test_endings_of_files_may_have_capitals(
    ending: str, tmp_path: Path, checkpoint_folder: Path, nasrlm: CommandLine
) -> None:
    drawn, texts, predicted = tmp_path / f"drawn{ending}", tmp_path / "texts.PARQUET", tmp_path / "predicted.CSV"
    assert nasrlm("sample", *SPACE, "-n", 2, "--out", drawn).status == 0
    assert nasrlm("convert", "--table", drawn, "--out", texts).status == 0
    words = ("predict", "--checkpoint", checkpoint_folder, "--table", texts, "--out", predicted)
    assert nasrlm(*words).status == 0
    assert pd.read_parquet(texts)["architecture"].tolist() == pd.read_csv(predicted)["architecture"].tolist()
    assert nasrlm("convert", *SPACE, ARCHITECTURE, "--out", tmp_path / "text.ONNXTXT").status == 0
    assert (tmp_path / "text.ONNXTXT").read_text().startswith("<")
