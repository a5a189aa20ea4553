"""The ablation runs every variant once, keeps what is done, and tells other settings apart."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import benchmarks.ablation
from benchmarks.ablation import COSTS, VARIANTS, Ablation, Config
from benchmarks.peer import InstalledPeer
from converters.tables.counts import COUNTS
from nasrlm.files import write_table
from nasrlm.model.config import ModelConfig
from tests.benchmarks.stand_in import STAND_IN, write_stand_in
from tests.nasrlm.scenes import architecture_table

SIZES = ModelConfig(width=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, hidden=32, max_text_tokens=4096)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    costs = {cost: np.linspace(1, 9, 32) for cost in COSTS}
    write_table(architecture_table(32).assign(**costs), tmp_path / "cells.parquet")
    return Config(tmp_path / "cells.parquet", tmp_path / "out", rows=8, seeds=(0,), steps=2, model=SIZES)


@pytest.mark.slow
def test_every_variant_is_a_row_of_the_table(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    ablation = Ablation(config)
    ablation.run(progress=False)
    lines = ablation.table()
    ours = [name for name, variant in VARIANTS.items() if not variant.peer]
    assert [line.split("|")[1].strip() for line in lines[2:]] == ours
    assert len((config.out / "results.jsonl").read_text().splitlines()) == len(ours)
    monkeypatch.setattr(benchmarks.ablation, "train", lambda *_, **__: pytest.fail("trained again"))
    again = Ablation(config)
    again.run(progress=False)
    assert again.table() == lines
    with pytest.raises(ValueError, match=r"results\.jsonl: expected results of .*, got others\. Choose another --out"):
        Ablation(replace(config, rows=4))


def test_a_cell_whose_predictions_are_alike_is_there_and_tells_no_tau(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ablation, "_measure", lambda *_: math.nan)
    first = Ablation(replace(config, only=("base",)))
    first.run(progress=False)
    monkeypatch.setattr(Ablation, "_measure", lambda *_: pytest.fail("measured again"))
    again = Ablation(replace(config, only=("base",)))
    again.run(progress=False)
    assert (again.tau("base", 0), len(again.table())) == (first.tau("base", 0), len(first.table())) == (None, 2)


def test_a_peer_learns_from_the_same_rows(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_stand_in(tmp_path, monkeypatch, STAND_IN)
    named = replace(config, only=("regress-lm", "regress-lm-our-tokens"))
    without = Ablation(named)
    without.run(progress=False)
    assert without.results == []
    ablation = Ablation(replace(named, peer=InstalledPeer(sys.executable, "one")))
    ablation.run(progress=False)
    assert [result["variant"] for result in ablation.results] == ["regress-lm", "regress-lm-our-tokens"]
    assert all(-1 <= result["kendall_tau"] <= 1 for result in ablation.results)
    assert len(Ablation(named).table()) == 4  # kept, whoever asks
    with pytest.raises(
        ValueError, match=r"expected results of .*'peer': 'another'.*, got others\. Choose another --out"
    ):
        Ablation(replace(named, peer=InstalledPeer(sys.executable, "another")))


def test_regress_lm_without_a_peer_is_told(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        benchmarks.ablation.main([str(config.table), "--out", str(config.out), "--only", "base", "regress-lm"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "--only regress-lm: expected --peer with a checkout of regress-lm, got none.\n"
    assert not config.out.exists()


def test_only_some_variants(config: Config) -> None:
    ablation = Ablation(replace(config, only=("mse-head",)))
    ablation.run(progress=False)
    assert [result["variant"] for result in ablation.results] == ["mse-head"]
    assert len(ablation.table()) == 3


def test_minutes_become_steps_that_are_kept(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        benchmarks.ablation, "_seconds_per_step", lambda _, examples: 0.02 if len(examples.objectives) == 1 else 0.06
    )
    timed = replace(config, steps=None, minutes_per_run=0.001, only=("base", "pretrained"))
    Ablation(timed).run(progress=False)
    steps = {path.name: json.loads(path.read_text()) for path in config.out.glob("steps-*")}
    assert steps == {"steps-canonical-digits-1.json": 3, f"steps-canonical-digits-{len(COUNTS)}.json": 1}
    assert json.loads((config.out / "base-seed0" / "log.jsonl").read_text().splitlines()[-1])["step"] == 3
