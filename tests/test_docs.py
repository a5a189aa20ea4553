"""The tutorial's own space works as the tutorial says: in Python, in ONNX Runtime and on the command line."""

import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import onnx.checker
import onnxruntime
import pandas as pd
import pytest

from converters import statistics, to_graph, to_model, to_onnx_text
from spaces import get_space
from studies.tables.files import read_table
from tests.nasrlm.scenes import network_checkpoint

TUTORIAL = (Path(__file__).resolve().parent.parent / "docs" / "new-space.md").read_text(encoding="utf-8")
PARTS = re.findall(r"^```python\n(.*?)^```", TUTORIAL, flags=re.MULTILINE | re.DOTALL)
LINES_A_USER_WRITES = 60


def _commands() -> list[list[str]]:
    """The tutorial's commands, as the words after ``nasrlm``."""
    (block,) = re.findall(r"^```sh\n(.*?)^```", TUTORIAL, flags=re.MULTILINE | re.DOTALL)
    return [shlex.split(line)[1:] for line in block.replace("\\\n", " ").splitlines()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_space.py").write_text(PARTS[0])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    from nasrlm.cli import main

    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["nasrlm", *words])
        with pytest.raises(SystemExit) as exit_:
            main()
        captured = capsys.readouterr()
        assert not exit_.value.code, captured.err
        return captured.out

    return run


def test_the_space_is_short() -> None:
    assert len(PARTS[0].splitlines()) <= LINES_A_USER_WRITES


def test_every_operation_of_the_space_converts_and_runs(folder: Path) -> None:
    space = get_space(f"{folder}/my_space.py:MySpace")
    for genotype in ((0, 0, 0, 0), (2, 1, 1, 1)):
        model = to_model(to_onnx_text(space, space.decode(genotype)))
        onnx.checker.check_model(model, full_check=True)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        (logits,) = session.run(None, {session.get_inputs()[0].name: np.ones((1, 3, 32, 32), np.float32)})
        assert logits.shape == (1, 10)
        assert np.isfinite(logits).all()
    assert statistics(to_graph(space, space.decode((0, 0, 0, 0)))).params == _params(width=16, depth=1, kernel=3)


def _params(*, width: int, depth: int, kernel: int) -> int:
    """Counted by hand: convolutions, two numbers a channel of a batch norm, the classifier with its biases."""
    total, channels = 27 * width + 2 * width, width
    for _ in range(2):
        total += 2 * channels * channels * kernel**2 + 4 * channels
        channels *= 2
        total += 2 * depth * (channels**2 * kernel**2 + 2 * channels)
    return total + 10 * channels + 10


def test_the_python_of_the_tutorial_runs(folder: Path) -> None:
    exec(compile(PARTS[2], "new-space.md", "exec"), {})


def test_a_file_with_other_names_units_and_words_becomes_labels(folder: Path) -> None:
    architecture = '[16, 2, 3, "relu"]'
    lab = {"Network": [architecture] * 2, "Latency (us)": ["1500", "FAILED"]}
    pd.DataFrame(lab).to_csv("lab.csv", index=False)
    exec(compile(PARTS[1], "new-space.md", "exec"), {})
    labels = read_table(folder / "labels.csv", require=["latency_ms@here"])
    assert labels["architecture"].tolist() == [architecture] * 2
    np.testing.assert_equal(labels["latency_ms@here"].to_numpy(), [1.5, np.nan])


def test_the_torch_modules_of_the_tutorial_are_a_space(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(PARTS[3])
    space = get_space(f"{tmp_path}/own.py:Transformers")
    one, three = (space.parse(f"[32, 4, {depth}]") for depth in (1, 3))
    model = to_model(to_onnx_text(space, three))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (states,) = session.run(None, {session.get_inputs()[0].name: np.ones((1, 1, 800), np.float32)})
    assert states.shape == (1, 99, 32)
    more = statistics(to_graph(space, three)).params - statistics(to_graph(space, one)).params
    assert more == 2 * (4 * 32 * 33 + 2 * 32 * 64 + 96 + 4 * 32)


def test_the_commands_of_the_tutorial_run(folder: Path, run) -> None:
    space = get_space("my_space.py:MySpace")
    listed = list(space.enumerate())
    labels = {"accuracy@cifar10": [sum(space.encode(a)) for a in listed], "latency_ms@here": range(len(listed))}
    pd.DataFrame({"architecture": map(space.format, listed), **labels}).to_csv("labels.csv", index=False)
    network_checkpoint().save_pretrained(folder / "checkpoint")  # for the tokens that stats counts
    more = {"stats": ["--checkpoint", "checkpoint", "--json"], "measure": ["--repeats", "1"], "search": ["--json"]}

    printed = {words[0]: run(*words, *more.get(words[0], [])) for words in _commands()}

    sampled = printed["sample"].splitlines()
    assert [space.format(space.parse(line)) for line in sampled] == sampled
    onnx.checker.check_model(onnx.load("network.onnx"), full_check=True)
    assert json.loads(printed["stats"])["params"] == _params(width=16, depth=2, kernel=3)
    assert pd.read_parquet("measured.parquet")["latency_ms@here"].gt(0).all()
    texts = pd.read_parquet("texts.parquet")
    assert texts["architecture"].tolist() == [space.format(architecture) for architecture in listed]
    assert texts["text"][5] == to_onnx_text(space, listed[5])
    assert json.loads(printed["search"])["evaluations"] == 20


def test_what_one_verb_writes_of_the_space_another_reads(folder: Path, run) -> None:
    name = "my_space.py:MySpace"
    run("sample", "--space", name, "-n", "5", "--out", "drawn.csv")
    run("measure", "--table", "drawn.csv", "--repeats", "1", "--objective", "latency_ms@mine", "--out", "measured.csv")
    assert set(pd.read_csv("measured.csv")["space"]) == {name}
    run("stats", "--table", "measured.csv", "--out", "counted.parquet")
    goal = ("--objectives", "min:latency_ms@mine", "--sampler", "random", "--trials", "5")
    given = ("--evaluator", "table:measured.csv", "--warm-start", "drawn.csv")
    found = json.loads(run("search", "--space", name, *goal, *given, "--out", "study", "--json"))
    assert found["evaluations"] == 5
