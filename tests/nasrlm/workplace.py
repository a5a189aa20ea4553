"""A folder with a checkpoint, tables and configs, good and bad, for commands that are to fail."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from nasrlm.files import write_table
from tests.nasrlm.scenes import OBJECTIVES, architecture_table

if TYPE_CHECKING:
    from tests.nasrlm.conftest import Finished

MODEL = ("--checkpoint", "tiny")
NETWORKS = """
import asyncio
import sys
import torch

def fail(notation):
    raise RuntimeError("no bench")

def exit_(notation):
    sys.exit(0)

def cancelled(notation):
    raise asyncio.CancelledError

def leave():
    sys.exit(3)

class Silent(torch.nn.Module):
    def forward(self, x):
        return None
"""
MYSTERY = """<ir_version: 13, opset_import: ["": 26, "nn": 1, "mine": 1]>
network (float[1,3,8,8] x) => (float[N,M,H,W] y) {
   a = mine.Mystery (x)
   w = nn.Weight <weight_shape = [4, 3, 3, 3]> ()
   y = Conv (a, w)
}
"""
OWN_SPACE = """
from spaces import GenotypeSpace

class Broken(GenotypeSpace):
    name = "broken"
    choices = {"width": (16, 24)}

    def build(self, architecture):
        return architecture["depth"]
"""


def fill(checkpoint_folder: Path) -> None:
    """Into the working directory."""
    shutil.copytree(checkpoint_folder, "tiny")
    shutil.copytree(checkpoint_folder, "corrupt")
    Path("corrupt/model.safetensors").write_bytes(b"half")
    Path("file").write_text("a file where a folder is needed")
    for folder in ("occupied", "folder.txt", "folder.onnx", "folder.csv", "folder.parquet"):
        Path(folder).mkdir()
    Path("occupied/checkpoint").write_text("a file where a folder is needed")
    Path("binary.txt").write_bytes(b"\xff\xfe")
    Path("cut.onnxtxt").write_text("<ir_version: 13")
    Path("body.txt").write_text("Conv")
    Path("mystery.onnxtxt").write_text(MYSTERY)
    Path("own_networks.py").write_text(NETWORKS)
    Path("own_space.py").write_text(OWN_SPACE)
    table = architecture_table(4)
    write_table(table, Path("table.csv"))
    write_table(table.assign(architecture=[*table["architecture"][:2], "|conv~0|", "?"]), Path("wrong.csv"))
    labels = table["latency_ms@unheard"].to_numpy()
    write_table(table.assign(**{"latency_ms@unheard": [labels[0], float("inf"), *labels[2:]]}), Path("infinite.csv"))
    write_table(table.assign(**{OBJECTIVES[0]: float("nan")}), Path("unlabelled.csv"))
    write_table(table.drop(columns="space"), Path("spaceless.csv"))
    write_table(table.assign(space=["nasbench201", None] * 2), Path("half_spaced.csv"))
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
    Path("blank.txt").write_text("\n\n")
    Path("lines.txt").write_text("|none~0|+|none~0|none~1|+|none~0|none~1|none~2|\n|bad~0|\n")
    Path("exponents.yaml").write_text("table: table.csv\nout: run\nmin_exponent: 2\nmax_exponent: 2\n")
    write_table(table, Path("half.parquet"))
    Path("short.csv").write_text(Path("table.csv").read_text().rstrip().rpartition(",")[0])
    Path("half.parquet").write_bytes(Path("half.parquet").read_bytes()[:99])
    Path("good.yaml").write_text(f"table: table.csv\nout: run\nobjectives: [{OBJECTIVES[0]}]\nepochs: 1\n")
    Path("misspelt.yaml").write_text("table: table.csv\nout: run\nepoch: 1\n")


def assert_one_line(finished: Finished, message: str) -> None:
    assert finished.status == 2
    assert finished.stderr.startswith("nasrlm: ")
    assert finished.stderr.count("\n") == 1
    assert message in finished.stderr
