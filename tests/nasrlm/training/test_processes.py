"""Two processes train as one does."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_flatten

from nasrlm.training.processes import Processes
from tests.nasrlm.runs import log_of
from tests.nasrlm.training.train_together import train_and_report

ROOT = Path(__file__).resolve().parents[3]


def launch(out: Path, how: str, *step: int) -> subprocess.CompletedProcess[str]:
    """Two processes on this machine's CPU."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launcher, "-m", "tests.nasrlm.training.train_together", str(out), how, *map(str, step)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)


def assert_alike(together: Path, alone: Path) -> None:
    for a, b in zip(log_of(together), log_of(alone), strict=True):
        assert a == pytest.approx(b, abs=1e-4, nan_ok=True)
    first, second = (report_of(together, name) for name in ("first", "second"))
    assert first == second
    expected = report_of(alone, "first")
    assert first["norm"] == pytest.approx(expected["norm"], rel=1e-3)
    assert first["sums"] == pytest.approx(expected["sums"], abs=1e-3)


def states_differ(a: Path, b: Path) -> float:
    """The largest difference of two states' tensors, which are those of the same places."""
    states = [tree_flatten(torch.load(out / "state.pt", weights_only=True)) for out in (a, b)]
    assert states[0][1] == states[1][1]
    pairs = zip(states[0][0], states[1][0], strict=True)
    return max(float((x - y).abs().max()) for x, y in pairs if isinstance(x, torch.Tensor))


def report_of(out: Path, process: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / f"{process}.json").read_text())
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone")
    train_and_report(out)
    return out


def test_two_processes_have_the_losses_of_one(alone: Path, tmp_path: Path) -> None:
    finished = launch(tmp_path, "whole")
    assert finished.returncode == 0, finished.stderr
    assert_alike(tmp_path, alone)
    assert {path.name for path in tmp_path.iterdir()} == {
        "checkpoint", "log.jsonl", "state.pt", "first.json", "second.json",
        "token_ids.safetensors",
    }  # fmt: skip


@pytest.mark.slow
def test_two_killed_processes_go_on_where_they_were(alone: Path, tmp_path: Path) -> None:
    assert "Killed" in launch(tmp_path, "whole", 3).stderr
    assert (tmp_path / "state.pt").exists()
    finished = launch(tmp_path, "whole")
    assert finished.returncode == 0, finished.stderr
    assert_alike(tmp_path, alone)


@pytest.mark.slow
def test_two_processes_that_split_the_model_have_the_losses_of_one(alone: Path, tmp_path: Path) -> None:
    finished = launch(tmp_path, "split")
    assert finished.returncode == 0, finished.stderr
    assert_alike(tmp_path, alone)
    assert states_differ(tmp_path, alone) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [("split", "whole"), ("whole", "split"), ("split", "split")])
def test_a_run_goes_on_split_or_whole(before: str, after: str, alone: Path, tmp_path: Path) -> None:
    assert "Killed" in launch(tmp_path, before, 3).stderr
    finished = launch(tmp_path, after)
    assert finished.returncode == 0, finished.stderr
    assert_alike(tmp_path, alone)


@pytest.mark.slow
def test_one_process_goes_on_with_a_model_that_was_split(alone: Path, tmp_path: Path) -> None:
    assert "Killed" in launch(tmp_path, "split", 3).stderr
    train_and_report(tmp_path, shard=True)  # which alone means nothing
    assert log_of(tmp_path)[-1] == pytest.approx(log_of(alone)[-1], abs=1e-4, nan_ok=True)
    assert report_of(tmp_path, "first")["sums"] == pytest.approx(report_of(alone, "first")["sums"], abs=1e-3)


def test_one_process_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    processes = Processes("cpu")
    answers: list[Any] = [processes.rank, processes.count, processes.sum(2.5), processes.from_first(lambda: "x")]
    assert answers == [0, 1, 2.5, "x"]


def test_a_launcher_that_splits_models_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(ValueError, match=r"train: expected a launcher that does not split models, got FSDP\."):
        Processes("cpu")
