"""Bad input: exit status 2 and one line on stderr that says what, where, expected and got."""

from pathlib import Path

import pytest

from nasrlm.files import write_table
from tests.nasrlm.cli.mistakes_of_runs import MISTAKES_OF_RUNS
from tests.nasrlm.cli.test_cli import ARCHITECTURE, SPACE
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.scenes import OBJECTIVES, layer_table
from tests.nasrlm.workplace import MODEL, assert_one_line

STREAM = ("predict", *MODEL, "--table")
MISTAKES = {
    "no verb": ((), "expected a verb, got none."),
    "unknown verb": (("prophesy",), "No such command 'prophesy'."),
    "unknown option": (("spaces", "--colour"), "No such option: --colour"),
    "no number": (("sample", *SPACE, "-n", "many"), "Invalid value for '-n'"),
    "negative seed": (("sample", *SPACE, "--seed", -1), "Invalid value for '--seed'"),
    "a seed beyond 32 bits": (("search", *SPACE, "--out", "x", "--seed", 2**32), "Invalid value for '--seed'"),
    "no space": (("sample",), "sample: expected --space, got none. `nasrlm spaces` lists them."),
    "no space of a word": (
        ("convert", "network.pb"),
        "convert network.pb: expected an architecture with --space, a file ending in .onnxtxt or .onnx, or pkg.module:",
    ),
    "a share that nothing is held out of": (
        ("sample", *SPACE, "--held-out", 10),
        "--held-out: expected --out with it, got none.",
    ),
    "a checkpoint that counts no tokens": (
        ("convert", *SPACE, ARCHITECTURE, *MODEL),
        "--checkpoint: expected --json with it, got none.",
    ),
    "unknown space": (("sample", "--space", "moon"), "space: expected one of "),
    "malformed architecture": (("convert", *SPACE, "|conv~0|"), "nasbench201"),
    "unknown kind of file": (
        ("convert", *SPACE, ARCHITECTURE, "--out", "x.pdf"),
        "x.pdf: expected a file ending in .onnx",
    ),
    "unwritable file": (("convert", *SPACE, ARCHITECTURE, "--out", "file/x.onnx"), "file: expected a folder that can"),
    "no input": (("predict", *MODEL), "input: expected architectures or --table, got neither."),
    "no such text": (("predict", *MODEL, "none.txt"), "none.txt: expected a text file, got no such file."),
    "cut-off ONNX text": (("predict", *MODEL, "cut.onnxtxt"), "cut.onnxtxt: ONNX text: expected "),
    "shape of an architecture": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--input-shape", "1,3,8,8"),
        "--input-shape: expected model.onnx or pkg.module:factory with it, got |nor_conv_3x3~0|",
    ),
    "files and architectures": (
        ("predict", *MODEL, *SPACE, "net.onnx", ARCHITECTURE),
        "expected files, or modules with --input-shape, or else architectures of nasbench201, got both.",
    ),
    "the space of a file": (
        ("convert", *SPACE, "net.onnx"),
        "convert net.onnx: expected no --space with a model's file",
    ),
    "a function that exits": (
        ("convert", "own_networks:leave", "--input-shape", "1,3"),
        "own_networks:leave: expected a function that takes no arguments and returns a torch.nn.Module, got SystemExit",
    ),
    "a module without outputs": (
        ("convert", "own_networks:Silent", "--input-shape", "1,3"),
        "own_networks:Silent: expected a module that returns tensors, got NoneType.",
    ),
    "an own space that fails": (
        ("stats", "--space", "./own_space.py:Broken", "[16]"),
        "own_space.py:9), architecture [16]",
    ),
    "a network that cannot be counted": (
        ("stats", *MODEL, "mystery.onnxtxt"),
        "mystery.onnxtxt: statistics: expected layers of known shape",
    ),
    "a text of no space": (("predict", *MODEL, "--space", "moon", "body.txt"), "space: expected one of "),
    "architectures for a text": (
        ("predict", *MODEL, *SPACE, "lines.txt"),
        "lines.txt: expected the ONNX text of one network, got architectures of nasbench201 in its first line. Give",
    ),
    "no text": (("predict", *MODEL, "binary.txt"), "binary.txt: expected UTF-8 text, got"),
    "a folder for a text": (("predict", *MODEL, "folder.txt"), "folder.txt: expected a text file, got a folder."),
    "a folder for a model": (("predict", *MODEL, "folder.onnx"), "folder.onnx: expected an ONNX model, got a folder."),
    "no such objective": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--objectives", "latency_ms@raspi"),
        "got 'latency_ms@raspi'. Did you mean latency_ms@raspi4?",
    ),
    "no such objective of networks that cannot be read": (
        ("predict", *MODEL, "none.txt", "--objectives", "latency_ms@raspi"),
        "objective: expected one of the checkpoint's 2 objectives, got",
    ),
    "no such objective of rows that cannot be read": (
        ("evaluate", *MODEL, "--table", "wrong.csv", "--objectives", "latency_ms@unheard"),
        "objective: expected one of the checkpoint's 2 objectives, got 'latency_ms@unheard'.",
    ),
    "no levels": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--quantiles", ".9,.1"),
        "--quantiles: expected three or more ascending",
    ),
    "option before the verb": (
        ("--space", "nasbench201", "sample", "-n", 3),
        "No such option: --space. Options come after the verb: nasrlm sample --space …",
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
        "objective: expected one of the checkpoint's 2 objectives, got 'latency_ms@unheard'.",
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
    "samples in a table": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--samples", 2, "--json", "--out", "x.parquet"),
        "predict --out: expected no --samples, which --json prints.",
    ),
    "predictions of no table's kind": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--out", "x.txt"),
        "x.txt: expected a table ending in .parquet, .csv or .jsonl, got .txt.",
    ),
    "predictions of a table as JSON lines": (
        ("predict", *MODEL, "--table", "table.csv", "--out", "x.jsonl"),
        "x.jsonl: expected a file ending in .parquet or .csv, got .jsonl.",
    ),
    "a folder to write a table to": (
        (*STREAM, "whole.parquet", "--out", "folder.parquet"),
        "folder.parquet: expected a table to write, got a folder. Choose another path.",
    ),
    "a shape of rows to predict": (
        (*STREAM, "whole.parquet", "--out", "x.parquet", "--input-shape", "1,3"),
        "--input-shape: expected a model or a function with it, got --table.",
    ),
    "a seed of no samples": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--seed", 1),
        "--seed: expected --samples with it, got none.",
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
        "--quantiles: expected three or more ascending levels in (0, 1), including 0.5, got '.1,.5'",
    ),
    "an answer over its question": (
        (*STREAM, "whole.parquet", "--out", "./whole.parquet"),
        "whole.parquet: expected an output file other than the input",
    ),
    "measurements over what is measured": (
        ("measure", "--table", "table.csv", "--out", "table.csv"),
        "table.csv: expected an output file other than the input",
    ),
    "a conversion over its table": (
        ("convert", "--table", "whole.parquet", "--out", "whole.parquet"),
        "whole.parquet: expected an output file other than the input",
    ),
    "a text over its model": (
        ("convert", "net.onnx", "--out", "net.onnx"),
        "net.onnx: expected an output file other than the input",
    ),
    "a table twice": (
        ("predict", *MODEL, "--table", "table.csv", "--table", "moon.csv"),
        "--table: expected it once, got it 2 times.",
    ),
    "results twice": (
        ("search", *SPACE, "--results", "table.csv", "--results", "moon.csv", "--out", "study"),
        "--results: expected it once, got it 2 times.",
    ),
    "objectives twice": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--objectives", OBJECTIVES[0], "--objectives", OBJECTIVES[1]),
        "--objectives: expected it once, got it 2 times. Separate several names with commas.",
    ),
    "a row cut off": (("evaluate", *MODEL, "--table", "short.csv"), "fewer than the 6 fields of the header"),
    "an engine of one network": (
        ("convert", *SPACE, ARCHITECTURE, "--engine", "ray"),
        "--engine: expected --table with it, got an architecture. It has no effect",
    ),
    "a shape of a table": (
        ("convert", "--table", "table.csv", "--out", "x.parquet", "--input-shape", "1,3"),
        "--input-shape: expected an architecture with it, got --table.",
    ),
    "repeats of no latency": (
        ("stats", "--table", "table.csv", "--out", "x.parquet", "--repeats", 3),
        "--repeats: expected --latency with it, got none.",
    ),
    "more samples than fit": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--samples", 10**10, "--json"),
        "Invalid value for '--samples'",
    ),
    "a named objective without labels beside another": (
        ("evaluate", *MODEL, "--table", "unlabelled.csv", "--objectives", ",".join(OBJECTIVES)),
        f"unlabelled.csv: expected two labels or more of {OBJECTIVES[0]}, got fewer.",
    ),
    "a text that nothing runs": (
        ("measure", "body.txt"),
        "in body.txt.",
    ),
    "an unknown space of a row": (("evaluate", *MODEL, "--table", "moon.csv"), "moon.csv, row 0: space: expected one"),
    "malformed row of a stream": ((*STREAM, "wrong.csv", "--out", "x.parquet"), "wrong.csv, row 2: nasbench201"),
    "a row of a stream without a space": (
        (*STREAM, "half_spaced.csv", "--out", "x.parquet"),
        "half_spaced.csv: expected a space in every row, got none in row 1. Fill its column space.",
    ),
    "no row of the space": (
        (*STREAM, "table.csv", "--out", "x.parquet", "--space", "darts"),
        "table.csv: expected rows of space darts, got none.",
    ),
    "unwritable predictions": (
        (*STREAM, "table.csv", "--out", "file/x.parquet"),
        "file: expected a folder that can be written, got Not a directory. Choose another.",
    ),
    "unknown engine": (
        ("predict", *MODEL, *SPACE, ARCHITECTURE, "--engine", "abacus"),
        "Invalid value for '--engine'",
    ),
    "tokens of no checkpoint": (
        ("stats", *SPACE, ARCHITECTURE, "--checkpoint", "none"),
        "none: expected a checkpoint folder with config.json",
    ),
    "no checkpoint": (("info", "--checkpoint", "none"), "none: expected a checkpoint folder with config.json"),
    "corrupt checkpoint": (("info", "--checkpoint", "corrupt"), "model.safetensors: expected a safetensors file, got"),
    "no study": (("plot", "none"), "none"),
    "no label": (
        ("evaluate", *MODEL, "--table", "unlabelled.csv", "--objectives", OBJECTIVES[0]),
        "evaluate: expected labelled rows, got none.",
    ),
    "unknown ending of what is measured": (
        ("measure", *SPACE, ARCHITECTURE, "--out", "x.txt"),
        "x.txt: expected a table ending in .parquet, .csv or .jsonl, got .txt.",
    ),
    "a folder for what is measured": (
        ("measure", "none.onnx", "--out", "folder.csv"),
        "folder.csv: expected a table to write, got a folder. Choose another path.",
    ),
    "latency in another unit": (
        ("measure", *SPACE, ARCHITECTURE, "--objective", "energy_mj@here"),
        "--objective: expected a name in milliseconds",
    ),
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
        "resplit.csv: column split: expected train, valid, test or an empty value, got 'validation' in row 0",
    ),
    "no rows in a stream": ((*STREAM, "empty.parquet", "--out", "x.parquet"), "empty.parquet: expected rows, got none"),
    "a function to predict": (
        ("predict", *MODEL, "nets:build"),
        "nets:build: expected --input-shape, such as 1,3,32,32, got none.",
    ),
    "a network to predict": (
        ("predict", *MODEL, "net"),
        "net: expected architectures with --space, files ending in .txt, .onnxtxt, .onnx, or pkg.module:factory.",
    ),
    "a network beside a file": (("predict", *MODEL, "long.txt", "net"), "nasrlm: net: expected architectures with"),
}


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize(
    ("words", "message"),
    [pytest.param(*case, id=name) for cases in (MISTAKES, MISTAKES_OF_RUNS) for name, case in cases.items()],
)
def test_bad_input_is_answered_in_one_line(nasrlm: CommandLine, words: tuple[object, ...], message: str) -> None:
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
