"""`nasrlm teach`: what a process expects of architectures that nobody has labelled."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from converters.convert import to_canonical_graph, to_graph
from converters.statistics import statistics
from nasrlm.adaptation.graph_network_fit import FittedGraphs
from nasrlm.metrics import kendall_tau
from nasrlm.model.graph_network import Operators
from nasrlm.objective import Objective
from spaces import get_space
from studies.tables.files import read_table
from tests.nasrlm.conftest import CommandLine

SPACE = get_space("nasbench_macro")
COST = "latency_ms@here"


def _cost(notation: str) -> float:
    return float(statistics(to_canonical_graph(to_graph(SPACE, SPACE.parse(notation)))).macs)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 train rows with a cost that graphs tell, and test rows whose labels would mislead whoever looks at them."""
    rng = np.random.default_rng(0)
    notations = list(dict.fromkeys(SPACE.format(SPACE.sample(rng)) for _ in range(90)))
    frame = pd.DataFrame({"architecture": notations, "split": ["train"] * 60 + ["test"] * (len(notations) - 60)})
    frame[COST] = [_cost(x) for x in notations]
    frame.loc[frame["split"] == "test", COST] = 2 * frame[COST].max() - frame[COST]
    frame.loc[frame.index[:50], "accuracy@here"] = np.nan
    frame.loc[frame.index[50:60], "accuracy@here"] = 90.0
    path = tmp_path_factory.mktemp("teach") / "labelled.parquet"
    frame.to_parquet(path)
    return path


def test_what_is_expected_agrees_with_the_truth(labelled: Path, tmp_path: Path, nasrlm: CommandLine) -> None:
    out = tmp_path / "taught.parquet"
    words = ("teach", "--table", labelled, "--space", SPACE.name, "--objectives", COST, "-n", 40, "--out")
    assert nasrlm(*words, out, "--json").status == 0
    frame = read_table(out)
    assert set(frame["space"]) == {SPACE.name}
    assert set(frame["split"]) == {"train"}
    truth = np.array([_cost(x) for x in frame["architecture"]])
    (tau,) = kendall_tau(frame[[COST]].to_numpy(), truth[:, None])
    assert tau > 0.8
    again = tmp_path / "again.parquet"
    assert nasrlm(*words, again).status == 0
    pd.testing.assert_frame_equal(read_table(again), frame)


def test_networks_of_valid_and_test_rows_among_those_drawn_are_told(
    labelled: Path, tmp_path: Path, nasrlm: CommandLine
) -> None:
    words = ("--space", SPACE.name, "--objectives", COST, "-n", 20, "--out", tmp_path / "taught.parquet")
    assert nasrlm("teach", "--table", labelled, *words).status == 0
    drawn = read_table(tmp_path / "taught.parquet").assign(split=["valid"] * 10 + ["test"] * 5 + ["train"] * 5)
    table = tmp_path / "judged.parquet"
    known = read_table(labelled).query("split == 'train'").assign(space=SPACE.name)
    pd.concat([known, drawn]).to_parquet(table)
    with pytest.warns(
        UserWarning, match=f"^{table}: 15 of 20 networks drawn are in its splits valid and test: a model"
    ):
        assert nasrlm("teach", "--table", table, *words).status == 0


@pytest.mark.usefixtures("learning_little")
@pytest.mark.parametrize(("name", "low", "high"), [(COST, 0.0, 1.0), ("accuracy@near", 99.0, 100.0)])
def test_what_is_expected_is_what_tables_may_hold(
    name: str, low: float, high: float, labelled: Path, tmp_path: Path, nasrlm: CommandLine
) -> None:
    frame = read_table(labelled).query("split == 'train'")[["architecture", COST]]
    scaled = (frame[COST] - frame[COST].min()) / (frame[COST].max() - frame[COST].min())
    frame[name] = (2 * scaled - 0.5).clip(0, 1) * (high - low) + low  # a quarter of the labels at either end
    frame.to_parquet(tmp_path / "table.parquet")
    out = tmp_path / "taught.parquet"
    words = ("--table", tmp_path / "table.parquet", "--space", SPACE.name, "--objectives", name, "-n", 200)
    assert nasrlm("teach", *words, "--out", out).status == 0
    taught = read_table(out)[name]
    assert taught.between(*Objective.parse(name).bounds).all()
    assert taught.isin(Objective.parse(name).bounds).any()


def test_rows_without_a_split_are_for_training(labelled: Path, tmp_path: Path, nasrlm: CommandLine) -> None:
    frame = read_table(labelled)
    frame.assign(split=frame["split"].where(frame["split"] != "train")).to_parquet(tmp_path / "unsplit.parquet")
    taught = []
    for table in (labelled, tmp_path / "unsplit.parquet"):
        out = tmp_path / f"taught {len(taught)}.parquet"
        words = ("--space", SPACE.name, "--objectives", COST, "-n", 10, "--out", out)
        assert nasrlm("teach", "--table", table, *words).status == 0
        taught.append(read_table(out))
    pd.testing.assert_frame_equal(*taught)


def test_networks_can_be_drawn_like_those_of_the_table(labelled: Path, tmp_path: Path, nasrlm: CommandLine) -> None:
    table, out = tmp_path / "part.parquet", tmp_path / "taught.parquet"
    frame = read_table(labelled).query("split == 'train'")
    first = frame["architecture"].str[0]
    common = first.mode()[0]
    frame = frame[(first == common) & (frame["split"] == "train")]
    assert len(frame) >= 20  # of all networks a third begin so
    frame.to_parquet(table)
    words = ("teach", "--table", table, "--space", SPACE.name, "--objectives", COST, "-n", 30, "--out", out)
    assert nasrlm(*words, "--like-table").status == 0
    assert set(read_table(out)["architecture"].str[0]) == {common}
    assert nasrlm(*words).status == 0
    assert set(read_table(out)["architecture"].str[0]) > {common}


def test_a_network_without_choices_of_the_space_is_named(tmp_path: Path, nasrlm: CommandLine) -> None:
    darts, table = get_space("darts"), tmp_path / "wide.parquet"
    rng = np.random.default_rng(0)
    notations = [darts.format(darts.sample(rng)) for _ in range(30)]
    notations[7] = notations[7].replace('"init_channels": 32', '"init_channels": 33')
    pd.DataFrame({"space": "darts", "architecture": notations, "accuracy@here": range(30)}).to_parquet(table)
    finished = nasrlm("teach", "--table", table, "--like-table", "--out", tmp_path / "out.parquet")
    assert finished.status == 2
    assert f"{table}, row 7: darts genotype: expected" in finished.stderr


def test_all_objectives_of_a_table_are_taught(labelled: Path, tmp_path: Path, nasrlm: CommandLine) -> None:
    table, out = tmp_path / "costs.parquet", tmp_path / "taught.parquet"
    frame = read_table(labelled).drop(columns="accuracy@here")
    frame.assign(**{"energy_mj@here": 2 * frame[COST]}).to_parquet(table)
    assert nasrlm("teach", "--table", table, "--space", SPACE.name, "-n", 2, "--out", out).status == 0
    assert {COST, "energy_mj@here"} <= set(read_table(out).columns)


def test_drawn_networks_are_read_only_where_a_graph_network_is_of_use(
    labelled: Path, tmp_path: Path, nasrlm: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "accurate.parquet"
    frame = read_table(labelled).query("split == 'train'")
    frame.assign(**{"accuracy@here": np.linspace(60, 90, len(frame))}).to_parquet(table)
    read: list[str] = []
    of_text = Operators.of_text
    monkeypatch.setattr(Operators, "of_text", lambda text: read.append(text) or of_text(text))
    words = ("teach", "--table", table, "--space", SPACE.name, "--objectives", "accuracy@here", "-n", 9, "--out")
    graphs = SimpleNamespace(move=lambda scores, networks: scores)
    for fitted, count in ((None, len(frame)), (graphs, len(frame) + 9)):
        monkeypatch.setattr(FittedGraphs, "fit", lambda *given, fitted=fitted, **options: fitted)
        read.clear()
        assert nasrlm(*words, tmp_path / "taught.parquet").status == 0
        assert len(read) == count


def test_a_table_without_labels_is_refused(labelled: Path, tmp_path: Path, nasrlm: CommandLine) -> None:
    table, out = tmp_path / "bare.parquet", tmp_path / "taught.parquet"
    read_table(labelled)[["architecture", "split"]].to_parquet(table)
    finished = nasrlm("teach", "--table", table, "--space", SPACE.name, "--out", out)
    assert finished.status == 2
    assert f"{table}: expected label columns named metric_unit@context, got columns " in finished.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--objectives", "accuracy@here"), "expected 20 or more train rows with accuracy@here, got 10"),
        (("--objectives", "energy_mj@here"), "expected a column energy_mj@here, got labels"),
        (("--objectives", " , "), "expected names separated by commas, got ' , '"),
        ((), "expected 20 or more train rows with accuracy@here, got 10"),  # all of the table are asked for
    ],
)
def test_bad_input(words: tuple[str, ...], message: str, labelled: Path, tmp_path: Path, nasrlm: CommandLine) -> None:
    out = tmp_path / "taught.parquet"
    finished = nasrlm("teach", "--table", labelled, "--space", SPACE.name, "-n", 2, "--out", out, *words)
    assert finished.status == 2
    assert message in finished.stderr
    assert not out.exists()


def test_a_table_without_a_space_is_refused(labelled: Path, tmp_path: Path, nasrlm: CommandLine) -> None:
    finished = nasrlm("teach", "--table", labelled, "--objectives", COST, "--out", tmp_path / "taught.parquet")
    assert finished.status == 2
    assert f"{labelled}: expected architectures of one space in its train rows" in finished.stderr


def test_notations_may_be_lists(tmp_path: Path, nasrlm: CommandLine) -> None:
    space, rng = get_space("mnasnet"), np.random.default_rng(0)
    table, out = tmp_path / "table.jsonl", tmp_path / "taught.parquet"
    notations = [space.format(space.sample(rng)) for _ in range(24)]
    rows = [{"architecture": json.loads(x), "latency_ms@mine": float(n)} for n, x in enumerate(notations)]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = nasrlm("teach", "--table", table, "--space", "mnasnet", "--like-table", "-n", 3, "--out", out)
    assert (done.status, len(read_table(out))) == (0, 3)


def test_trees_learn_from_all_labels_of_an_accuracy_and_see_its_steps(
    labelled: Path, tmp_path: Path, nasrlm: CommandLine
) -> None:
    frame = read_table(labelled)
    steps = [60.0, 80.0]
    middle = frame.loc[frame["split"] == "train", COST].median()
    frame["accuracy@steps"] = np.where(frame[COST].abs() < middle, *steps)
    frame.to_parquet(tmp_path / "steps.parquet")
    out = tmp_path / "taught.parquet"
    words = ("teach", "--table", tmp_path / "steps.parquet", "--space", SPACE.name, "-n", 40, "--labels", 30)
    answer = nasrlm(*words, "--objectives", f"{COST},accuracy@steps", "--out", out, "--json")
    assert json.loads(answer.stdout)["labels"] == {COST: 30, "accuracy@steps": 60}
    taught = read_table(out)
    above = np.array([_cost(x) for x in taught["architecture"]]) >= middle
    assert ((taught["accuracy@steps"] > np.mean(steps)) == above).mean() > 0.85
