"""The log of a run, and its copy for TensorBoard."""

import json
import sys
from pathlib import Path

import pytest

from nasrlm.training.log import TrainLog


def test_every_note_is_a_line(tmp_path: Path) -> None:
    log = TrainLog(tmp_path, tensorboard=False)
    log.start()
    log.note({"step": 1, "loss": 2.5})
    log.note({"step": 2, "loss": float("nan")})
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert lines == [{"step": 1, "loss": 2.5}, {"step": 2, "loss": None}]
    assert {path.name for path in tmp_path.iterdir()} == {"log.jsonl"}


def test_tensorboard_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    told = r"train: expected the package tensorboard, got none\. Install nasrlm\[tensorboard\]\.$"
    with pytest.raises(ImportError, match=told):
        TrainLog(tmp_path, tensorboard=True)


def test_events_have_the_numbers_of_the_log(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for step in (1, 2):  # the second is a run that goes on
        log = TrainLog(tmp_path, tensorboard=True)
        log.entries = [{"step": done, "loss": 3.0 - done} for done in range(1, step)]
        log.start()
        log.note({"step": step, "loss": 3.0 - step})
        log.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(1, 2.0), (2, 1.0)]
