"""Bars become lines where no terminal shows them, in every verb."""

import io
import re
from pathlib import Path

import pytest
from tqdm import tqdm

from nasrlm.cli import progress_lines
from nasrlm.cli.progress_lines import INTERVAL, ProgressLines
from tests.nasrlm.cli.test_cli_training import train_config
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.scenes import layer_table


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(progress_lines, "monotonic", lambda: now[0])
    return now


def shown(clock: list[float], seconds: float, steps: int = 10) -> list[str]:
    """Lines of a bar of so many steps, among which something else is printed."""
    stream = io.StringIO()
    lines: io.StringIO = ProgressLines(stream)  # type: ignore[assignment]
    print("before", file=lines)
    with tqdm(total=steps, file=lines, mininterval=0) as bar:
        for step in range(steps):
            clock[0] += seconds
            bar.update()
            if step == 0:
                print("a warning", file=lines)
    print("after", file=lines)
    return stream.getvalue().split("\n")


def test_a_bar_is_a_line_an_interval(clock: list[float]) -> None:
    before, warning, *lines, after, end = shown(clock, INTERVAL / 2)
    assert (before, warning, after, end) == ("before", "a warning", "after", "")
    assert [re.findall(r"\d+/10", line) for line in lines] == [[f"{step}/10"] for step in (2, 4, 6, 8, 10, 10)]


def test_what_is_done_soon_says_nothing(clock: list[float]) -> None:
    assert shown(clock, INTERVAL / 20) == ["before", "a warning", "after", ""]


def test_bars_within_bars_are_lines_too(clock: list[float]) -> None:
    stream = io.StringIO()
    lines: io.StringIO = ProgressLines(stream)  # type: ignore[assignment]
    for _ in tqdm("ab", "outer", file=lines, mininterval=0):
        for _ in tqdm(range(4), "inner", file=lines, mininterval=0):
            clock[0] += INTERVAL / 2
    print("after", file=lines)
    *told, after, end = stream.getvalue().split("\n")
    assert (after, end) == ("after", "")
    inner = [("inner", "2/4"), ("inner", "4/4"), ("inner", "4/4")]
    assert [re.findall(r"^(\w+): .* (\d/\d) ", line)[0] for line in told] == 2 * inner


def test_a_bar_within_another_leaves_no_empty_line_after_other_text() -> None:
    stream = io.StringIO()
    lines: io.StringIO = ProgressLines(stream)  # type: ignore[assignment]
    print("before\n", file=lines)
    for _ in tqdm("ab", "outer", file=lines, mininterval=0):
        print("a warning", file=lines)
        for _ in tqdm("cd", "inner", file=lines, mininterval=0):
            pass
    print("\nafter", file=lines)
    assert stream.getvalue() == "before\n\na warning\na warning\n\nafter\n"


def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch, nasrlm: CommandLine, tmp_path: Path) -> None:
    monkeypatch.setattr("_pytest.capture.CaptureIO.isatty", lambda _: True)
    words = ("sample", "--space", "fbnet", "-n", 20, "--out", tmp_path / "x.csv")
    assert "\rsample fbnet: 100%" in nasrlm(*words).stderr


def test_training_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch, nasrlm: CommandLine, tmp_path: Path) -> None:
    monkeypatch.setattr(progress_lines, "INTERVAL", 0)
    frame = layer_table(48).assign(split=["train", "valid"] * 24)
    told = nasrlm("train", "--config", train_config(tmp_path, frame)).stderr
    assert "\r" not in told
    last = told.splitlines()[-1]
    assert last.startswith("train: 100%")
    assert " 6/6 [" in last
    assert "loss=" in last
    assert "best_tau=" in last
