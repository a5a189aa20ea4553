"""Every method spends its budget on different architectures; curves and results are what they say."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import search, search_methods
from benchmarks.search import Config, run
from benchmarks.search_curves import curve_of, reached, table_of
from benchmarks.search_methods import ALONE, Method, SearchTask, gated, guided
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.objective import to_losses
from nasrlm.predictor import Predictor
from spaces import get_space
from studies.config import SearchConfig
from studies.evaluators import TableEvaluator
from studies.guide import Guide
from studies.pareto import hypervolume_ratio
from studies.surrogates.process_adapter import ProcessAdapter
from tests.nasrlm.scenes import network_checkpoint
from tests.studies.scenes import OBJECTIVES, SPACE, Row, ToyPredictor, keys_of, toy_config, toy_table

QUICK = ("random", "regularised evolution")
SLOW = ("optuna gp", "ensemble")


def toy_task(budget: int, twins: str = "once") -> SearchTask[Row]:
    config = toy_config(trials=budget, twins=twins)
    table = TableEvaluator(SPACE, toy_table(0.5), objectives=OBJECTIVES[:2])
    return SearchTask(config, table)


def asked_of(task: SearchTask[Row]) -> list[str]:
    """The keys of the architectures that will be evaluated, in order."""
    asked: list[str] = []
    evaluate = task.table.evaluate
    task.table.evaluate = lambda rows: (asked.extend(map(task.space.architecture_key, rows)), evaluate(rows))[1]  # type: ignore[method-assign, func-returns-value]
    return asked


@pytest.mark.parametrize("twins", ["once", "apart"])
@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in ALONE]
)
def test_the_budget_is_spent_on_different_rows_of_the_table(method: str, twins: str) -> None:
    task = toy_task(30, twins)
    asked = asked_of(task)
    losses = ALONE[method](task, 1)
    assert losses.shape == (30, 2)
    assert not np.isnan(losses).any()
    assert len(asked) == len(set(asked)) == 30
    np.testing.assert_array_equal(losses, ALONE[method](task, 1))


def hidden(task: SearchTask[Row], known: Sequence[str]) -> SearchTask[Row]:
    """The task in a table that has nonsense in place of the results of all architectures but these, given by key."""
    frame = toy_table(0.5)
    others = np.flatnonzero(~np.isin(keys_of(frame["architecture"].tolist()), known))
    for name in OBJECTIVES:
        values = frame[name].to_numpy(copy=True)
        values[others] = 0.5 * np.random.default_rng(0).permutation(values[others])
        frame[name] = values
    return replace(task, table=TableEvaluator(SPACE, frame, objectives=OBJECTIVES[:2]))


def learning(method_of: Callable[..., Method]) -> Method:
    """A method that learns both objectives from results, of a model that knows another one."""
    predictor = ToyPredictor(objectives=OBJECTIVES[2:])
    adapt = ProcessAdapter(SPACE, predictor, OBJECTIVES[:2], to_text=SPACE.format, pool_size=20)
    return method_of(predictor, SPACE.format, adapt)


@pytest.mark.parametrize(
    "method",
    [
        *[pytest.param(ALONE[name], id=name, marks=[pytest.mark.slow] if name in SLOW else []) for name in ALONE],
        pytest.param(learning(partial(guided, guide=Guide(generations=2, samples=4))), id="guided"),
        pytest.param(learning(partial(guided, guide=Guide(exhaustive=True, samples=4))), id="guided, all"),
        pytest.param(learning(gated), id="gated"),
    ],
)
def test_results_that_were_not_asked_for_decide_nothing(method: Method) -> None:
    task = toy_task(15)
    asked = asked_of(task)
    losses = method(task, 1)
    np.testing.assert_array_equal(losses, method(hidden(task, asked), 1))


@pytest.mark.slow
def test_a_small_table_is_searched_to_its_end() -> None:
    task = toy_task(10**3)
    for method in (*QUICK, "ensemble"):
        assert len(ALONE[method](task, 0)) == len(task.known)


@pytest.mark.parametrize("method_of", [partial(guided, guide=Guide(generations=2, samples=4)), gated])
def test_the_model_guides(method_of: Callable[..., Method]) -> None:
    task, predictor = toy_task(15), ToyPredictor(sigma=0.3)
    adapt = ProcessAdapter(SPACE, predictor, task.config.objectives, to_text=SPACE.format, pool_size=20)
    method = method_of(predictor, SPACE.format, adapt)
    losses = method(task, 0)
    assert len(np.unique(losses, axis=0)) > 10
    whole = to_losses(task.config.goals, task.table.row_labels)
    random = np.mean([curve_of(ALONE["random"](task, seed), whole)[-1] for seed in range(5)])
    assert len(losses) == 15
    assert curve_of(losses, whole)[-1] > random


def test_a_gate_needs_a_table_of_most_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_methods, "MOST_TRIALS", 1)
    task, predictor = toy_task(15), ToyPredictor(sigma=0.3)
    task = replace(task, table=TableEvaluator(SPACE, toy_table(0.5)[:20], objectives=OBJECTIVES[:2]))
    adapt = ProcessAdapter(SPACE, predictor, task.config.objectives, to_text=SPACE.format, pool_size=20)
    with pytest.raises(
        ValueError, match=r"expected a table with most architectures of toy, got \d+, among which are \d"
    ):
        gated(predictor, SPACE.format, adapt)(task, 0)


def test_the_released_model_looks_at_every_row_of_a_table(tmp_path: Path) -> None:
    space = get_space("nasbench_macro")
    rng = np.random.default_rng(0)
    notations = list(dict.fromkeys(space.format(space.sample(rng)) for _ in range(40)))
    labels = {"accuracy@cifar10": 90 + rng.random(len(notations)), "macs": 1e8 * (1 + rng.random(len(notations)))}
    table = pd.DataFrame({"architecture": notations, "split": "train", **labels})
    table.to_parquet(tmp_path / f"{space.name}.parquet")
    methods = ("random", "rlm")
    config = Config(tmp_path, tmp_path / "out", (space.name,), methods, {"rlm": ""}, seeds=1, budget=15, counts=(15,))
    curves = run(config)
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    assert [json.loads(line).get("checkpoint") for line in lines] == [None, Checkpoint.from_pretrained().sha256]
    assert {method: len(curve) for (_, method), (curve,) in curves.items()} == dict.fromkeys(methods, 15)


def test_a_checkpoint_may_be_in_the_gate_of_a_study() -> None:
    config, task = Config(Path(), Path(), methods=("rlm gate",), checkpoints={"rlm": ""}), toy_task(5)
    predictor = Predictor(network_checkpoint())
    assert list(search._methods(config, task, {"rlm": predictor})) == ["rlm gate"]
    with pytest.raises(ValueError, match=r"expected methods of .*, rlm, rlm gate, rlm gate, graphs, got gate"):
        search._methods(replace(config, methods=("gate",)), task, {"rlm": predictor})


def test_graphs_of_a_large_space_are_refused_before_they_are_read() -> None:
    space = get_space("fbnet")
    config = Config(Path(), Path(), methods=("rlm gate, graphs",), checkpoints={"rlm": ""})
    table = pd.DataFrame({"architecture": [space.format(space.sample(np.random.default_rng(0)))], "latency_ms@a": 1.0})
    search_config = SearchConfig("fbnet", ["min:latency_ms@a"], trials=1)  # type: ignore[arg-type]
    task = SearchTask(search_config, TableEvaluator(space, table, objectives=["latency_ms@a"]))
    with pytest.raises(ValueError, match=r"graphs: expected a space of at most 20,000 architectures, got fbnet"):
        search._methods(config, task, {"rlm": Predictor(network_checkpoint())})


def test_curves_are_hypervolume_ratios() -> None:
    rng = np.random.default_rng(0)
    whole = rng.random((50, 3))
    found = whole[rng.permutation(50)[:20]]
    expected = [hypervolume_ratio(found[: count + 1], whole, whole.max(axis=0)) for count in range(20)]
    curve = curve_of(found, whole)
    np.testing.assert_allclose(curve, expected, atol=1e-6)
    assert reached(curve, curve[7]) == 1 + expected.index(next(x for x in expected if x >= curve[7] - 1e-6))
    assert reached(curve, 2.0) == np.inf
    table = table_of({("toy", "random"): [curve, curve]}, (5, 20))
    assert [str(column.header) for column in table.columns][:5] == ["space", "method", "seeds", "5", "20"]


def test_rows_of_another_checkpoint_are_left_out(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"method": "random"}, {"method": "rlm", "checkpoint": "one"}, {"method": "rlm"}]
    path = tmp_path / "results.jsonl"
    rows = [{"space": "toy", **row} for row in rows]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for digest, left in (("one", [0, 1]), ("two", [0])):
        assert list(search._read(path, {"toy": {}}, {"rlm": digest})) == [rows[index] for index in left]
    assert list(search._read(path, {"another": {}}, {})) == []


def test_a_broken_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "GOALS", {"toy": ("max:accuracy@toy", "min:latency_ms@toy")})
    monkeypatch.setattr(search, "get_space", lambda name: SPACE)
    toy_table().to_parquet(tmp_path / "toy.parquet")
    config = Config(tmp_path, tmp_path / "out", spaces=("toy",), methods=QUICK, seeds=2, budget=12, counts=(12,))
    whole = run(config)
    results = tmp_path / "out" / "results.jsonl"
    lines = results.read_text().splitlines(keepends=True)
    assert [(row["method"], row["seed"]) for row in map(json.loads, lines)] == [(m, s) for s in range(2) for m in QUICK]
    results.write_text("".join(lines[:2]) + lines[2][:20])
    assert run(config) == whole
    again = results.read_text().splitlines()
    assert [json.loads(line)["curve"] for line in again] == [json.loads(line)["curve"] for line in lines]
    assert (tmp_path / "out" / "search.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match=r"results\.jsonl: expected budget 5, got 12\. Choose another --out\."):
        run(Config(tmp_path, tmp_path / "out", spaces=("toy",), methods=QUICK, budget=5))
    with pytest.raises(ValueError, match=r"expected methods of random, .*, got luck"):
        run(Config(tmp_path, tmp_path / "new", spaces=("toy",), methods=("luck",)))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--rlm", "folder"], "--rlm: expected NAME=FOLDER, the name of no other method, got folder."),
        (["--rlm", "a=one", "a=two"], "--rlm: expected NAME=FOLDER, the name of no other method, got a=two."),
        (["--rlm", "a gate=one", "a=two"], "--rlm: expected NAME=FOLDER, the name of no other method, got a=two."),
        (["--rlm", "random=one"], "--rlm: expected NAME=FOLDER, the name of no other method, got random=one."),
        (["--seeds", "0"], "--seeds: expected 1 or more, got 0."),
    ],
)
def test_options_that_cannot_be_are_told(
    words: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(search, "run", lambda *_, **__: pytest.fail("searched"))
    with pytest.raises(SystemExit, match="2"):
        search.main(words)
    assert capsys.readouterr().err == f"{told}\n"


def test_results_of_other_goals_or_another_table_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "GOALS", {"toy": ("max:accuracy@toy", "min:latency_ms@toy")})
    monkeypatch.setattr(search, "get_space", lambda name: SPACE)
    config = Config(tmp_path, tmp_path / "out", spaces=("toy",), methods=("random",), seeds=1, budget=5, counts=(5,))
    with pytest.raises(ValueError, match=r"toy\.parquet: expected a table, got no such file\."):
        run(config)
    toy_table().to_parquet(tmp_path / "toy.parquet")
    run(config)
    with pytest.raises(ValueError, match=r"expected goals \['max:accuracy@toy'\], got \['max:accuracy@toy', 'min:"):
        run(replace(config, goals=("max:accuracy@toy",)))
    toy_table()[::-1].to_parquet(tmp_path / "toy.parquet")
    with pytest.raises(ValueError, match=r"results\.jsonl: expected table [0-9a-f]{64}, got [0-9a-f]{64}\."):
        run(config)
