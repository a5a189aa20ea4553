"""Fixtures of all tests of nasrlm: one thread, one small checkpoint, and the command line as a function."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from nasrlm.adaptation import boosted_trees, graph_network_fit
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.cli import main
from nasrlm.examples import Examples
from nasrlm.model.config import ModelConfig
from nasrlm.training.config import TrainConfig
from nasrlm.training.train import train
from tests.nasrlm.scenes import OBJECTIVES, layer_table, network_checkpoint
from tests.nasrlm.workplace import fill


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoint() -> Checkpoint:
    return network_checkpoint()


@pytest.fixture(scope="session")
def checkpoint_folder(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints") / "tiny"
    checkpoint.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def filled(checkpoint_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workplaces") / "filled"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        fill(checkpoint_folder)
    return folder


@pytest.fixture
def workplace(tmp_path: Path, filled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, filled with what is good and bad."""
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def learning_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accuracies are learned by trees and graph networks of a few steps, where it does not matter how well."""
    monkeypatch.setattr(boosted_trees, "NUM_TREES", 60)
    monkeypatch.setattr(graph_network_fit, "STEPS", (20, 20))


class Finished(NamedTuple):
    status: int
    stdout: str
    stderr: str


CommandLine = Callable[..., Finished]


@pytest.fixture
def nasrlm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """``nasrlm("sample", "--space", …)``: the command with these words, in this process."""

    def run(*words: object) -> Finished:
        monkeypatch.setattr(sys, "argv", ["nasrlm", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main()
        return Finished(int(exit_.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture
def answers(nasrlm: CommandLine, checkpoint_folder: Path) -> Any:
    """``answers("predict", …)``: what the command prints with --json; verbs of a model use the tiny checkpoint."""

    def run(verb: str, *words: object) -> Any:
        checkpoint = (
            [] if verb in ("spaces", "sample", "measure", "train", "plot") else ["--checkpoint", checkpoint_folder]
        )
        finished = nasrlm(verb, *words, *checkpoint, "--json")
        assert (finished.status, finished.stderr) == (0, "")
        return json.loads(finished.stdout)

    return run


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A small model that knows how accuracy and latency follow from the layers."""
    table = layer_table(240)
    size = ModelConfig(width=32, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, hidden=64, dropout=0.0)
    config = TrainConfig(
        table=Path("layers.parquet"),
        out=tmp_path_factory.mktemp("run"),
        model=size,
        vocabulary_size=270,
        num_digits=3,
        epochs=15,
        batch_size=16,
        average_decay=0.95,
        evaluate_every_epochs=15,
    )
    return train(config, Examples.of_table(table, table["text"].tolist(), OBJECTIVES), progress=False).checkpoint
