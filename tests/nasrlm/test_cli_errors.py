"""Bad input: exit status 2 and one line on stderr that says what, where, expected and got."""

import shutil
from pathlib import Path

import pytest

from nasrlm.cli import architectures, models
from nasrlm.files import write_table
from tests.nasrlm.conftest import CommandLine, Finished
from tests.nasrlm.scenes import OBJECTIVES, architecture_table, layer_table
from tests.nasrlm.test_cli import ARCHITECTURE, GOALS, SPACE

MODEL = ("--checkpoint", "tiny")
SEARCH = ("search", *SPACE, *MODEL, "--trials", 4, "--out", "study", "--objectives")
STREAM = ("predict", *MODEL, "--table")
NETWORKS = """
import sys
import torch

def fail(notation):
    raise RuntimeError("no bench")

def exit_(notation):
    sys.exit(0)

def leave():
    sys.exit(3)

class Silent(torch.nn.Module):
    def forward(self, x):
        return None
"""
OWN_SPACE = """
from spaces import GenotypeSpace

class Broken(GenotypeSpace):
    name = "broken"
    choices = {"width": (16, 24)}

    def build(self, architecture):
        return architecture["depth"]
"""
OF_THE_MODEL = (
    ("--no-gate",),
    ("--gate",),
    ("--risk", 0.1),
    ("--batch", 5),
    ("--generations", 9),
    ("--adapt-every", 0),
    ("--samples", 9),
    ("--joint",),
    ("--exhaustive",),
)
TABLE = ("--evaluator", "table:table.csv")
GUIDED = "--acquisition hypervolume or median"
IDLE = (
    (
        (),
        (("--acquisition", "median"), *OF_THE_MODEL),
        "--evaluator table:PATH, module:function or measure beside it, got surrogate.",
    ),
    ((*TABLE, "--acquisition", "none"), OF_THE_MODEL, f"{GUIDED} beside it, got none."),
    (
        (*TABLE, "--acquisition", "none"),
        (("--checkpoint", "nonexistent"),),
        f"{GUIDED}, or --evaluator measure, beside it, got neither.",
    ),
    (("--evaluator", "measure", "--acquisition", "none"), (("--samples", 9),), f"{GUIDED} beside it, got none."),
    (
        (*TABLE, "--acquisition", "median"),
        (("--samples", 9), ("--joint",)),
        "--acquisition hypervolume beside it, got median.",
    ),
    (
        (*TABLE, "--exhaustive"),
        (("--engine", "pymoo"), ("--sampler", "tpe"), ("--generations", 9)),
        "no --exhaustive beside it, got it.",
    ),
)
COMMANDS = {
    "no verb": ((), "expected a verb, got none."),
    "unknown verb": (("prophesy",), "No such command 'prophesy'."),
    "unknown option": (("spaces", "--colour"), "No such option: --colour"),
    "no number": (("sample", *SPACE, "-n", "many"), "Invalid value for '-n'"),
    "negative seed": (("sample", *SPACE, "--seed", -1), "Invalid value for '--seed'"),
    "no space": (("sample",), "sample: expected --space, got none. `nasrlm spaces` lists them."),
    "unknown space": (("sample", "--space", "moon"), "space: expected one of "),
    "malformed architecture": (("convert", *SPACE, "|conv~0|"), "nasbench201"),
    "unknown kind of file": (
        ("convert", *SPACE, ARCHITECTURE, "--out", "x.pdf"),
        "x.pdf: expected a file ending in .onnx",
    ),
    "unwritable file": (("convert", *SPACE, ARCHITECTURE, "--out", "file/x.onnx"), "file/x.onnx: expected to write"),
    "no input": (("predict", *MODEL), "input: expected architectures or --table, and not both."),
    "no such text": (("predict", *MODEL, "none.txt"), "none.txt: expected a text file, got no such file."),
    "cut-off ONNX text": (("predict", *MODEL, "cut.onnxtxt"), "cut.onnxtxt: ONNX text: expected "),
    "shape of an architecture": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--input-shape", "1,3,8,8"),
        "--input-shape: expected model.onnx or pkg.module:factory with it, got |nor_conv_3x3~0|",
    ),
    "the space of a file": (
        ("convert", *SPACE, "net.onnx"),
        "convert net.onnx: expected no --space with a model's file",
    ),
    "a function that exits": (
        ("convert", "own_networks:leave", "--input-shape", "1,3"),
        "own_networks:leave: expected a function that takes no arguments and returns a torch.nn.Module, got: 3.",
    ),
    "a module without outputs": (
        ("convert", "own_networks:Silent", "--input-shape", "1,3"),
        "own_networks:Silent: model: expected a model with outputs, got none.",
    ),
    "an own space that fails": (("stats", "--space", "./own_space.py:Broken", "[16]"), "own_space.py:9)"),
    "a text of no space": (("predict", *MODEL, "--space", "moon", "body.txt"), "space: expected one of "),
    "a risk of nothing": (
        (*SEARCH, GOALS, "--evaluator", "table:table.csv", "--risk", "depth@onnx=.1"),
        "gate: expected risks of accuracy@cifar10, latency_ms@raspi4, got depth@onnx.",
    ),
    "no text": (("predict", *MODEL, "binary.txt"), "binary.txt: expected UTF-8 text, got"),
    "no such objective": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--objectives", "latency_ms@raspi"),
        "got 'latency_ms@raspi'. Did you mean latency_ms@raspi4?",
    ),
    "no levels": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--quantiles", ".9,.1"),
        "--quantiles: expected three ascending",
    ),
    "no device": (("predict", *MODEL, *SPACE, ARCHITECTURE, "--device", "abacus"), "device: expected one that torch"),
    "no such table": (("evaluate", *MODEL, "--table", "none.csv"), "none.csv: expected a table, got no such file."),
    "truncated table": (("evaluate", *MODEL, "--table", "half.parquet"), "half.parquet: expected a readable parquet"),
    "no such column": (
        ("evaluate", *MODEL, "--table", "table.csv", "--objectives", "energy_mj@fpga"),
        "table.csv: expected a column energy_mj@fpga, got labels accuracy@cifar10, ",
    ),
    "unknown objective": (
        ("evaluate", *MODEL, "--table", "table.csv", "--objectives", "latency_ms@unheard"),
        "objective: expected one of the checkpoint's 2, got 'latency_ms@unheard'.",
    ),
    "no such split": (
        ("evaluate", *MODEL, "--table", "table.csv", "--split", "final"),
        "table.csv: expected rows of split final, got train, valid, test.",
    ),
    "malformed row": (("evaluate", *MODEL, "--table", "wrong.csv"), "wrong.csv, row 2: nasbench201"),
    "another space": (
        ("predict", *MODEL, "--table", "table.csv", "--space", "darts"),
        "expected rows of space darts, got nasbench",
    ),
    "no table to write from": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--out", "x.parquet"),
        "predict --out: expected --table, and no architectures or --samples.",
    ),
    "objectives without a name": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--objectives", ","),
        "--objectives: expected names separated by commas, got ','",
    ),
    "an objective twice": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--objectives", "a@b,a@b"),
        "--objectives: expected different names, got 'a@b,a@b'. Name each once.",
    ),
    "a device without numbers": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--device", "meta"),
        "device: expected one that",
    ),
    "two levels": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--quantiles", ".1,.5"),
        "--quantiles: expected three ascending levels or more in (0, 1), 0.5 among them, got '.1,.5'",
    ),
    "an answer over its question": (
        (*STREAM, "whole.parquet", "--out", "./whole.parquet"),
        "whole.parquet: expected another file than the one that is read",
    ),
    "measurements over what is measured": (
        ("measure", "--table", "table.csv", "--out", "table.csv"),
        "table.csv: expected another file than the one that is read",
    ),
    "a lesson over its labels": (
        ("teach", "--table", "table.csv", "--out", "table.csv"),
        "table.csv: expected another file than the one that is read",
    ),
    "a text over its model": (
        ("convert", "net.onnx", "--out", "net.onnx"),
        "net.onnx: expected another file than the one that is read",
    ),
    "a table twice": (
        ("predict", *MODEL, "--table", "table.csv", "--table", "moon.csv"),
        "--table: expected it once, got it 2 times.",
    ),
    "a row cut off": (("evaluate", *MODEL, "--table", "short.csv"), "fewer than the 6 fields that the header names"),
    "an engine of one network": (
        ("convert", *SPACE, ARCHITECTURE, "--engine", "ray"),
        "--engine: expected --table beside it, got an architecture. It has no effect",
    ),
    "a shape of a table": (
        ("convert", "--table", "table.csv", "--out", "x.parquet", "--input-shape", "1,3"),
        "--input-shape: expected an architecture beside it, got --table.",
    ),
    "repeats of no latency": (
        ("stats", "--table", "table.csv", "--out", "x.parquet", "--repeats", 3),
        "--repeats: expected --latency beside it, got none.",
    ),
    "more samples than fit": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--samples", 10**10, "--json"),
        "Invalid value for '--samples'",
    ),
    "a named objective without labels beside another": (
        ("evaluate", *MODEL, "--table", "unlabelled.csv", "--objectives", ",".join(OBJECTIVES)),
        f"unlabelled.csv: expected two labels or more of {OBJECTIVES[0]}, got fewer.",
    ),
    "an evaluator that exits": (
        (*SEARCH, GOALS, "--evaluator", "own_networks:exit_"),
        "evaluator own_networks:exit_: expected an answer for |",
    ),
    "a text that nothing runs": (
        ("measure", "body.txt"),
        "in body.txt.",
    ),
    "another split": (("train", "--config", "resplit.yaml"), "column split: expected train, valid, test or nothing"),
    "an unknown space of a row": (("evaluate", *MODEL, "--table", "moon.csv"), "moon.csv, row 0: space: expected one"),
    "an evaluator that fails": (
        (*SEARCH, GOALS, "--evaluator", "own_networks:fail"),
        "evaluator own_networks:fail: expected an answer for |",
    ),
    "no parquet": ((*STREAM, "table.csv", "--out", "x.csv"), "x.csv: expected a file ending in .parquet, got .csv."),
    "malformed row of a stream": ((*STREAM, "wrong.csv", "--out", "x.parquet"), "wrong.csv, row 2: nasbench201"),
    "no row of the space": (
        (*STREAM, "table.csv", "--out", "x.parquet", "--space", "darts"),
        "table.csv: expected rows of space darts, got none.",
    ),
    "unwritable predictions": (
        (*STREAM, "table.csv", "--out", "file/x.parquet"),
        "file/x.parquet: expected to write this file",
    ),
    "unknown engine": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--engine", "abacus"),
        "Invalid value for '--engine'",
    ),
    "no checkpoint": (("info", "--checkpoint", "none"), "none: expected a checkpoint folder with config.json"),
    "corrupt checkpoint": (("info", "--checkpoint", "corrupt"), "model.safetensors: expected a safetensors file, got"),
    "no config": (("train", "--config", "none.yaml"), "none.yaml: expected a YAML file, got No such file"),
    "unknown key": (("train", "--config", "misspelt.yaml"), "misspelt.yaml: epoch: Extra inputs are not permitted"),
    "unwritable run": (
        ("train", "--config", "good.yaml", "--out", "file/run"),
        "file/run: expected a folder that can be written",  # before anything is converted
    ),
    "no goal": ((*SEARCH, "accuracy@cifar10"), "goal: expected max:objective or min:objective"),
    "unknown goal": ((*SEARCH, "max:accuracy@cifar1"), "Did you mean accuracy@cifar10?"),
    **{
        f"{option[0]} beside {beside}": (
            ("search", *SPACE, "--trials", 4, "--out", "study", "--objectives", GOALS, *beside, *option),
            f"{option[0]}: expected {needed} It has no effect: leave it out.",
        )
        for beside, options, needed in IDLE
        for option in options
    },
    "unknown evaluator": ((*SEARCH, GOALS, "--evaluator", "oracle"), "--evaluator: expected surrogate, table:PATH"),
    "unwritable study": (("search", *SPACE, *MODEL, "--objectives", GOALS, "--out", "file/study"), "file/study"),
    "no study": (("plot", "none"), "none"),
    "infinite label": (
        (
            "adapt",
            *MODEL,
            "--table",
            "infinite.csv",
            "--objectives",
            "latency_ms@unheard",
            "--samples",
            2,
            "--out",
            "x",
        ),
        "infinite.csv: expected finite or no numbers in column latency_ms@unheard, got inf in row 1.",
    ),
    "no label": (
        ("evaluate", *MODEL, "--table", "unlabelled.csv", "--objectives", OBJECTIVES[0]),
        "evaluate: expected labelled rows, got none.",
    ),
    "table without a space": (
        (
            "adapt",
            *MODEL,
            "--table",
            "spaceless.csv",
            "--objectives",
            "latency_ms@unheard",
            "--samples",
            2,
            "--out",
            "x",
        ),
        "spaceless.csv: expected a column space, got none.",
    ),
    "unknown ending of what is measured": (
        ("measure", *SPACE, ARCHITECTURE, "--out", "x.txt"),
        "x.txt: expected a table ending in .parquet, .csv or .jsonl, got .txt.",
    ),
    "latency in another unit": (
        ("measure", *SPACE, ARCHITECTURE, "--objective", "energy_mj@here"),
        "--objective: expected a name in milliseconds",
    ),
    "key that is no word": (("train", "--config", "numbered.yaml"), "numbered.yaml: expected words as keys, got 3."),
    "long text of a space": (
        ("predict", *MODEL, "--table", "long.parquet", *SPACE),
        "long.parquet: text: expected 1 to 512 tokens, got 1800 in row 5",
    ),
    "long text in a stream": (
        (*STREAM, "long.parquet", "--out", "x.parquet"),
        "long.parquet: text: expected 1 to 512 tokens, got 1800 in row 5",
    ),
    "long text evaluated": (
        ("evaluate", *MODEL, "--table", "table.csv", "--table", "long.parquet"),
        "long.parquet: text: expected 1 to 512 tokens, got 1800 in row 5",
    ),
    "split of the second table": (
        ("evaluate", *MODEL, "--table", "table.csv", "--table", "resplit.csv"),
        "resplit.csv: column split: expected train, valid, test or nothing, got 'validation' in row 0",
    ),
    "no rows in a stream": ((*STREAM, "empty.parquet", "--out", "x.parquet"), "empty.parquet: expected rows, got none"),
    "adapted to a file": (
        ("adapt", *MODEL, "--table", "table.csv", "--objectives", "latency_ms@unheard", "--out", "file"),
        "file: expected a folder for the new checkpoint, got a file",
    ),
    "adapted where nothing can be written": (
        ("adapt", *MODEL, "--table", "table.csv", "--objectives", "latency_ms@unheard", "--out", "/proc/none/new"),
        "/proc/none/new: expected a folder that can be written, got",
    ),
    "labels beyond 32 bits": (
        ("adapt", *MODEL, "--table", "huge.csv", "--objectives", "delta@huge", "--samples", "2", "--out", "huge"),
        "adapt: expected labels of delta@huge up to 1e+30, got 1e+35",
    ),
    "a function to predict": (
        ("predict", *MODEL, "nets:build"),
        "nets:build: expected --input-shape, such as 1,3,32,32, got none.",
    ),
    "a network to predict": (
        ("predict", *MODEL, "net"),
        "net: expected architectures with --space, files ending in .txt, .onnxtxt, .onnx, or pkg.module:factory.",
    ),
    "no exponents": (("train", "--config", "exponents.yaml"), "max_exponent: expected more than min_exponent, 2"),
    "warm start without architectures": (
        (*SEARCH, GOALS, "--warm-start", "texts.csv"),
        "texts.csv: expected a column architecture",
    ),
    "a warm start with a bad line": (
        (*SEARCH, GOALS, "--warm-start", "lines.txt"),
        "lines.txt, line 2: nasbench201 notation: expected",
    ),
}


@pytest.fixture
def workplace(tmp_path: Path, checkpoint_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a checkpoint, tables and configs, good and bad."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(checkpoint_folder, "tiny")
    shutil.copytree(checkpoint_folder, "corrupt")
    Path("corrupt/model.safetensors").write_bytes(b"half")
    Path("file").write_text("a file where a folder is needed")
    Path("binary.txt").write_bytes(b"\xff\xfe")
    Path("cut.onnxtxt").write_text("<ir_version: 13")
    Path("body.txt").write_text("Conv")
    Path("own_networks.py").write_text(NETWORKS)
    Path("own_space.py").write_text(OWN_SPACE)
    table = architecture_table(4)
    write_table(table, Path("table.csv"))
    write_table(table.assign(architecture=[*table["architecture"][:2], "|conv~0|", "?"]), Path("wrong.csv"))
    labels = table["latency_ms@unheard"].to_numpy()
    write_table(table.assign(**{"latency_ms@unheard": [labels[0], float("inf"), *labels[2:]]}), Path("infinite.csv"))
    write_table(table.assign(**{OBJECTIVES[0]: float("nan")}), Path("unlabelled.csv"))
    write_table(table.drop(columns="space"), Path("spaceless.csv"))
    write_table(table[[OBJECTIVES[0]]].assign(text="Conv"), Path("texts.csv"))
    write_table(table, Path("whole.parquet"))
    write_table(table.assign(split="validation"), Path("resplit.csv"))
    write_table(table.assign(space="moon"), Path("moon.csv"))
    write_table(table.assign(**{"delta@huge": -1e35}), Path("huge.csv"))
    write_table(table.iloc[:0], Path("empty.parquet"))
    long = table.assign(text="Conv").iloc[[0, 0, 1, 1, 2, 2]].assign(space=["moon", *["nasbench201"] * 5])
    long["text"] = ["Conv"] * 5 + ["Pool\n" * 600]
    write_table(long, Path("long.parquet"))
    Path("resplit.yaml").write_text("table: resplit.csv\nout: run\n")
    Path("numbered.yaml").write_text("table: table.csv\nout: run\n3: 1\n")
    Path("lines.txt").write_text("|none~0|+|none~0|none~1|+|none~0|none~1|none~2|\n|bad~0|\n")
    Path("exponents.yaml").write_text("table: table.csv\nout: run\nmin_exponent: 2\nmax_exponent: 2\n")
    write_table(table, Path("half.parquet"))
    Path("short.csv").write_text(Path("table.csv").read_text().rstrip().rpartition(",")[0])
    Path("half.parquet").write_bytes(Path("half.parquet").read_bytes()[:99])
    Path("good.yaml").write_text(f"table: table.csv\nout: run\nobjectives: [{OBJECTIVES[0]}]\nepochs: 1\n")
    Path("misspelt.yaml").write_text("table: table.csv\nout: run\nepoch: 1\n")
    return tmp_path


def assert_one_line(finished: Finished, message: str) -> None:
    assert finished.status == 2
    assert finished.stderr.startswith("nasrlm: ")
    assert finished.stderr.count("\n") == 1
    assert message in finished.stderr


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("mistake", COMMANDS)
def test_bad_input_is_answered_in_one_line(nasrlm: CommandLine, mistake: str) -> None:
    words, message = COMMANDS[mistake]
    assert_one_line(nasrlm(*words), message)


@pytest.mark.usefixtures("workplace")
def test_the_row_of_a_table_is_named_as_it_stands_in_the_file(nasrlm: CommandLine) -> None:
    finished = nasrlm("evaluate", *MODEL, "--table", "wrong.csv", "--split", "train")
    assert_one_line(finished, "wrong.csv, row 3: nasbench201")


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_text_too_long_to_train_on_is_named_as_it_stands_in_its_file(nasrlm: CommandLine, split: str) -> None:
    first, second = layer_table(40), layer_table(40, seed=1).assign(space="mine")
    second.loc[[0, 1, 20], "space"] = "other"
    second.loc[30, ["text", "split"]] = ["Pool\n" * 600, split]
    write_table(first.assign(space="mine"), Path("first.csv"))
    write_table(second, Path("second.jsonl"))
    sizes = "{width: 16, num_heads: 2, hidden: 32, num_encoder_layers: 1, num_decoder_layers: 1, max_text_tokens: 512}"
    Path("long.yaml").write_text(
        f"table: [first.csv, second.jsonl]\nout: run\nspace: mine\nmax_steps: 1\nmodel: {sizes}\n"
    )
    finished = nasrlm("train", "--config", "long.yaml")
    assert_one_line(finished, "second.jsonl: text: expected 1 to 512 tokens, got 600 in row 30 ('Pool Pool")


def test_a_stream_that_fails_leaves_nothing_behind(nasrlm: CommandLine, workplace: Path) -> None:
    before = sorted(workplace.iterdir())
    assert nasrlm(*STREAM, "wrong.csv", "--out", "x.parquet").status == 2
    assert sorted(workplace.iterdir()) == before


def test_our_own_mistakes_show_a_traceback(nasrlm: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.Checkpoint, "from_pretrained", None)
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        nasrlm("info")


def test_an_interrupt_ends_with_its_own_status(nasrlm: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(models.Checkpoint, "from_pretrained", interrupted)
    finished = nasrlm("info")
    assert (finished.status, finished.stderr) == (130, "nasrlm: interrupted.\n")
    monkeypatch.setattr(models.TrainConfig, "load", interrupted)
    assert nasrlm("train", "--config", "c.yaml").stderr == "nasrlm: interrupted. The same command goes on.\n"
    monkeypatch.setattr(architectures, "convert_whole_table", interrupted)
    finished = nasrlm("convert", "--table", "t.csv", "--out", "texts.parquet")
    assert finished.stderr == "nasrlm: interrupted. The same command with --resume goes on.\n"
