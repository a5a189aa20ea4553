"""``nasrlm search`` with real evaluations: a user's function, a table, measurements."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from optuna.samplers import RandomSampler

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.cli.searching import print_front
from nasrlm.cli.users_code import is_ours
from spaces import get_space
from studies.all_architectures import every_architecture
from studies.report import StudyResult
from tests.studies.search_verb import FUNCTION, GOALS, Search


def test_what_a_function_prints_is_no_part_of_the_answer(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION.replace("    with open", "    print('epoch 1')\n    with open"))
    found, told = search("--objectives", GOALS, "--evaluator", "my_bench:results")
    assert found["evaluations"] == 6
    assert told == "epoch 1\n" * 6


def test_a_function_decides(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    found, told = search("--objectives", GOALS, "--evaluator", "my_bench:results", "--seed", 1)
    assert found["evaluations"] == 6
    assert told == ""
    history = pd.read_parquet("study/history.parquet")
    evaluated = history[history["status"] == "evaluated"]
    assert evaluated["architecture"].tolist() == Path("asked.txt").read_text().split()
    assert evaluated["accuracy@cifar10"].tolist() == [name.count("conv") for name in evaluated["architecture"]]
    config = json.loads(Path("study/study.json").read_text())["config"]
    assert config["checkpoint_sha256"] == Checkpoint.from_pretrained("checkpoint").sha256
    guide = config["guide"]
    assert (guide["batch_size"], guide["generations"], guide["gate"], guide["risk"]) == (3, 2, True, 0.1)
    again, _ = search("--objectives", GOALS, "--evaluator", "my_bench:results", "--seed", 1, "--resume")
    assert again["front"] == found["front"]
    assert len(Path("asked.txt").read_text().split()) == 6


def test_the_gate_and_the_acquisition_are_chosen(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    search("--objectives", GOALS, "--evaluator", "my_bench:results", "--no-gate", "--acquisition", "median")
    guide = json.loads(Path("study/study.json").read_text())["config"]["guide"]
    assert (guide["acquisition"], guide["gate"]) == ("median", False)


class QuickSampler(RandomSampler):
    """Stands in for one that takes long."""

    def __init__(self, seed: int, **_: object) -> None:
        super().__init__(seed)


def test_that_a_sampler_takes_minutes_to_propose_is_told(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    words = ("--objectives", GOALS, "--evaluator", "my_bench:results", "--trials", "3")
    monkeypatch.setattr("studies.optuna_samplers.GPSampler", QuickSampler)
    _, told = search(*words, "--sampler", "gp", "--generations", "9", without=("--generations", "--trials"))
    assert "--sampler gp: each batch needs 72 proposals, which take a second or more each." in told


def test_risks_of_objectives_and_joint_samples_are_asked_for(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    words = ("--evaluator", "my_bench:results", "--risk", "accuracy@cifar10=0.1,latency_ms@raspi4=0.2", "--joint")
    first, _ = search("--objectives", GOALS, *words)
    guide = json.loads(Path("study/study.json").read_text())["config"]["guide"]
    assert guide["risk"] == {"accuracy@cifar10": 0.1, "latency_ms@raspi4": 0.2}
    assert guide["joint"]
    again, _ = search("--objectives", GOALS, *words, "--resume")
    assert again["front"] == first["front"]


def test_the_front_tells_which_soft_constraints_are_met(capsys: pytest.CaptureFixture[str]) -> None:
    bounds = {"median": 1.0, "low": 1.0, "high": 1.0}
    front = [{"architecture": name, "params": bounds, "soft_met": name == "a"} for name in "ab"]
    print_front(StudyResult(tuple(front), 0.0, (1.0,), 2, 0, 0, None, 0.0, None), ["params"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "soft constraints" in line]
    assert [word for line in lines for word in line.split() if word in ("met", "broken")] == ["met", "broken"]


def test_a_front_of_one_architecture_is_counted_in_the_singular(capsys: pytest.CaptureFixture[str]) -> None:
    front = ({"architecture": "a", "params": {"median": 1.0, "low": 1.0, "high": 1.0}},)
    for size, title, line in ((1, "architecture", " 1 evaluation,"), (2, "architectures", " 2 evaluations,")):
        print_front(StudyResult(front * size, 0.0, (1.0,), size, 0, 0, None, 0.0, None), ["params"])
        told = " ".join(capsys.readouterr().out.split())
        assert told.startswith(f"Pareto front, {size} {title} ┏")
        assert line in told


def test_what_a_notebook_shows_of_a_result_is_short() -> None:
    found = StudyResult(({"architecture": "a"},), 0.0, (1.0,), 1000, 0, 0, None, 0.0, None)
    assert repr(found) == "StudyResult(1,000 evaluated, 1 on the front; see front, hypervolume)"
    less = StudyResult((), 0.0, (1.0,), 2, 1, 30, None, 0.0, None)
    assert repr(less) == "StudyResult(2 evaluated, 1 failed, 30 pruned, 0 on the front; see front, hypervolume)"


def test_an_empty_front_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    print_front(StudyResult((), 0.0, (1.0,), 2, 0, 0, None, 0.0, None), ["params"])
    assert capsys.readouterr().out.endswith("no architecture has all objectives known and all constraints met\n")


def test_the_engine_asks_itself_where_the_model_is_left_out_or_knows_too_little(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION.replace("raspi4", "moon"))
    goals = GOALS.replace("raspi4", "moon")
    found, told = search("--objectives", goals, "--evaluator", "my_bench:results", "--adapt-every", 0)
    assert found["evaluations"] == 6
    assert told == "nasrlm: the checkpoint does not know latency_ms@moon; the search continues without it.\n"
    alone = ("--evaluator", "my_bench:results", "--acquisition", "none", "--out", "more")
    _, told = search("--objectives", goals, *alone, without=("--checkpoint", "--generations", "--batch"))
    assert told == ""
    for folder in ("study", "more"):
        config = json.loads(Path(f"{folder}/study.json").read_text())["config"]
        assert (config["guide"], config["checkpoint_sha256"]) == (None, "")


def test_what_the_model_does_not_know_it_learns_from_results(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION.replace("raspi4", "moon"))
    goals = GOALS.replace("raspi4", "moon")
    found, told = search("--objectives", goals, "--evaluator", "my_bench:results", "--adapt-every", 3, "--batch", 3)
    assert (found["evaluations"], told) == (6, "")
    history = pd.read_parquet("study/history.parquet")
    assert (
        history.loc[history["status"] == "evaluated", "latency_ms@moon predicted"].isna().tolist()
        == [True] * 3 + [False] * 3
    )
    config = json.loads(Path("study/study.json").read_text())["config"]
    assert (config["twins"], config["guide"]["adapt_every"]) == ("apart", 3)


def test_latencies_are_measured_here(search: Search) -> None:
    found, told = search("--objectives", GOALS, "--evaluator", "measure", "--trials", 2, "--batch", 2)
    assert found["evaluations"] == 2
    assert told == ""
    history = pd.read_parquet("study/history.parquet")
    evaluated = history[history["status"] == "evaluated"]
    assert (evaluated["latency_ms@raspi4"] > 0).all()
    for name in ("accuracy@cifar10", "accuracy@cifar10 predicted low"):  # a known value has no interval
        np.testing.assert_allclose(evaluated[name], evaluated["accuracy@cifar10 predicted"], rtol=1e-4)


def test_nothing_is_drawn_jointly_of_what_counts_as_certain_or_is_not_known(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION.replace("raspi4", "moon"))
    goals = GOALS.replace("raspi4", "moon")
    for words, told in (
        (
            ("--objectives", GOALS, "--evaluator", "measure"),
            "takes accuracy@cifar10 from the model without uncertainty",
        ),
        (("--objectives", goals, "--evaluator", "my_bench:results"), "latency_ms@moon, which it must learn first"),
    ):
        with pytest.raises(AssertionError, match=rf"^nasrlm: --joint: expected .*, got .*{told}"):
            search(*words, "--joint")
    assert not Path("study").exists()
    network = ("--objectives", "min:latency_ms@raspi4", "--evaluator", "measure", "--trials", 1, "--joint")
    assert search(*network)[0]["evaluations"] == 1


def test_a_table_of_few_rows_is_searched_to_its_end(search: Search) -> None:
    space = get_space("nasbench201")
    rows = [(3, 3, 3, 1, 3, 2), (3, 2, 3, 1, 3, 2), (0, 1, 2, 3, 4, 0), (1, 1, 1, 1, 1, 1)]
    labels = {"accuracy@cifar10": [90.0, 91.0, 50.0, 80.0], "latency_ms@raspi4": [9.0, 10.0, 3.0, 1.0]}
    table = pd.DataFrame({"architecture": [space.format(space.decode(row)) for row in rows], **labels})
    table.to_csv("labels.csv", index=False)
    words = ("--objectives", GOALS, "--evaluator", "table:labels.csv", "--truth", "labels.csv", "--no-gate")
    found, _ = search(*words)
    assert found["evaluations"] == 4
    assert found["hypervolume_ratio"] == 1
    assert "nothing to evaluate" in found["stopped"]


@pytest.mark.parametrize("acquisition", ["none", "hypervolume"])
def test_a_table_answers_with_no_label_of_a_twin_that_costs_something_else(search: Search, acquisition: str) -> None:
    space = get_space("nasbench201")
    of_1x1, of_3x3 = (
        [(0, 0, 0, 0, 0, x), (0, 0, 0, 0, 1, x), (0, 0, 0, 0, x, 0)] for x in (2, 3)
    )  # alike but for costs
    notations = [space.format(space.decode(row)) for row in [*of_1x1, *of_3x3, (0, 0, 0, 4, 0, 0)]]
    assert len({space.architecture_key(space.parse(notation)) for notation in notations}) == 3
    labels = {"accuracy@moon": np.arange(7.0) + 60, "latency_ms@moon": [1.0, 2.0, np.nan, 4.0, np.nan, 5.0, 7.0]}
    table = pd.DataFrame({"architecture": notations, **labels})
    table.to_csv("labels.csv")
    goals = "max:accuracy@moon,min:latency_ms@moon"
    words = ("--evaluator", "table:labels.csv", "--truth", "labels.csv", "--acquisition", acquisition, "--trials", 20)
    of_guided = ("--generations", "--batch", "--checkpoint") if acquisition == "none" else ()
    found, _ = search("--objectives", goals, *words, without=of_guided)
    assert found["evaluations"] == 5
    assert found["hypervolume_ratio"] == pytest.approx(1)
    history = pd.read_parquet("study/history.parquet").set_index("architecture")
    known = table.dropna().set_index("architecture")
    evaluated = history[history["latency_ms@moon"].notna()]
    assert evaluated["latency_ms@moon"].to_dict() == known["latency_ms@moon"].to_dict()


def test_every_architecture_is_looked_at(search: Search) -> None:
    space = get_space("nasbench201")
    rng = np.random.default_rng(0)
    rows = {tuple(row) for row in rng.integers(5, size=(24, 6)).tolist()}
    table = pd.DataFrame({"architecture": [space.format(space.decode(row)) for row in sorted(rows)]})
    useful, useless = (np.array([row.count(operation) for row in sorted(rows)]) for operation in (3, 1))
    labels = {"accuracy@moon": 90 - 60 / (1.0 + useful), "latency_ms@moon": 1.0 + useful + useless}
    table.assign(**labels).to_csv("labels.csv")
    risks = "accuracy@moon=0.3,latency_ms@moon=0.3"
    words = ("--trials", 14, "--batch", 4, "--adapt-every", 4, "--exhaustive", "--risk", risks)
    goals = "max:accuracy@moon,min:latency_ms@moon"
    found, _ = search("--objectives", goals, "--evaluator", "table:labels.csv", *words, without=("--generations",))
    assert found["evaluations"] == 14
    history = pd.read_parquet("study/history.parquet")
    assert set(history.loc[history["status"] == "pruned", "batch"]) == {history["batch"].max()}  # by the last look
    assert history.loc[history["status"] == "evaluated", "latency_ms@moon predicted"].notna().sum() == 2
    assert not Path("study/journal.log").exists()


def test_a_space_too_large_to_look_at_is_refused() -> None:
    with pytest.raises(
        ValueError, match="expected a space of at most 1,000,000 architectures, got ofa_mobilenetv3 with"
    ):
        every_architecture(get_space("ofa_mobilenetv3"))


def test_twins_are_apart_where_a_constraint_is_on_a_cost(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    words = ("--objectives", "max:accuracy@cifar10", "--evaluator", "my_bench:results")
    search(*words, "--constraint", "latency_ms@raspi4<=4")
    search(*words, "--out", "alone")
    configs = [json.loads(Path(f"{folder}/study.json").read_text())["config"] for folder in ("study", "alone")]
    assert [config["twins"] for config in configs] == ["apart", "once"]


def failing(condition: str, acquisition: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options of a search whose function raises where it has been asked so often, and those to leave out."""
    raising = f"    if len(open('asked.txt').readlines()) {condition}:\n        raise RuntimeError('out of memory')\n"
    Path("my_bench.py").write_text(FUNCTION.replace("    return {", f"{raising}    return {{"))
    words = ("--objectives", GOALS, "--evaluator", "my_bench:results", "--acquisition", acquisition)
    return words, ("--generations", "--batch", "--checkpoint") if acquisition == "none" else ()


@pytest.mark.parametrize("acquisition", ["hypervolume", "none"])
def test_what_a_function_fails_at_can_be_skipped(search: Search, acquisition: str) -> None:
    words, fewer = failing("% 3 == 2", acquisition)
    found, told = search(*words, "--on-error", "skip", without=fewer)
    assert (found["evaluations"], found["failed"]) == (4, 2)
    assert told.count("out of memory") == told.count(" The network counts as one without a result.\n") == 2
    assert len(set(Path("asked.txt").read_text().split())) == 6


def test_goals_that_look_for_the_worst_are_told(search: Search) -> None:
    goals = "min:accuracy@cifar10,max:latency_ms@raspi4"
    with pytest.warns(UserWarning, match="looks for the") as told:
        search("--objectives", goals, without=("--generations", "--batch"))
    assert [str(warning.message) for warning in told] == [
        "min:accuracy@cifar10: looks for the smallest values; is that what you want?",
        "max:latency_ms@raspi4: looks for the largest values; is that what you want?",
    ]
    assert all(is_ours(warning.filename) for warning in told)  # told in one line


def test_a_bound_that_nothing_meets_is_told_with_the_nearest_value(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    words = ("--evaluator", "my_bench:results", "--constraint", "accuracy@cifar10>=99", "--acquisition", "none")
    found, _ = search("--objectives", GOALS, *words, without=("--generations", "--batch", "--checkpoint"))
    largest = pd.read_parquet("study/history.parquet")["accuracy@cifar10"].max()
    assert found["front"] == []
    assert found["unmet"] == [f"accuracy@cifar10>=99: the largest found was {largest:g}"]


def test_networks_without_any_result_are_told(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION.replace("    return {", "    notation = ''\n    return {"))
    source = (
        "def nothing(notation):\n    return {'accuracy@cifar10': float('nan'), 'latency_ms@raspi4': float('nan')}\n"
    )
    Path("my_bench.py").write_text(source)
    words = ("--evaluator", "my_bench:nothing", "--acquisition", "none")
    found, told = search("--objectives", GOALS, *words, without=("--generations", "--batch", "--checkpoint"))
    assert (found["evaluations"], found["failed"]) == (0, 6)
    assert "study: expected results, got none for 6 architectures." in told


def test_a_file_of_an_evaluator_is_told_how_to_be_named(search: Search) -> None:
    with pytest.raises(
        AssertionError, match=r"got 'my_bench\.py:results'\. Write my_bench:results and run in the file's folder\."
    ):
        search("--objectives", GOALS, "--evaluator", "my_bench.py:results")


def test_an_answer_that_cannot_be_used_can_be_skipped(search: Search) -> None:
    answer = "{'accuracy@cifar10': float('inf'), 'latency_ms@raspi4': 1.0}"
    diverged = f"    if len(open('asked.txt').readlines()) == 2:\n        return {answer}\n"
    Path("my_bench.py").write_text(FUNCTION.replace("    return {", f"{diverged}    return {{"))
    words = ("--objectives", GOALS, "--evaluator", "my_bench:results", "--acquisition", "none")
    fewer = ("--generations", "--batch", "--checkpoint")
    with pytest.raises(AssertionError, match=r"finite number, .* Pass --on-error skip to skip this network\. Resume"):
        search(*words, without=fewer)
    found, told = search(*words, "--resume", "--on-error", "skip", without=fewer)
    assert (found["evaluations"], found["failed"]) == (6, 0)
    Path("asked.txt").unlink()
    found, told = search(*words, "--out", "skipping", "--on-error", "skip", without=fewer)
    assert (found["evaluations"], found["failed"]) == (5, 1)
    assert told.count(" The network counts as one without a result.\n") == 1


@pytest.mark.parametrize("acquisition", ["hypervolume", "none"])
def test_what_was_evaluated_before_a_failure_is_not_asked_again(search: Search, acquisition: str) -> None:
    words, fewer = failing("== 4", acquisition)
    with pytest.raises(AssertionError, match=r"out of memory .*\. Resume the search to continue from the res"):
        search(*words, without=fewer)
    found, _ = search(*words, "--resume", without=fewer)
    asked = Path("asked.txt").read_text().split()
    assert found["evaluations"] == 6
    assert len(asked) == 7
    assert len(set(asked)) == 6
