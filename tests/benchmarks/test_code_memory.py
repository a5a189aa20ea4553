"""Peak memory is measured for real, once for each program, and learned."""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import code_memory
from benchmarks.code_memory import OBJECTIVE, Config, learn, measure
from benchmarks.programs import NAMES, STATEMENTS, Statement, draw_program, rename
from studies.tables.files import read_table

LARGE, SMALL = "values = b'x' * 40_000_000\n", "values = range(40_000_000)\n"


def test_a_peak_is_what_the_program_itself_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [LARGE, SMALL, f"def f():\n    {LARGE}\nf()\n{SMALL}"]
    monkeypatch.setattr(code_memory, "_draw", lambda config: programs)
    held = bytearray(10**8)  # of ours, which must not count
    large, small, local = read_table(measure(Config(tmp_path, 3), progress=False))[OBJECTIVE].tolist()
    del held
    assert small < 30e6
    assert 35e6 < large - small < 50e6
    assert abs(local - large) < 5e6


def test_a_program_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_memory, "_draw", lambda config: [SMALL, "print(1 / 0)\n"])
    with pytest.raises(RuntimeError, match=r"expected it to end well, got status 1:\nprint\(1 / 0\)"):
        measure(Config(tmp_path, 2), progress=False)


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    config = Config(tmp_path, programs=6)
    path = measure(config, progress=False)
    whole = path.read_text()
    path.write_text("".join(whole.splitlines(keepends=True)[:4]) + '{"text": "va')
    measure(config, progress=False)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(x["text"], x["split"]) for x in lines] == [
        (x["text"], x["split"]) for x in map(json.loads, whole.splitlines())
    ]
    assert path.read_text().splitlines()[:4] == whole.splitlines()[:4]
    with pytest.raises(ValueError, match=r"programs\.jsonl: expected the first programs of seed 1, got others"):
        measure(replace(config, seed=1), progress=False)


@pytest.mark.slow
def test_the_whole_example(tmp_path: Path) -> None:
    config = Config(tmp_path, programs=60, epochs=1)
    taus = learn(config, measure(config, progress=False))
    assert taus["programs in test"] > 1
    assert all(-1 <= taus[name] <= 1 for name in ("largest number", "length of source"))
    assert not abs(taus["model"]) > 1  # NaN if so little training gives one answer to all


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.expression)
def test_statements_are_python(statement: Statement) -> None:
    eval(statement.expression.format(n=10))


def test_names_alone_are_changed() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        program = draw_program(rng)
        renamed = rename(program, rng)
        tree, other = (ast.dump(ast.parse(text), include_attributes=False) for text in (program, renamed))
        mask = rf"(?<![a-zA-Z])({'|'.join(NAMES)})(?![a-zA-Z])"
        assert re.sub(mask, "_", tree) == re.sub(mask, "_", other)
        compile(renamed, "program", "exec")
