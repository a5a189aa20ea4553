"""The simulation counts what it says."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.simulation import ARMS, main, pruned_front, simulate, true_front
from spaces import get_space
from studies.evaluators import TableEvaluator
from studies.guide import Guide
from studies.pareto import pareto_mask
from tests.studies.scenes import OBJECTIVES, SPACE, ToyPredictor, toy_config, toy_table

TABLE = TableEvaluator(SPACE, toy_table(), objectives=OBJECTIVES[:2])


def test_every_arm_is_simulated() -> None:
    small = Guide(generations=2, samples=4)
    arms = {"gate": small, "no gate": replace(small, gate=False), "all": replace(small, exhaustive=True), "alone": None}
    searches = simulate(
        toy_config(population_size=8),
        TABLE,
        ToyPredictor(sigma=0.3),
        to_text=SPACE.format,
        counts=(5, 15),
        seeds=[1],
        arms=arms,
    )
    outcomes = list(searches)
    assert [(outcome.arm, outcome.seed) for outcome in outcomes] == [(arm, 1) for arm in arms]
    for outcome in outcomes:
        assert 0.5 < outcome.ratios[5] <= outcome.ratios[15] <= 1
        assert (outcome.pruned > 0) == (outcome.arm in ("gate", "all"))
        assert outcome.looked_at == pytest.approx(15 / (1 - outcome.pruned))
        assert outcome.pruned_first == 0  # the fastest of the toys is the least accurate
    assert outcomes[2].looked_at > outcomes[0].looked_at
    assert set(ARMS.values()) >= {None, Guide(), Guide(gate=False)}


def test_the_true_front_is_that_of_the_table() -> None:
    front = true_front(toy_config(), TABLE)
    mask = pareto_mask(TABLE.labels * [-1, 1])
    assert set(front) == {key for key, flag in zip(TABLE.keys, mask, strict=True) if flag}
    assert {SPACE.architecture_key(architecture): architecture for architecture in front.values()} == front
    feasible = true_front(toy_config(constraints=["latency_ms@toy<=6"]), TABLE)
    assert 0 < len(feasible) < len(front)


def test_calibrated_predictions_prune_few_of_the_true_front() -> None:
    found = pruned_front(toy_config(), TABLE, ToyPredictor(sigma=4.0), SPACE.format, (0.001, 0.3))
    shares = found["pruned_by_risk"]
    assert shares[0.001] == 0
    assert shares[0.001] < shares[0.3] <= 0.6


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space, rng = get_space("nasbench_macro"), np.random.default_rng(0)
    notations = [space.format(space.sample(rng)) for _ in range(12)]
    labels = {"accuracy@cifar10": 90 + rng.random(12), "macs": 1e8 * (1 + rng.random(12))}
    pd.DataFrame({"architecture": notations, **labels}).to_csv(tmp_path / "labels.csv", index=False)
    words = ["--space", space.name, "--objectives", "max:accuracy@cifar10,min:macs", "--counts", "2", "3"]
    main(["--table", str(tmp_path / "labels.csv"), *words, "--seeds", "1", "2", "--arms", "engine alone"])
    *searches, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert [(search["arm"], search["seed"], len(search["ratios"])) for search in searches] == [
        ("engine alone", 1, 2),
        ("engine alone", 2, 2),
    ]
    assert last["config"]["counts"] == [2, 3]
    assert {"commit", "machine", "versions"} <= last.keys()


def test_an_engine_alone_asks_for_networks_of_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space, rng = get_space("fbnet"), np.random.default_rng(0)
    notations = [space.format(space.sample(rng)) for _ in range(12)]
    labels = {"latency_ms@raspi4": 1 + rng.random(12), "latency_ms@fpga": 1 + rng.random(12)}
    pd.DataFrame({"architecture": notations, **labels}).to_csv(tmp_path / "labels.csv", index=False)
    words = ["--space", space.name, "--objectives", "min:latency_ms@raspi4,min:latency_ms@fpga", "--counts", "2"]
    main(["--table", str(tmp_path / "labels.csv"), *words, "--seeds", "1", "--arms", "engine alone"])
    searched = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (searched["looked_at"], searched["pruned"]) == (2, 0)
    assert searched["ratios"]["2"] > 0
