"""Tables on stdout: as wide as they need to be, and whole where they do not fit."""

import io
import math
import os
import subprocess
import sys

import pytest

from nasrlm.cli import escape_other_characters
from nasrlm.cli.output import print_table, say

LONG = "|".join(["nor_conv_3x3~0"] * 10)


def test_what_does_not_fit_beside_the_other_columns_stands_above_them(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(
        ["architecture", "accuracy", "name"], [[LONG, 93.125, "a"], [LONG, 5, "[b]"], ["short", 1, "c"]], "front"
    )
    title, *lines = capsys.readouterr().out.splitlines()
    assert (title, lines[0], lines[1]) == ("front", "architecture", "accuracy  name")
    assert lines[3:] == [LONG, "   93.12  a", "       5  [b]", "short", "       1  c"]


def test_what_fits_is_a_table_with_all_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["architecture", "count"], [["x", 1_000]])
    assert "│ x            │ 1,000 │" in capsys.readouterr().out


def test_a_table_too_wide_in_every_way_is_folded(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["space", "objectives"], [["x", ", ".join(["latency_ms@pixel3"] * 20)]])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 160


def test_where_not_even_the_numbers_fit_each_has_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nasrlm.cli.output.WIDTH_OF_FILES", 24)
    print_table(["space", "objective", "tau", "error"], [["a", "latency_ms@pixel3", 0.9521, 18.25], ["b", "x", 1.5, 2]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == ["space: a", "objective:", "  latency_ms@pixel3", "tau: 0.9521", "error: 18.25"]
    assert lines[5:] == ["", "space: b", "objective: x", "tau: 1.5", "error: 2"]


def test_numbers_too_long_to_read_are_rounded(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["space", "size"], [["small", 10**14], ["large", 3 * 10**400]])
    printed = capsys.readouterr().out
    assert "100,000,000,000,000" in printed
    assert "3.000e+400" in printed


def test_a_number_that_is_none_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["method", "spread"], [["macs", float("nan")], ["forest", 0.125]])
    shown = capsys.readouterr().out
    assert "nan" not in shown
    assert "0.125 │" in shown
    assert "- │" in shown


def test_counts_have_all_their_digits(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["params@onnx"], [[73_306.0], [73_306.5], [93.0], [math.inf], [math.nan]])
    printed = capsys.readouterr().out.splitlines()
    assert [line.strip("│ ") for line in printed[3:-1]] == ["73,306", "7.331e+04", "93", "inf", "-"]


def test_characters_that_stdout_cannot_write_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="cp1252"))
    escape_other_characters()
    print_table(["space", "Kendall τ"], [["größe", 0.5]])
    print_table(["architecture", "τ"], [[LONG * 2, 0.25]])
    say("τ")
    _, box, _, row, _, *stacked = written.getvalue().decode("cp1252").splitlines()
    assert (box, row) == ("| space | Kendall \\u03c4 |", "| größe |            0.5 |")
    assert stacked == ["architecture", "\\u03c4", "------", LONG * 2, "  0.25", "\\u03c4"]


def test_help_is_printed_in_any_encoding() -> None:
    command = [sys.executable, "-m", "nasrlm", "search", "--help"]
    found = subprocess.run(command, env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, check=False)
    assert (found.returncode, found.stderr) == (0, b"")
    assert b"\\u2026" in found.stdout
