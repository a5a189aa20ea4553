"""Searches with real evaluations: what is evaluated, what is pruned, and what a resumed one repeats."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from studies.config import TWINS, SearchConfig
from studies.evaluators import TableEvaluator
from studies.figures.plots import plot_study
from studies.folder import StudyError
from studies.guide import ACQUISITIONS, Guide
from studies.ledger import Ledger
from studies.loaded_study import load_study
from studies.proposal import begin
from studies.search import search
from studies.storage.workers import NOTHING_LEFT
from studies.surrogates.process_adapter import ProcessAdapter
from tests.studies.guided import guided_config, run
from tests.studies.scenes import (
    ENGINES,
    OBJECTIVES,
    SPACE,
    HalfFailing,
    ToyPredictor,
    ToyResults,
    ToySpace,
    history_of,
    keys_of,
    toy_config,
    toy_results,
    toy_table,
)

pytestmark = pytest.mark.usefixtures("without_figures")


@pytest.mark.parametrize("acquisition", ACQUISITIONS)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_budget_is_spent_on_distinct_architectures(
    engine: dict[str, str], acquisition: str, tmp_path: Path
) -> None:
    evaluator = ToyResults()
    result = run(guided_config(**engine, guide={"acquisition": acquisition}), tmp_path, evaluator)
    assert result.evaluations == len(evaluator.asked) == len(set(keys_of(evaluator.asked))) == 14
    assert result.stopped is None
    history = history_of(tmp_path)
    assert history["key"].is_unique
    evaluated = history[history["status"] == "evaluated"]
    assert evaluated["architecture"].tolist() == evaluator.asked
    assert evaluated.groupby("batch").size().tolist() == [4, 4, 4, 2]


def test_a_warm_start_that_the_table_lacks_is_refused(tmp_path: Path) -> None:
    table = TableEvaluator(SPACE, toy_table().iloc[:50], objectives=OBJECTIVES)
    known, *others = toy_table()["architecture"]
    lacking = next(x for x in others if SPACE.architecture_key(SPACE.parse(x)) not in table.keys)
    config = guided_config(warm_start=[known, lacking])
    with pytest.raises(ValueError, match=rf"warm start: expected .*, got 1 others, the first {lacking}\."):
        run(config, tmp_path / "out", table)
    assert not (tmp_path / "out").exists()


def test_seeds_beside_each_other_begin_with_other_architectures() -> None:
    def first(seed: int, batches: int) -> set[str]:
        ledger = Ledger(guided_config(seed=seed))
        for _ in range(batches):
            ledger.add(begin(SPACE, ToyResults(), ledger, count=6))
        return {entry.key for entry in ledger.entries}

    one, two = first(0, 2), first(1, 1)
    assert len(one & two) < 6


def test_the_history_tells_what_was_predicted_found_and_pruned(tmp_path: Path) -> None:
    config = guided_config(constraints=["energy_mj@toy<=15"])
    result = run(config, tmp_path)
    history = history_of(tmp_path)
    evaluated, pruned = (history[history["status"] == status] for status in ("evaluated", "pruned"))
    assert len(evaluated) + len(pruned) == len(history)
    assert result.pruned == len(pruned) > 0
    low, high = 0.1 / 3, 1 - 0.1 / 3  # shared by three objectives
    for name in config.objectives:
        assert evaluated[name].tolist() == [toy_results(notation)[name] for notation in evaluated["architecture"]]
        assert pruned[name].isna().all()
        predicted = ToyPredictor().predict(evaluated["architecture"].tolist(), [name], (low, 0.5, high)).values[:, 0]
        columns = [f"{name} predicted low", f"{name} predicted", f"{name} predicted high"]
        np.testing.assert_array_equal(evaluated[columns].to_numpy(), predicted)
    assert (evaluated["reason"] == "").all()
    assert set(pruned["stage"]) <= {1, 2}
    dominated = pruned["reason"].str.contains("dominated by")
    assert dominated.any()
    assert pruned["reason"][~dominated].str.contains("outside energy_mj@toy<=15").all()
    first = pruned[pruned["stage"] == 1]
    assert first["latency_ms@toy predicted"].isna().all()
    front = pd.read_csv(tmp_path / "front.csv")
    assert front["architecture"].tolist() == evaluated["architecture"].iloc[front["evaluation"] - 1].tolist()
    study = json.loads((tmp_path / "study.json").read_text())
    assert study["status"] == "finished"
    assert SearchConfig.from_dict(study["config"]) == config
    assert sorted(path.name for path in tmp_path.iterdir()) == ["front.csv", "history.parquet", "study.json"]


@pytest.mark.parametrize("engine", [ENGINES[0], ENGINES[5]])
def test_same_seed_same_history(engine: dict[str, str], tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(guided_config(**engine, seed=seed), tmp_path / name)
    first, second, other = (history_of(tmp_path / name) for name in "abc")
    pd.testing.assert_frame_equal(first, second)
    assert first["key"].tolist() != other["key"].tolist()


@pytest.mark.parametrize("storage", [None, "{}/killed.log"])
@pytest.mark.parametrize("breaks_at", [0, 1, 4, 10, 13])
@pytest.mark.parametrize("engine", [ENGINES[0], ENGINES[5]])
def test_killed_and_resumed_equals_uninterrupted(
    engine: dict[str, str], breaks_at: int, storage: str | None, tmp_path: Path
) -> None:
    config = guided_config(**engine)
    whole = ToyResults()
    finished = run(config, tmp_path / "whole", whole)
    broken, rest = ToyResults(breaks_at=breaks_at), ToyResults()
    options = {"storage": storage and storage.format(tmp_path)}
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path / "killed", broken, **options)
    resumed = run(config, tmp_path / "killed", rest, resume=True, **options)
    assert broken.asked + rest.asked == whole.asked
    pd.testing.assert_frame_equal(history_of(tmp_path / "killed"), history_of(tmp_path / "whole"))
    assert resumed.front == finished.front


def test_killed_while_proposing_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = guided_config()
    run(config, tmp_path / "whole")
    calls = []

    def sample(self: ToyPredictor, *arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, *arguments)

    original = ToyPredictor.sample
    monkeypatch.setattr(ToyPredictor, "sample", sample)
    first, rest = ToyResults(), ToyResults()
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path / "killed", first)
    run(config, tmp_path / "killed", rest, resume=True)
    assert (len(first.asked), len(rest.asked)) == (8, 6)
    pd.testing.assert_frame_equal(history_of(tmp_path / "killed"), history_of(tmp_path / "whole"))


def test_a_finished_search_has_nothing_left_to_do(tmp_path: Path) -> None:
    config = guided_config()
    run(config, tmp_path)
    before = history_of(tmp_path)
    evaluator = ToyResults()
    with pytest.raises(StudyError, match=r"expected a folder without a study.*Resume it"):
        run(config, tmp_path, evaluator)
    run(config, tmp_path, evaluator, resume=True)
    assert evaluator.asked == []
    pd.testing.assert_frame_equal(history_of(tmp_path), before)
    changed = replace(config, guide=Guide(batch_size=9))
    told = r"batch_size 9 \(recorded 4\), guide\.generations 10 \(recorded 3\), guide\.samples 32 \(recorded 8\)\. Resu"
    with pytest.raises(StudyError, match=rf"got guide\.{told}"):
        run(changed, tmp_path, evaluator, resume=True)
    with pytest.raises(StudyError, match=r"got guide None \(recorded \{'acquisition'"):
        search(replace(config, guide=None), SPACE, evaluator, tmp_path, resume=True)


@pytest.mark.parametrize("storage", [None, "{}/journal.log", "sqlite:///{}/study.db"])
def test_a_study_is_given_more_evaluations(storage: str | None, tmp_path: Path) -> None:
    first, rest = ToyResults(), ToyResults()
    options = {"storage": storage and storage.format(tmp_path)}
    run(guided_config(trials=8), tmp_path / "out", first, **options)
    assert run(guided_config(), tmp_path / "out", rest, resume=True, **options).evaluations == 14
    assert (len(first.asked), len(rest.asked)) == (8, 6)
    run(guided_config(), tmp_path / "whole")  # in batches of four as well
    pd.testing.assert_frame_equal(history_of(tmp_path / "out"), history_of(tmp_path / "whole"))
    with pytest.raises(StudyError, match="expected at least the 14 trials of the study, got 13"):
        run(guided_config(trials=13), tmp_path / "out", resume=True, **options)


def test_another_checkpoint_does_not_go_on_with_a_study(tmp_path: Path) -> None:
    config = guided_config(checkpoint_sha256="one")
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path, ToyResults(breaks_at=6))
    other = replace(config, checkpoint_sha256="two")
    with pytest.raises(
        StudyError, match=r"expected the checkpoint that the study was started with, one, got two\. Use"
    ):
        run(other, tmp_path, resume=True)
    with pytest.raises(StudyError, match="got seed 1"):  # another space has another checkpoint too
        run(replace(other, seed=1), tmp_path, resume=True)
    path = tmp_path / "study.json"
    older = json.loads(path.read_text())
    del older["config"]["checkpoint_sha256"]
    path.write_text(json.dumps(older))
    assert load_study(tmp_path).config.checkpoint_sha256 == ""
    assert run(other, tmp_path, resume=True).evaluations == 14


def test_a_table_is_asked_for_what_it_knows(tmp_path: Path) -> None:
    frame = toy_table(share=0.1)
    frame.loc[0, "latency_ms@toy"] = np.nan
    table = TableEvaluator(SPACE, frame, objectives=OBJECTIVES[:2])
    result = run(guided_config(trials=100, guide={"gate": False}), tmp_path, table)
    known = {SPACE.architecture_key(row) for row in table.known}
    assert result.evaluations == len(known) < 48
    assert result.stopped == NOTHING_LEFT
    assert set(history_of(tmp_path)["key"]) == known


def test_tables_go_beyond_what_a_search_draws(tmp_path: Path) -> None:
    class Narrow(ToySpace):
        sampled_sizes = (5, 5, 5, 2)  # type: ignore[assignment]

    space = Narrow()
    table = TableEvaluator(space, toy_table(), objectives=OBJECTIVES[:2])
    assert any(row.genes[-1] >= 2 for row in table.known)
    drawn = {space.architecture_key(row) for row in table.known if row.genes[-1] < 2}
    for name, guide in {"engine": {}, "exhaustive": {"exhaustive": True}}.items():
        config = guided_config(trials=len(table.known), guide={"gate": False, **guide})
        result = run(config, tmp_path / name, table, space=space)
        assert (result.evaluations, result.stopped) == (len(drawn), NOTHING_LEFT)
        assert set(history_of(tmp_path / name)["key"]) == drawn


def test_a_search_of_one_small_generation_spends_its_evaluations(tmp_path: Path) -> None:
    config = guided_config(trials=40, guide={"generations": 1}, population_size=8)
    assert run(config, tmp_path).evaluations == 40


def test_a_search_ends_when_the_gate_lets_nothing_through(tmp_path: Path) -> None:
    """With no uncertainty left every architecture off the front is pruned."""
    config = guided_config(trials=120, guide={"generations": 10})
    predictor = ToyPredictor(sigma=1e-9)
    result = run(config, tmp_path, predictor=predictor)
    assert result.evaluations < 40
    assert result.stopped is not None
    assert "nothing to evaluate" in result.stopped
    resumed = ToyResults()
    assert run(config, tmp_path, resumed, resume=True, predictor=predictor).stopped == result.stopped
    assert resumed.asked == []


def test_no_answer_costs_an_evaluation_and_stays_off_the_front(tmp_path: Path) -> None:
    evaluator = HalfFailing(OBJECTIVES[:2])
    result = run(guided_config(), tmp_path, evaluator)
    assert (len(evaluator.asked), result.evaluations) == (14, 7)
    assert not {row["architecture"] for row in result.front} & set(evaluator.asked[1::2])


def test_infeasible_results_stay_off_the_front(tmp_path: Path) -> None:
    result = run(guided_config(constraints=["latency_ms@toy<=6"]), tmp_path)
    assert result.front
    assert all(row["latency_ms@toy"]["median"] <= 6 for row in result.front)
    history = history_of(tmp_path)
    evaluated = history[history["status"] == "evaluated"]
    assert evaluated["feasible"].tolist() == (evaluated["latency_ms@toy"] <= 6).tolist()
    assert evaluated["feasible"].mean() > 0.5  # 5 % of the space


def test_the_model_learns_from_results(tmp_path: Path) -> None:
    tables: list[pd.DataFrame] = []

    def adapt(table: pd.DataFrame) -> ToyPredictor:
        tables.append(table)
        return ToyPredictor(sigma=5.0 / len(table))

    config = guided_config(guide={"adapt_every": 5})
    whole = ToyResults()
    run(config, tmp_path / "whole", whole, adapt=adapt, predictor=ToyPredictor(sigma=5.0))
    assert [len(table) for table in tables] == [5, 10]
    assert list(tables[0].columns) == ["space", "architecture", *config.objectives]
    assert tables[1]["architecture"].tolist() == whole.asked[:10]
    assert tables[1]["latency_ms@toy"].tolist() == [toy_results(name)["latency_ms@toy"] for name in whole.asked[:10]]

    broken, rest = ToyResults(breaks_at=11), ToyResults()
    options: dict[str, Any] = {"adapt": adapt, "predictor": ToyPredictor(sigma=5.0)}
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path / "killed", broken, **options)
    run(config, tmp_path / "killed", rest, resume=True, **options)
    assert broken.asked + rest.asked == whole.asked
    pd.testing.assert_frame_equal(history_of(tmp_path / "killed"), history_of(tmp_path / "whole"))


@pytest.mark.parametrize("guesses", [False, True])
def test_guesses_of_other_spaces_prune_nothing(guesses: bool, tmp_path: Path) -> None:
    """Though they are as sure as other predictions, and results are not learned from."""
    predictor = ToyPredictor(sigma=0.01)
    if guesses:
        predictor.checkpoint = SimpleNamespace(guessed_of=lambda space: frozenset(OBJECTIVES))  # type: ignore[attr-defined]
    result = run(guided_config(guide={"adapt_every": 0}), tmp_path, predictor=predictor)
    assert result.evaluations == 14
    assert (result.pruned == 0) == guesses


@pytest.mark.parametrize("twins", TWINS)
def test_what_the_predictor_does_not_know_is_learned_on_the_way(twins: str, tmp_path: Path) -> None:
    config = guided_config(trials=20, twins=twins, guide={"adapt_every": 5})
    evaluator, predictor = ToyResults(), ToyPredictor(sigma=0.3, objectives=OBJECTIVES[1:])
    adapt = ProcessAdapter(SPACE, predictor, config.objectives, to_text=SPACE.format, pool_size=20)
    run(config, tmp_path, evaluator, predictor=predictor, adapt=adapt)
    history = history_of(tmp_path)
    evaluated = history[history["status"] == "evaluated"]
    unknown = evaluated["accuracy@toy predicted"].isna()
    assert evaluated["batch"][unknown].max() == 1  # the first five results, in batches of four
    assert len(evaluator.asked) == len(set(evaluator.asked)) == 20
    assert evaluated["key"].tolist() == (evaluator.asked if twins == "apart" else keys_of(evaluator.asked))


def test_a_ledger_is_read_as_written(tmp_path: Path) -> None:
    config = guided_config(constraints=["energy_mj@toy<=15"])
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path, ToyResults(breaks_at=6))
    ledger = Ledger.load(tmp_path / "history.parquet", config)
    assert (len(ledger.evaluated), len(ledger.chosen)) == (6, 2)
    ledger.save(tmp_path / "again.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "again.parquet"), history_of(tmp_path), check_exact=True)


def test_a_history_of_another_search_is_named(tmp_path: Path) -> None:
    config = guided_config()
    run(config, tmp_path)
    history_of(tmp_path).drop(columns="reason").to_parquet(tmp_path / "history.parquet")
    with pytest.raises(StudyError, match=r"history\.parquet: expected the history of a"):
        run(config, tmp_path, resume=True)
    with pytest.raises(StudyError, match=r"history\.parquet: expected the history of a"):
        plot_study(tmp_path)


def test_what_is_lacking_is_named_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="guided search: expected a config with a guide, got none"):
        run(toy_config(), tmp_path)
    with pytest.raises(
        ValueError, match="expected a predictor that knows accuracy@toy, latency_ms@toy, got one without l"
    ):
        run(guided_config(), tmp_path, predictor=ToyPredictor(objectives=OBJECTIVES[:1]))
    truth = TableEvaluator(SPACE, toy_table(), objectives=OBJECTIVES[:1])
    with pytest.raises(ValueError, match="truth table: expected accuracy@toy, latency_ms@toy, got no latency_ms@toy"):
        run(guided_config(), tmp_path, truth=truth)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("storage", [None, "{}/journal.log"])
def test_what_fails_before_the_first_result_leaves_no_study_behind(storage: str | None, tmp_path: Path) -> None:
    class Failing(ToyResults):
        def _result(self, notation: str) -> dict[str, float]:
            if len(self.asked) == self.breaks_at:
                raise ValueError("as a user's function fails")
            return super()._result(notation)

    options = {"storage": storage and storage.format(tmp_path)}
    for breaks_at in (0, 2):
        with pytest.raises(ValueError, match="as a user's function fails"):
            run(guided_config(), tmp_path / "out", Failing(breaks_at=breaks_at), **options)
        assert (tmp_path / "out").exists() == (breaks_at == 2)
    with pytest.raises(StudyError, match="got one that holds a study"):
        run(guided_config(), tmp_path / "out", **options)
    with pytest.raises(StudyError, match="expected a database URL"):
        run(guided_config(), tmp_path / "new", storage="nosuch://storage")
    assert not (tmp_path / "new").exists()


def test_the_front_of_something_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "front.csv").write_text("mine")
    with pytest.raises(StudyError, match=r"expected a folder without a study, got one with the front\.csv of"):
        run(guided_config(), tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("front.csv", "mine")]


def test_the_bar_counts_evaluations_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(guided_config(), tmp_path, progress=True)
    captured = capsys.readouterr()
    assert "14/14" in captured.err
    assert captured.out == ""


def test_bars_tell_that_networks_are_looked_at_if_that_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(guided_config(), tmp_path / "fast", progress=True)
    assert "propose" not in capsys.readouterr().err
    monkeypatch.setattr("studies.proposal.BAR_AFTER", 0)
    run(guided_config(), tmp_path / "slow", progress=True)
    assert "propose" in capsys.readouterr().err
    run(guided_config(), tmp_path / "silent")
    assert "propose" not in capsys.readouterr().err
