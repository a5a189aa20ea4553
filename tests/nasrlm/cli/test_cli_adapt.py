"""The command `nasrlm adapt`: what it learns from, what it says, and what it refuses."""

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from converters.tables.counts import counts_by_name
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.model.config import ModelConfig
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NumberCode
from nasrlm.model.point_decoder import POINT_DIGITS
from spaces import get_space
from studies.tables import adapting
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.scenes import OBJECTIVES, architecture_table, layer_table

NEW = "latency_ms@unheard"


@pytest.fixture
def adapt(nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path) -> CommandLine:
    """``adapt("--samples", …)``: NEW is learned from table.parquet by the tiny checkpoint, which becomes "new"."""
    given = ("--table", tmp_path / "table.parquet", "--objectives", NEW, "--checkpoint", checkpoint_folder)
    return partial(nasrlm, "adapt", *given, "--out", tmp_path / "new")


def test_the_command_names_texts_by_their_first_lines(
    nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path
) -> None:
    table = layer_table(12).assign(split="train", **{NEW: np.arange(1.0, 13.0)})
    table["text"] = [f"Conv3\nPool\n{text}" for text in table["text"]]
    table.to_csv(tmp_path / "texts.csv", index=False)
    words = ("--table", tmp_path / "texts.csv", "--checkpoint", checkpoint_folder)
    shown = nasrlm("adapt", *words, "--objectives", NEW, "--samples", 4, "--out", tmp_path / "new").stdout
    assert len(re.findall(r"│ row \d+: Conv3 … ", shown)) == 4
    predicted = nasrlm("predict", *words).stdout
    assert [f"row {row}: Conv3 …" in predicted for row in (0, 11, 12)] == [True, True, False]
    assert "Pool" not in shown + predicted
    answers = json.loads(nasrlm("predict", *words, "--json").stdout)
    assert [answer["architecture"] for answer in answers] == table["text"].tolist()


@pytest.mark.usefixtures("learning_little")
def test_the_command_takes_accuracies_from_graphs(nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path) -> None:
    words = ["adapt", "--table", tmp_path / "table.parquet", "--objectives", "valid_accuracy@cifar10"]
    labels = {"valid_accuracy@cifar10": np.linspace(20, 40, 12)}  # the tiny code ends at 99
    table = architecture_table(12).assign(**labels)
    table.to_parquet(tmp_path / "table.parquet")
    done = nasrlm(*words, "--checkpoint", checkpoint_folder, "--samples", 6, "--pool", 20, "--out", tmp_path / "new")
    assert done.status == 0, done.stderr
    assert "valid_accuracy@cifar10" in Checkpoint.from_pretrained(tmp_path / "new").objectives


def test_the_command_takes_other_texts_of_the_tables_choices(
    adapt: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    make = adapting.make_pool
    monkeypatch.setattr(adapting, "make_pool", lambda *given, **more: asked.append(given[1]) or make(*given, **more))
    table = architecture_table(300)
    table = table[~table["architecture"].str.contains("conv_3x3")][:12].assign(split="train", **{NEW: range(12)})
    table.to_parquet(tmp_path / "table.parquet")
    for option in ((), ("--like-table",)):
        done = adapt(*option, "--samples", 3, "--pool", 30)
        assert done.status == 0, done.stderr
    assert [len(texts) for texts in asked] == [33, 33]
    have_3x3 = [any("[16, 16, 3, 3]" in text for text in texts) for texts in asked]
    assert have_3x3 == [True, False]


@pytest.mark.filterwarnings("ignore:adapt. 12 rows repeat networks of other rows")
def test_a_network_of_several_rows_is_drawn_once(adapt: CommandLine, tmp_path: Path) -> None:
    table = architecture_table(8)[:6].assign(split="train", **{NEW: np.arange(1.0, 7.0)})
    repeats = [table, table.assign(**{NEW: table[NEW] + 1}), table.assign(**{NEW: np.nan})]
    pd.concat(repeats).to_parquet(tmp_path / "table.parquet")
    with pytest.warns(UserWarning, match="12 rows repeat networks of other rows: the mean of each network's labels"):
        done = adapt("--samples", "all", "--pool", 10, "--json")
    assert done.status == 0, done.stderr
    assert sorted(json.loads(done.stdout)["used"]) == sorted(table["architecture"])
    many = adapt("--samples", 7, "--out", tmp_path / "newer")
    assert f"expected at least 7 rows outside the test split with labels of {NEW}, got 6." in many.stderr
    shown = adapt("--samples", "all", "--pool", 10).stdout
    assert [f" {label} │" in shown for label in (1.5, 6.5, 1.0)] == [True, True, False]


def test_rows_of_one_architecture_with_different_texts_are_different_networks(
    adapt: CommandLine, tmp_path: Path
) -> None:
    """As where it was measured with inputs of several sizes."""
    table = layer_table(12).assign(architecture="mine", split="train", **{NEW: np.arange(1.0, 13.0)})
    table.to_parquet(tmp_path / "table.parquet")
    done = adapt("--samples", "all", "--pool", 2, "--json")
    assert done.status == 0, done.stderr
    assert len(json.loads(done.stdout)["used"]) == 12


def test_labelled_rows_that_are_not_learned_from_judge(nasrlm: CommandLine, adapt: CommandLine, tmp_path: Path) -> None:
    table = architecture_table(40).assign(split="train", **{NEW: np.linspace(1.0, 9.0, 40)})
    table.iloc[0, table.columns.get_loc(NEW)] = np.nan
    table.to_parquet(tmp_path / "table.parquet")
    done = adapt("--samples", 10, "--pool", 60, "--json")
    told = json.loads(done.stdout)
    (judged,) = told["others"].values()
    assert judged["n"] == len(set(table["architecture"][1:])) - 10
    learned = table["architecture"].isin(told["used"])
    table.assign(split=np.where(learned, "train", "valid")).iloc[1:].to_parquet(tmp_path / "table.parquet")
    words = ("evaluate", "--table", tmp_path / "table.parquet", "--checkpoint", tmp_path / "new", "--split", "valid")
    found = json.loads(nasrlm(*words, "--objectives", NEW, "--json").stdout)["nasbench201"]
    assert judged == pytest.approx(found[NEW], rel=1e-5)
    shown = adapt("--samples", 10, "--pool", 60, "--out", tmp_path / "again").stdout
    assert "on other labelled rows, which were not used for learning" in shown
    shown = adapt("--samples", "all", "--pool", 60, "--out", tmp_path / "again").stdout
    assert "on other labelled rows" not in shown


@pytest.mark.filterwarnings("ignore:adapt. 1 rows repeat networks of other rows")
def test_labels_of_several_tables_are_learned_together(
    nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path
) -> None:
    table = architecture_table(12)[:9].assign(split="train", **{NEW: np.arange(1.0, 10.0)})
    parts = table[:5], table[4:].assign(**{NEW: table[NEW][4:] + 2, OBJECTIVES[0]: np.nan})
    for name, part in zip(("first.csv", "then.parquet"), parts, strict=True):
        (part.to_csv if name.endswith("csv") else part.to_parquet)(tmp_path / name, index=False)
    words = ("--table", tmp_path / "first.csv", "--table", tmp_path / "then.parquet", "--pool", 20)
    common = ("--checkpoint", checkpoint_folder, "--objectives", NEW, "--out", tmp_path / "new")
    told = nasrlm("adapt", *words, *common, "--samples", "all", "--json")
    assert sorted(json.loads(told.stdout)["used"]) == sorted(table["architecture"])
    joined = table.assign(**{NEW: [1.0, 2.0, 3.0, 4.0, 6.0, *np.arange(8.0, 12.0)]})
    joined.to_parquet(tmp_path / "joined.parquet")
    one = ("--table", tmp_path / "joined.parquet", "--pool", 20, *common[:-1], tmp_path / "of_one", "--samples", "all")
    assert nasrlm("adapt", *one).status == 0
    asked = ("--space", "nasbench201", *table["architecture"], "--objectives", NEW, "--json")
    answers = [
        [row[NEW]["median"] for row in json.loads(nasrlm("predict", *asked, "--checkpoint", tmp_path / x).stdout)]
        for x in ("new", "of_one")
    ]
    assert answers[0] == pytest.approx(answers[1], rel=0.05)
    shown = nasrlm("info", "--checkpoint", tmp_path / "new").stdout
    assert f"`nasrlm adapt` added `{NEW}`, from 9 labels each of first.csv, then.parquet." in shown
    refused = nasrlm("adapt", *words, *common, "--samples", 10)
    assert (refused.status, refused.stderr.count("\n")) == (2, 1)
    assert f"first.csv, {tmp_path / 'then.parquet'}: expected at least 10 rows outside the test split" in refused.stderr


@pytest.mark.filterwarnings("ignore:adapt. 7 rows repeat networks of other rows")
def test_objectives_of_different_tables_are_learned_together(
    nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path
) -> None:
    table = architecture_table(12)[:9].assign(split="train")
    table.assign(**{NEW: np.arange(9.0) + 1}).to_parquet(tmp_path / "times.parquet")
    other = "energy_mj@unheard"
    table[::-1][:7].assign(**{other: np.arange(7.0) + 5}).to_csv(tmp_path / "energies.csv", index=False)
    tables = ("--table", tmp_path / "times.parquet", "--table", tmp_path / "energies.csv")
    words = (*tables, "--objectives", f"{NEW},{other}", "--checkpoint", checkpoint_folder, "--out", tmp_path / "new")
    told = json.loads(nasrlm("adapt", *words, "--samples", "all", "--pool", 12, "--json").stdout)
    assert sorted(told["used"]) == sorted(table["architecture"])  # each objective is learned from its own rows
    learned = Checkpoint.from_pretrained(tmp_path / "new")
    assert {NEW, other} <= set(learned.objectives)
    assert learned.card["commands"][-1]["labels"] == [9, 7]
    shown = nasrlm("info", "--checkpoint", tmp_path / "new").stdout
    assert f"added `{NEW}`, `{other}`, from 9, 7 labels of times.parquet, energies.csv." in shown
    used = json.loads(nasrlm("adapt", *words, "--samples", 7, "--pool", 12, "--json").stdout)["used"]
    assert sorted(used) == sorted(table["architecture"][2:])


def test_texts_of_several_tables_are_named_by_theirs(
    nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = layer_table(8).assign(split="train", **{NEW: np.arange(1.0, 9.0)})
    texts["text"] = [f"Pool\n{text}" for text in texts["text"]]
    texts[:4].to_csv("a.csv", index=False)
    texts[4:].to_csv("b.csv", index=False)
    words = ("--table", "a.csv", "--table", "b.csv", "--checkpoint", checkpoint_folder)
    shown = nasrlm("adapt", *words, "--objectives", NEW, "--samples", "all", "--pool", 2, "--out", "new")
    named = set(re.findall(r"row (\d) of (\w)\.csv: Pool …", shown.stdout))
    assert named == {(str(row), table) for row in range(4) for table in "ab"}


def test_a_label_that_strays_is_told_with_its_network(
    nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path
) -> None:
    space = get_space("nasbench_macro")
    networks = [space.sample(np.random.default_rng(seed)) for seed in range(14)]
    costs = [1.0 + 0.01 * counts_by_name(space, network, ["macs@onnx"])["macs@onnx"] / 1e6 for network in networks]
    table = pd.DataFrame({"architecture": [*map(space.format, networks)], "space": space.name, NEW: costs})
    table.iloc[5, table.columns.get_loc(NEW)] = 1e9
    table.drop_duplicates("architecture").to_csv(tmp_path / "table.csv", index=False)
    words = ("adapt", "--table", tmp_path / "table.csv", "--objectives", NEW, "--checkpoint", checkpoint_folder)
    with pytest.warns(UserWarning, match="^adapt: expected about .*, given the other labels, got 1e") as warned:
        done = nasrlm(*words, "--samples", "all", "--pool", 30, "--out", tmp_path / "new")
    assert done.status == 0, done.stderr
    ((cost, network),) = re.findall(rf"about (\S+) for {NEW} of (\S+), ", str(warned[0].message))
    assert network == table["architecture"][5]
    assert float(cost) == pytest.approx(costs[5], rel=0.2)
    with pytest.warns(UserWarning, match=r"got 1e\+09. It is left out.$"):
        nasrlm(*words, "--samples", "all", "--pool", 30, "--leave-out-strays", "--out", tmp_path / "without")
    count = len(table.drop_duplicates("architecture"))
    labels = [Checkpoint.from_pretrained(tmp_path / x).card["commands"][-1]["labels"] for x in ("new", "without")]
    assert labels == [count, count - 1]
    table.drop_duplicates("architecture").drop(index=5).to_csv(tmp_path / "others.csv", index=False)
    asked = ("evaluate", "--table", tmp_path / "others.csv", "--objectives", NEW, "--json")
    errors = [json.loads(nasrlm(*asked, "--checkpoint", tmp_path / x).stdout) for x in ("new", "without")]
    learned, left_out = (each[space.name][NEW]["mae"] for each in errors)
    assert left_out < learned / 10


def test_texts_have_no_choices_to_draw_by(nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path) -> None:
    layer_table(12).assign(**{NEW: 1.0}).to_csv(tmp_path / "texts.csv", index=False)
    words = ("--table", tmp_path / "texts.csv", "--checkpoint", checkpoint_folder, "--objectives", NEW)
    done = nasrlm("adapt", *words, "--samples", 4, "--like-table", "--out", tmp_path / "new")
    assert (done.status, done.stderr.count("\n")) == (2, 1)
    assert "texts.csv: like_table: expected architectures, got texts." in done.stderr
    assert not (tmp_path / "new").exists()


def test_learning_a_known_objective_anew_is_said(nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path) -> None:
    architecture_table(8).to_parquet(tmp_path / "table.parquet")
    words = ["adapt", "--table", tmp_path / "table.parquet", "--objectives", OBJECTIVES[1], "--out", tmp_path / "new"]
    with pytest.warns(UserWarning, match=f"{OBJECTIVES[1]}: already known; .* alone, in every space.$"):
        done = nasrlm(*words, "--checkpoint", checkpoint_folder, "--samples", 3, "--pool", 8)
    assert done.status == 0, done.stderr
    with pytest.warns(UserWarning, match="alone, in every space. Give the earlier tables too, or keep what other spac"):
        nasrlm(*words, "--checkpoint", tmp_path / "new", "--samples", 3, "--pool", 8)
    again = f"{OBJECTIVES[1]}: already learned from networks of nasbench201; the new checkpoint predicts these from the"
    with pytest.warns(UserWarning, match=again):
        nasrlm(*words, "--checkpoint", tmp_path / "new", "--samples", 3, "--pool", 8, "--beside")


@pytest.mark.filterwarnings("ignore:.*already known")
def test_the_card_forgets_what_was_learned_anew(nasrlm: CommandLine, checkpoint: Checkpoint, tmp_path: Path) -> None:
    measured = {"nasbench201": {name: {"n": 3, "kendall_tau": 0.9} for name in OBJECTIVES}}
    replace(checkpoint, card={"commands": [], "test": measured}).save_pretrained(tmp_path / "old")
    rows = [f"| nasbench201 | {name} | 3 | 0.900 |" for name in OBJECTIVES]
    earlier = [f"- `nasrlm adapt` learned `{name}` anew, half of it by a graph network." for name in OBJECTIVES]
    (tmp_path / "old" / "README.md").write_text("\n".join(["# A model", *earlier, *rows]))
    architecture_table(8).to_parquet(tmp_path / "table.parquet")
    words = ["adapt", "--table", tmp_path / "table.parquet", "--objectives", OBJECTIVES[1], "--out", tmp_path / "new"]
    done = nasrlm(*words, "--checkpoint", tmp_path / "old", "--samples", 3, "--pool", 8)
    assert done.status == 0, done.stderr
    card = Checkpoint.from_pretrained(tmp_path / "new").card
    assert list(card["test"]["nasbench201"]) == [OBJECTIVES[0]]
    assert card["commands"][-1]["objectives"] == [OBJECTIVES[1]]
    told = f"`nasrlm adapt` added `{OBJECTIVES[1]}`, from 3 labels each of table.parquet."
    written = tmp_path / "new" / "README.md"
    assert written.read_text(encoding="utf-8").splitlines() == ["# A model", earlier[0], rows[0], "", told]
    assert nasrlm(*words, "--checkpoint", tmp_path / "new", "--samples", 4, "--pool", 8).status == 0
    told = told.replace("3 labels", "4 labels")
    assert written.read_text(encoding="utf-8").splitlines() == ["# A model", earlier[0], rows[0], "", told]


def test_the_card_counts_what_is_learned_besides(nasrlm: CommandLine, checkpoint: Checkpoint, tmp_path: Path) -> None:
    checkpoint.save_pretrained(tmp_path / "old", "# A model\n\nIt reads ONNX text and predicts 2 objectives.\n")
    architecture_table(8).to_parquet(tmp_path / "table.parquet")
    words = ("--objectives", "latency_ms@unheard", "--samples", 3, "--pool", 8)
    done = nasrlm(
        *("adapt", "--table", tmp_path / "table.parquet", "--checkpoint", tmp_path / "old"),
        *words,
        *("--out", tmp_path / "new"),
    )
    assert done.status == 0, done.stderr
    assert "It reads ONNX text and predicts 3 objectives.\n" in (tmp_path / "new" / "README.md").read_text(
        encoding="utf-8"
    )


def test_the_command_adapts_and_says_what_it_used(adapt: CommandLine, tmp_path: Path) -> None:
    table = architecture_table(24)
    table.to_parquet(tmp_path / "table.parquet")
    done = adapt("--samples", 5, "--choose", "active", "--pool", 30, "--json")
    assert done.status == 0, done.stderr
    used = json.loads(done.stdout)["used"]
    rows = table.set_index("architecture").loc[used]
    assert len(rows) == 5
    assert "test" not in set(rows["split"])
    assert NEW in Checkpoint.from_pretrained(tmp_path / "new").objectives
    again = adapt("--samples", 5, "--choose", "active", "--pool", 30, "--out", tmp_path / "new2", "--json")
    assert json.loads(again.stdout)["used"] == used


def test_of_all_labels_none_are_chosen(adapt: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = architecture_table(24)
    table.to_parquet(tmp_path / "table.parquet")
    monkeypatch.setattr("studies.tables.adapting.choose_diverse", lambda *_: pytest.fail("all are learned from"))
    done = adapt("--samples", "all", "--choose", "active", "--pool", 30, "--json")
    learned = table[(table["split"] != "test") & table[NEW].notna()]
    assert sorted(json.loads(done.stdout)["used"]) == sorted(learned["architecture"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--samples": 100}, "expected at least 100 rows outside the test split with labels of latency_ms@unheard"),
        (
            {"--objectives": f"{NEW},{OBJECTIVES[0]}", "--samples": 100},
            " and accuracy@cifar10, got 6. Learn objectives with labels in different rows one after another.",
        ),
        (
            {"--samples": 9000},
            "samples: expected at most 8,000 labels, got 9,000. Give a smaller number, or use `nasrlm train`.",
        ),
        ({"--samples": "some"}, "--samples: expected all or a number above 1, got 'some'."),
        ({"--objectives": "latency_ms@nowhere"}, "latency_ms@nowhere"),
        ({"--objectives": "a delay"}, "objective: expected metric_unit@context, got 'a delay'."),
        ({"--objectives": "delta@huge", "--samples": 3}, "adapt: expected labels of delta@huge up to 1e+30, got 1e+35"),
        (
            {"--out": "."},
            "checkpoint: expected a separate folder, got the working directory. Choose a folder inside it.",
        ),
        ({"--checkpoint": "points"}, "adapt: expected a checkpoint with head digits, got head mse."),
    ],
)
def test_what_cannot_be_adapted_is_refused_in_a_line(
    nasrlm: CommandLine,
    checkpoint: Checkpoint,
    checkpoint_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, object],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("studies.tables.adapting.texts_of_tables", lambda *_, **__: pytest.fail("it worked before"))
    points = ModelConfig(width=16, num_heads=2, head="mse")
    model = RegressionLanguageModel(points, checkpoint.tokenizer.vocabulary_size, 2, NumberCode(POINT_DIGITS))
    replace(checkpoint, model=model, calibration={}).save_pretrained("points")
    huge = [1.0, 1e35, 1e35, np.nan, -1e35, 1e35, 1.0, 1e35]  # two can be learned, of which one is a test row
    architecture_table(8).assign(**{"delta@huge": huge}).to_parquet(tmp_path / "table.parquet")
    options: dict[str, object] = {
        "--table": tmp_path / "table.parquet",
        "--objectives": NEW,
        "--out": tmp_path / "out",
        "--checkpoint": checkpoint_folder,
    }
    done = nasrlm("adapt", *[word for option in (options | changes).items() for word in option])
    assert (done.status, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
