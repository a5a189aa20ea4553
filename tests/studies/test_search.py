"""What every search promises, whatever its engine and sampler."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
import torch

from nasrlm.prediction import Prediction
from spaces import ArchitectureError, get_space
from studies import problem
from studies.config import SAMPLERS
from studies.evaluators import FunctionEvaluator, TableEvaluator
from studies.history import History
from studies.pareto import hypervolume, hypervolume_ratio, pareto_mask
from studies.problem import FUTILE_EVALUATIONS
from studies.search import search
from tests.studies.scenes import (
    ENGINES,
    OBJECTIVES,
    SPACE,
    HalfFailing,
    Row,
    ToyEvaluator,
    ToyResults,
    ToySpace,
    history_of,
    toy_config,
    toy_table,
)

pytestmark = pytest.mark.usefixtures("without_figures")

NUM_KEYS = 120
NSGA2 = [pytest.param({"engine": engine}, id=engine) for engine in SAMPLERS]


@pytest.mark.parametrize("engine", ENGINES)
def test_trials_are_distinct_and_in_batches(engine: dict[str, str], tmp_path: Path) -> None:
    evaluator = ToyEvaluator()
    result = search(toy_config(**engine, trials=57), SPACE, evaluator, tmp_path)
    assert [len(batch) for batch in evaluator.batches] == [10] * 5 + [7]
    assert len(set(evaluator.keys)) == result.evaluations == 57
    assert result.pruned == 0
    assert result.stopped is None
    assert history_of(tmp_path)["key"].tolist() == evaluator.keys


@pytest.mark.parametrize("engine", ENGINES)
def test_known_architectures_are_evaluated_first(engine: dict[str, str], tmp_path: Path) -> None:
    known = ["4-3-2-1", "2-3-4-1", "0-1-2-3", "1-1-0-0"]  # the first two are twins
    config = toy_config(**engine, trials=20, warm_start=known)
    search(config, SPACE, ToyEvaluator(), tmp_path)
    keys = [SPACE.architecture_key(SPACE.parse(notation)) for notation in dict.fromkeys(known) if notation != known[1]]
    assert history_of(tmp_path)["key"].tolist()[:3] == keys
    with pytest.raises(ArchitectureError, match="toy: expected digits, got 'nonsense'"):
        search(toy_config(warm_start=["nonsense"]), SPACE, ToyEvaluator(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("engine", ENGINES)
def test_same_seed_same_history(engine: dict[str, str], tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        search(toy_config(**engine, seed=seed, trials=40), SPACE, ToyEvaluator(), tmp_path / name)
    first, second, other = (history_of(tmp_path / name) for name in "abc")
    pd.testing.assert_frame_equal(first, second)
    assert first["key"].tolist() != other["key"].tolist()


@pytest.mark.parametrize("breaks_at", [0, 1, 3, 5])
@pytest.mark.parametrize("engine", ENGINES)
def test_killed_and_resumed_equals_uninterrupted(engine: dict[str, str], breaks_at: int, tmp_path: Path) -> None:
    config = toy_config(**engine, constraints=["energy_mj@toy<=15"])
    whole = search(config, SPACE, ToyEvaluator(), tmp_path / "whole")

    broken, rest = ToyEvaluator(breaks_at=breaks_at), ToyEvaluator()
    with pytest.raises(KeyboardInterrupt):
        search(config, SPACE, broken, tmp_path / "killed")
    assert json.loads((tmp_path / "killed/study.json").read_text())["status"] == "running"
    resumed = search(config, SPACE, rest, tmp_path / "killed", resume=True)

    assert len(set(broken.keys + rest.keys)) == len(broken.keys + rest.keys) == 60
    assert len(broken.batches) == breaks_at
    pd.testing.assert_frame_equal(history_of(tmp_path / "killed"), history_of(tmp_path / "whole"))
    assert resumed.front == whole.front
    assert resumed.hypervolume == whole.hypervolume
    again = search(config, SPACE, ToyEvaluator(breaks_at=0), tmp_path / "killed", resume=True)
    assert again.seconds > resumed.seconds > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_study_is_given_more_trials(engine: dict[str, str], tmp_path: Path) -> None:
    config = toy_config(**engine, trials=13, constraints=["energy_mj@toy<=15"])
    more, most = replace(config, trials=25), replace(config, trials=30)
    search(config, SPACE, ToyEvaluator(), tmp_path / "whole")
    first, evaluator = history_of(tmp_path / "whole"), ToyEvaluator()
    shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    result = search(more, SPACE, evaluator, tmp_path / "whole", resume=True)
    assert (result.evaluations, [len(batch) for batch in evaluator.batches]) == (25, [10, 2])
    pd.testing.assert_frame_equal(history_of(tmp_path / "whole")[:13], first)
    assert json.loads((tmp_path / "whole/study.json").read_text())["config"]["trials"] == 25
    assert search(most, SPACE, ToyEvaluator(), tmp_path / "whole", resume=True).evaluations == 30

    with pytest.raises(KeyboardInterrupt):
        search(more, SPACE, ToyEvaluator(breaks_at=1), tmp_path / "killed", resume=True)
    study = json.loads((tmp_path / "killed/study.json").read_text())
    assert (study["status"], study["config"]["trials"]) == ("running", 25)
    rest = ToyEvaluator()
    search(most, SPACE, rest, tmp_path / "killed", resume=True)
    assert [len(batch) for batch in rest.batches] == [2, 5]
    pd.testing.assert_frame_equal(history_of(tmp_path / "killed"), history_of(tmp_path / "whole"))


def test_a_study_that_was_killed_is_given_more_trials(tmp_path: Path) -> None:
    config = toy_config(engine="pymoo", trials=25)
    first, rest = ToyResults(breaks_at=22), ToyResults()  # in the middle of a smaller, last population
    with pytest.raises(KeyboardInterrupt):
        search(config, SPACE, first, tmp_path)
    search(replace(config, trials=40), SPACE, rest, tmp_path, resume=True)
    assert history_of(tmp_path)["architecture"].tolist() == first.asked + rest.asked
    assert len(first.asked + rest.asked) == 40


def test_a_history_some_batches_behind_gives_the_same_end(tmp_path: Path) -> None:
    """As after kill -9 between two throttled writes."""
    config = toy_config()
    search(config, SPACE, ToyEvaluator(), tmp_path)
    whole = history_of(tmp_path)
    behind = History.load(tmp_path / "history.parquet", config.objectives)
    for column in (behind.architectures, behind.keys, behind.genotypes, behind.values, behind.feasible):
        del column[20:]
    behind.save(tmp_path / "history.parquet")
    evaluator = ToyEvaluator(config.objectives)
    search(config, SPACE, evaluator, tmp_path, resume=True)
    assert evaluator.keys == whole["key"].tolist()[20:]
    pd.testing.assert_frame_equal(history_of(tmp_path), whole)


def test_an_interrupted_replay_keeps_what_was_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = toy_config()
    with pytest.raises(KeyboardInterrupt):
        search(config, SPACE, ToyEvaluator(breaks_at=4), tmp_path)
    recorded = history_of(tmp_path)
    monkeypatch.setattr(ToySpace, "format", lambda space, architecture: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        search(config, SPACE, ToyEvaluator(), tmp_path, resume=True)
    pd.testing.assert_frame_equal(history_of(tmp_path), recorded)


@pytest.mark.parametrize("engine", SAMPLERS)
@pytest.mark.parametrize("killed_at", [3, 14])
def test_no_answer_of_the_users_function_is_lost(engine: str, killed_at: int, tmp_path: Path) -> None:
    config = toy_config(engine=engine, trials=25, constraints=["latency_ms@toy<=8"])
    first, rest, whole = ToyResults(breaks_at=killed_at), ToyResults(), ToyResults()
    with pytest.raises(KeyboardInterrupt):
        search(config, SPACE, first, tmp_path / "out")
    assert len(history_of(tmp_path / "out")) == killed_at
    search(config, SPACE, rest, tmp_path / "out", resume=True)
    search(config, SPACE, whole, tmp_path / "whole")
    assert first.asked + rest.asked == whole.asked
    pd.testing.assert_frame_equal(history_of(tmp_path / "out"), history_of(tmp_path / "whole"))


def test_answers_of_the_users_function_are_spent_also_where_they_are_incomplete(tmp_path: Path) -> None:
    evaluator = HalfFailing()
    result = search(toy_config(trials=20), SPACE, evaluator, tmp_path)
    assert len(evaluator.asked) == 20
    assert (result.evaluations, result.failed, result.pruned) == (10, 10, 0)


def test_a_warm_start_that_optuna_cannot_propose_is_named(tmp_path: Path) -> None:
    space = get_space("darts")
    assert space.sampled_sizes != space.gene_sizes
    notation = space.format(space.decode([size - 1 for size in space.gene_sizes]))
    evaluator = FunctionEvaluator(space, lambda notation: dict.fromkeys(OBJECTIVES, 1.0), objectives=OBJECTIVES[:2])
    config = toy_config(space=space.name, trials=4, warm_start=[notation])
    with pytest.raises(
        ValueError, match=r"expected a warm start of architectures that darts can draw, got .* use the engine"
    ):
        search(config, space, evaluator, tmp_path / "optuna")
    result = search(replace(config, engine="pymoo"), space, evaluator, tmp_path / "pymoo")
    assert result.evaluations == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_the_front_is_the_best_of_the_feasible(engine: dict[str, str], tmp_path: Path) -> None:
    config = toy_config(**engine, constraints=["latency_ms@toy<=9", "energy_mj@toy<=14"])
    result = search(config, SPACE, ToyEvaluator(), tmp_path)
    history = history_of(tmp_path)
    feasible = (history["latency_ms@toy"] <= 9) & (history["energy_mj@toy"] <= 14)
    assert 0 < feasible.sum() < 60
    assert history["feasible"].tolist() == feasible.tolist()
    losses = history[["accuracy@toy", "latency_ms@toy"]].to_numpy() * [-1, 1]
    candidates = losses[feasible]
    expected = candidates[pareto_mask(candidates)]
    found = np.array([[-row["accuracy@toy"]["median"], row["latency_ms@toy"]["median"]] for row in result.front])
    assert sorted(found.tolist()) == sorted(expected.tolist())
    assert found[:, 0].tolist() == sorted(found[:, 0])
    assert result.hypervolume == pytest.approx(hypervolume(expected, losses.max(axis=0)))
    assert result.reference_point == tuple(losses.max(axis=0) * [-1, 1])
    assert all(row["energy_mj@toy"]["low"] < row["energy_mj@toy"]["high"] for row in result.front)


@pytest.mark.parametrize("engine", NSGA2)
def test_constraints_steer_the_search(engine: dict[str, str], tmp_path: Path) -> None:
    """The constraint pulls away from the goals, so only an engine that knows it proposes what meets it."""
    counts = {}
    for constraints in ([], ["energy_mj@toy>=15"]):
        out = tmp_path / str(len(constraints))
        goals = ["min:energy_mj@toy", "min:latency_ms@toy"]
        search(toy_config(**engine, goals=goals, constraints=constraints, trials=50), SPACE, ToyEvaluator(), out)
        counts[len(constraints)] = (history_of(out)["energy_mj@toy"] >= 15).sum()
    assert counts[1] > counts[0] + 5


@pytest.mark.parametrize("engine", NSGA2)
def test_soft_constraints_are_preferred_to_be_met(engine: dict[str, str], tmp_path: Path) -> None:
    """They pull away from the goals; the front is of all architectures nonetheless."""
    counts = []
    for constraints in ([], ["soft:energy_mj@toy<=9"]):
        out = tmp_path / str(len(constraints))
        config = toy_config(**engine, constraints=[*constraints, "energy_mj@toy<=99"], trials=60)
        result = search(config, SPACE, ToyEvaluator(), out)
        history = history_of(out)
        assert history["feasible"].all()
        losses = history[["accuracy@toy", "latency_ms@toy"]].to_numpy() * [-1, 1]
        assert len(result.front) == pareto_mask(losses).sum()
        counts.append((history["energy_mj@toy"] <= 9).sum())
        table = pd.read_csv(out / "front.csv")
        for row in result.front:
            assert row.get("soft_met") == (row["energy_mj@toy"]["median"] <= 9 if constraints else None)
        assert table.get("soft_met", pd.Series()).tolist() == [r["soft_met"] for r in result.front if constraints]
    assert counts[1] > counts[0]


def test_nothing_feasible_is_an_empty_front(tmp_path: Path) -> None:
    result = search(toy_config(constraints=["latency_ms@toy<=0"]), SPACE, ToyEvaluator(), tmp_path)
    assert result.front == ()
    assert result.hypervolume == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_an_exhausted_space_ends_early_and_says_so(
    engine: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problem, "RANDOM_SAMPLES", 2)  # what these miss is looked for one by one
    evaluator = ToyEvaluator()
    result = search(toy_config(**engine, trials=500), SPACE, evaluator, tmp_path)
    assert sorted(evaluator.keys) == sorted({SPACE.architecture_key(row) for row in SPACE.enumerate()})
    assert result.evaluations == NUM_KEYS
    assert result.stopped == "the space is exhausted: no new architecture was found"


@pytest.mark.parametrize("engine", ENGINES)
def test_architectures_unknown_to_a_table_are_pruned(engine: dict[str, str], tmp_path: Path) -> None:
    table = TableEvaluator(SPACE, toy_table(share=0.2), objectives=OBJECTIVES[:2])
    assert len(table.keys) < NUM_KEYS
    result = search(toy_config(**engine, trials=500), SPACE, table, tmp_path, truth=table)
    assert (result.evaluations, result.failed, result.pruned) == (len(table.keys), NUM_KEYS - len(table.keys), 0)
    assert not history_of(tmp_path)["accuracy@toy"].isna()[history_of(tmp_path)["feasible"]].any()
    assert result.truth is not None
    assert result.truth.hypervolume_ratio == 1


def test_a_search_among_known_architectures_begins_with_no_other(tmp_path: Path) -> None:
    known = list(SPACE.enumerate())[:9]
    config = toy_config(warm_start=["4-3-2-1"])
    with pytest.raises(ValueError, match=r"warm start: expected .*, got 1 others, the first 4-3-2-1\."):
        search(config, SPACE, ToyEvaluator(), tmp_path / "out", known=known)
    assert not (tmp_path / "out").exists()


def test_an_evaluator_that_knows_nothing_ends_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FUTILE_EVALUATIONS > 100
    monkeypatch.setattr("studies.problem.FUTILE_EVALUATIONS", 40)
    table = TableEvaluator(SPACE, toy_table().iloc[:1].assign(**{"latency_ms@toy": np.nan}), objectives=OBJECTIVES)
    for engine in SAMPLERS:
        result = search(toy_config(engine=engine), SPACE, table, tmp_path / engine)
        assert result.stopped == "the evaluator had no result for the last 40 architectures"
        assert (result.evaluations, result.failed, result.pruned, result.front) == (0, 40, 0, ())


def test_truth_judges_the_front_it_knows(tmp_path: Path) -> None:
    config = toy_config(trials=30, constraints=["latency_ms@toy<=6"])
    frame = toy_table(share=0.8)
    frame.loc[:9, "accuracy@toy"] = np.nan
    truth = TableEvaluator(SPACE, frame, objectives=config.objectives)
    result = search(config, SPACE, ToyEvaluator(), tmp_path, truth=truth)

    known = {k: row for k, row in zip(truth.keys, truth.labels, strict=True) if not np.isnan(row).any()}
    rows = truth.row_labels[~np.isnan(truth.row_labels).any(axis=1)]
    table = rows * [-1, 1]
    history = history_of(tmp_path)
    evaluated = history[history["feasible"] & history["key"].isin(list(known))]
    found = np.array([known[key] for key in evaluated["key"]]) * [-1, 1]  # the evaluator is right, so any will do
    expected = hypervolume_ratio(found, table[table[:, 1] <= 6], table.max(axis=0))
    assert result.truth is not None
    assert result.truth.hypervolume_ratio == pytest.approx(expected)
    assert result.truth.left_out == len(truth.row_labels) - len(rows)
    front_keys = [SPACE.architecture_key(SPACE.parse(row["architecture"])) for row in result.front]
    assert result.truth.unknown == sum(key not in known for key in front_keys)
    assert result.to_dict()["hypervolume_ratio"] == result.truth.hypervolume_ratio


def test_files_tell_the_result(tmp_path: Path) -> None:
    config = toy_config(trials=20)
    result = search(config, SPACE, ToyEvaluator(), tmp_path)
    study = json.loads((tmp_path / "study.json").read_text())
    assert study["status"] == "finished"
    assert study["config"] == config.to_dict()
    assert study["hypervolume"] == result.hypervolume
    assert study["versions"]["optuna"]
    front = pd.read_csv(tmp_path / "front.csv")
    assert front["architecture"].tolist() == [row["architecture"] for row in result.front]
    assert front["accuracy@toy low"].tolist() == [row["accuracy@toy"]["low"] for row in result.front]
    told = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (told["evaluations"], told["unmet"]) == (20, [])  # empty lists too, so that scripts find every key
    assert sorted(path.name for path in tmp_path.iterdir()) == ["front.csv", "history.parquet", "study.json"]


def test_one_goal_and_many_goals(tmp_path: Path) -> None:
    accuracy, *costs = OBJECTIVES
    for count, goals in enumerate(([f"max:{accuracy}"], [f"max:{accuracy}", *[f"min:{x}" for x in costs]]), start=1):
        for engine in SAMPLERS:
            out = tmp_path / f"{engine}{count}"
            assert search(toy_config(goals=goals, engine=engine), SPACE, ToyEvaluator(), out).front


class OneAnswer(ToyEvaluator):
    """Knows the first architecture of each batch alone."""

    def evaluate(self, architectures: Sequence[Row]) -> Prediction:
        found = super().evaluate(architectures)
        found.values[1:] = np.nan
        return found


@pytest.mark.parametrize("sampler", ["nsga2", "nsga3"])
def test_one_answer_a_population_is_no_pair_of_parents(sampler: str, tmp_path: Path) -> None:
    result = search(toy_config(trials=6, sampler=sampler), SPACE, OneAnswer(), tmp_path)
    assert (result.evaluations, result.stopped) == (6, None)


def test_the_bar_counts_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search(toy_config(trials=10), SPACE, ToyEvaluator(), tmp_path, progress=True)
    captured = capsys.readouterr()
    assert "10/10" in captured.err
    assert captured.out == ""


def test_an_interval_is_remembered(tmp_path: Path) -> None:
    config = toy_config(trials=10)
    search(config, SPACE, ToyEvaluator(), tmp_path)
    history = History.load(tmp_path / "history.parquet", config.objectives)
    assert history.interval == 0.8
    evaluation = Prediction(("accuracy@toy",), (0.5,), np.zeros((1, 1, 1)))
    assert evaluation.interval is None


def test_gp_proposes_on_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    propose = optuna.samplers.GPSampler.sample_relative

    def watched(*arguments: object) -> dict[str, object]:
        seen.append(torch.get_num_threads())
        return propose(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(optuna.samplers.GPSampler, "sample_relative", watched)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        search(toy_config(sampler="gp", trials=6, population_size=5), SPACE, ToyEvaluator(), tmp_path)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}


def test_goals_that_look_for_the_worst_are_told(tmp_path: Path) -> None:
    config = toy_config(goals=["max:accuracy@toy", "max:latency_ms@toy"], trials=10)
    with pytest.warns(UserWarning, match=r"^max:latency_ms@toy: looks for the largest values; is that what") as told:
        search(config, SPACE, ToyEvaluator(), tmp_path)
    assert len(told) == 1
