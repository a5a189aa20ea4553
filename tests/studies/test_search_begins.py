"""``nasrlm search`` begins with networks, or results, that are known, or goes on with a study."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from spaces import get_space
from studies.history import BOUNDS
from studies.storage.locks import open_locks
from studies.storage.optuna_storage import open_storage
from tests.studies.search_verb import FUNCTION, GOALS, NOTATIONS, Search

pytestmark = pytest.mark.usefixtures("without_figures")

ALL_FIXED = ("--space", "--checkpoint", "--trials", "--population", "--generations", "--batch")


def test_known_architectures_are_evaluated_first(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    Path("given.txt").write_text("\n".join(NOTATIONS))
    search("--objectives", GOALS, "--evaluator", "my_bench:results", "--warm-start", "given.txt", "--batch", 2)
    asked = Path("asked.txt").read_text().split()
    assert asked[:3] == NOTATIONS
    assert len(set(asked)) == len(asked) == 6


def test_fewer_trials_than_known_architectures_are_told(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    Path("given.txt").write_text("\n".join([*NOTATIONS, NOTATIONS[0]]))
    words = ("--objectives", GOALS, "--evaluator", "my_bench:results", "--warm-start", "given.txt", "--trials")
    with pytest.warns(UserWarning, match=r"warm start: expected at most 2 architectures, as many as trials, got 3: "):
        search(*words, 2)
    assert "warm start" not in search(*words, 3, "--resume")[1]


def test_more_networks_than_a_population_may_begin_a_guided_search(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    space, rng = get_space("nasbench201"), np.random.default_rng(0)
    Path("begin.txt").write_text("\n".join(space.format(space.sample(rng)) for _ in range(10)))
    words = ("--evaluator", "my_bench:results", "--warm-start", "begin.txt", "--trials", 10)
    found, _ = search("--objectives", GOALS, *words)
    assert Path("asked.txt").read_text().split() == Path("begin.txt").read_text().split()
    assert found["evaluations"] == 10
    Path("begin.txt").unlink()
    more, _ = search("--objectives", GOALS, "--evaluator", "my_bench:results", "--trials", 12, "--resume")
    assert more["evaluations"] == 12


@pytest.mark.parametrize("acquisition", ["hypervolume", "none"])
def test_results_that_are_known_are_not_asked_for(search: Search, acquisition: str) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    known = pd.DataFrame({"architecture": NOTATIONS, "accuracy@cifar10": [70.0, 99.0, 50.0]})
    known.assign(**{"latency_ms@raspi4": [2.0, np.nan, 3.0]}).to_csv("known.csv", index=False)
    goals = f"{GOALS},min:params@onnx"
    words = ("--objectives", goals, "--evaluator", "my_bench:results", "--results", "known.csv")
    idle = () if acquisition == "hypervolume" else ("--generations", "--batch", "--checkpoint")
    found, told = search(*words, "--acquisition", acquisition, without=idle)
    objectives = "accuracy@cifar10, latency_ms@raspi4, params@onnx"
    assert f"known.csv: 1 of 3 networks lack one of {objectives}: they are left out.\n" in told
    asked = Path("asked.txt").read_text().split()
    assert (found["evaluations"], len(asked), set(asked) & {NOTATIONS[0], NOTATIONS[2]}) == (6, 4, set())
    history = pd.read_parquet("study/history.parquet").set_index("architecture")
    assert history.loc[[NOTATIONS[0], NOTATIONS[2]], "accuracy@cifar10"].tolist() == [70.0, 50.0]
    again, _ = search(*words, "--acquisition", acquisition, "--resume", without=idle)
    assert again["front"] == found["front"]


def test_results_that_leave_nothing_to_evaluate_are_refused(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    labels = {"accuracy@cifar10": 70.0, "latency_ms@raspi4": 2.0}
    pd.DataFrame({"architecture": NOTATIONS, **labels}).to_csv("known.csv", index=False)
    words = ("--objectives", GOALS, "--results", "known.csv")
    with pytest.raises(AssertionError, match=r"--trials: expected more than the 3 results of known\.csv, .*, got 3\."):
        search(*words, "--evaluator", "my_bench:results", "--trials", 3)
    idle = ("--generations", "--batch", "--checkpoint", "--population")
    with pytest.raises(
        AssertionError, match=r"--results: expected at most one population \(2\) .*, got 3 architectures\."
    ):
        search(*words, "--evaluator", "my_bench:results", "--acquisition", "none", "--population", 2, without=idle)
    with pytest.raises(AssertionError, match=r"--results: expected --evaluator module:function with it, got table:"):
        search(*words, "--evaluator", "table:known.csv")


def test_predictions_are_not_taken_for_results(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    latency = {f"latency_ms@raspi4{bound}": [2.0, 4.0, 6.0] for bound in BOUNDS}
    history = pd.DataFrame({"architecture": NOTATIONS, "accuracy@cifar10": [70.0, 60.0, 50.0], **latency})
    words = ("--objectives", GOALS, "--evaluator", "my_bench:results", "--results", "known.csv")
    history.assign(**{"latency_ms@raspi4 high": [2.0, 4.5, np.nan]}).to_csv("known.csv", index=False)
    with pytest.raises(AssertionError, match=r"known\.csv: expected real results of latency_ms@raspi4, got "):
        search(*words)
    of_predict = {
        "architecture": NOTATIONS,
        "accuracy@cifar10": 70.0,
        "latency_ms@raspi4": 2.0,
        "latency_ms@raspi4.q0.9": 6.0,
    }
    pd.DataFrame(of_predict).to_csv("known.csv", index=False)
    with pytest.raises(AssertionError, match=r"known\.csv: expected real results of latency_ms@raspi4, got "):
        search(*words)
    history.to_csv("known.csv", index=False)  # as of a study with real results
    assert search(*words)[0]["evaluations"] == 6


def test_a_study_to_go_on_with_that_is_not_there_is_told(search: Search) -> None:
    fewer = ("--generations", "--batch")
    _, told = search("--objectives", GOALS, "--resume", without=fewer)
    assert told.startswith("nasrlm: study: expected a study to resume, got none: a new one is started.\n")
    assert "expected a study" not in search("--objectives", GOALS, "--resume", without=fewer)[1]


def test_a_study_is_given_more_trials(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    words = ("--objectives", GOALS, "--evaluator", "my_bench:results")
    search(*words)
    more, _ = search(*words, "--trials", 9, "--resume")
    assert more["evaluations"] == len(Path("asked.txt").read_text().split()) == 9
    again, _ = search(*words, "--resume", without=("--trials",))
    assert again["evaluations"] == len(Path("asked.txt").read_text().split()) == 9


def test_a_study_that_began_with_results_goes_on_with_more_of_them(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    known = pd.DataFrame({"architecture": NOTATIONS, "accuracy@cifar10": 70.0, "latency_ms@raspi4": 2.0})
    known[:2].to_csv("known.csv", index=False)
    words = ("--objectives", GOALS, "--evaluator", "my_bench:results", "--results", "known.csv")
    search(*words)
    known.to_csv("known.csv", index=False)
    more, _ = search(*words, "--trials", 8, "--resume")
    asked = Path("asked.txt").read_text().split()
    assert (more["evaluations"], len(set(asked)), set(asked) & set(NOTATIONS[:2])) == (8, len(asked), set())


def test_a_study_goes_on_without_a_word_of_what_it_is(search: Search) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    pd.DataFrame({"architecture": NOTATIONS, "accuracy@cifar10": 70.0, "latency_ms@raspi4": 2.0}).to_csv("known.csv")
    Path("given.txt").write_text("|none~0|+|none~0|none~1|+|none~0|none~1|none~2|")
    words = ("--no-gate", "--results", "known.csv", "--warm-start", "given.txt", "--on-error", "skip", "--seed", 3)
    bounds = ("--constraint", "latency_ms@raspi4<=6", "--constraint", "soft:latency_ms@raspi4<=5")
    first, _ = search("--objectives", GOALS, "--evaluator", "my_bench:results", *words, *bounds)
    Path("given.txt").unlink()
    assert search("--resume", without=ALL_FIXED)[0]["front"] == first["front"]
    more, _ = search("--resume", "--trials", 9, without=ALL_FIXED)
    again, _ = search("--resume", without=ALL_FIXED)
    assert more["evaluations"] == again["evaluations"] == 9
    assert set(Path("asked.txt").read_text().split()).isdisjoint(NOTATIONS)
    with pytest.raises(AssertionError, match=r"got seed 4 \(recorded 3\)"):
        search("--resume", "--seed", 4, without=ALL_FIXED)


def test_what_no_study_tells_is_asked_for(search: Search) -> None:
    told = r"study: expected a study of `nasrlm search`, which stores its options, got {}\. Give --space\."
    words = rf"^nasrlm: {told}\s*\nassert "  # one line, then what pytest says
    with pytest.raises(AssertionError, match=words.format("none")):
        search("--resume", without=ALL_FIXED)
    Path("study").mkdir()
    Path("study/study.json").write_text('{"config": {}}')  # as of a search in Python
    with pytest.raises(AssertionError, match=words.format("another")):
        search("--resume", without=ALL_FIXED)
    with pytest.raises(AssertionError, match=r"^nasrlm: search: expected --objectives, got none\. Example: max:"):
        search(without=("--batch", "--generations"))


def test_no_password_is_written_down(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my_bench.py").write_text(FUNCTION)
    monkeypatch.setattr(
        "studies.storage.shared_study.open_storage", lambda name: open_storage(str(Path("journal.log")))
    )
    words = ("--objectives", GOALS, "--evaluator", "my_bench:results")
    monkeypatch.setattr(
        "studies.storage.shared_study.open_locks",
        lambda storage, name, study: open_locks(storage, "journal.log", study),
    )
    search(*words, "--storage", "postgresql://me:secret@host/studies")
    assert "secret" not in Path("study/study.json").read_text()
    with pytest.raises(AssertionError, match=r"got storage None \(recorded 'postgresql://me@host/studies'\)"):
        search("--resume", without=ALL_FIXED)
    search("--resume", "--storage", "postgresql://me:changed@host/studies", without=ALL_FIXED)
