"""Adapting to tables from Python; what the command says of it is tested beside the other verbs."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from converters.tables.counts import named_counts
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.predictor import Predictor
from spaces import get_space
from studies.tables import adapting
from studies.tables.adapt_config import AdaptConfig
from studies.tables.adapting import adapt_to_tables
from tests.nasrlm.scenes import architecture_table, network_checkpoint

NEW = "latency_ms@unheard"
FRAME = pd.DataFrame({"architecture": ["a", "b"], NEW: [1.0, 2.0]})
IN_MEMORY = "expected tables as a list of files' paths, got DataFrame. For labels in memory, use nasrlm.adapt"
SPACE = """
from converters.builder import GraphBuilder
from spaces import GenotypeSpace


class Mine(GenotypeSpace):
    name = "mine"
    choices = {"width": (4, 8, 12, 16, 20), "kernel": (1, 3)}

    def build(self, architecture):
        g = GraphBuilder((1, 3, 8, 8))
        return g.build(g.conv(g.input, architecture["width"], kernel=architecture["kernel"]))
"""


def test_tables_are_learned_from(tmp_path: Path) -> None:
    table = architecture_table(40).assign(split="train", **{NEW: np.linspace(1.0, 9.0, 40)})
    table.to_csv(tmp_path / "table.csv", index=False)
    config = AdaptConfig([tmp_path / "table.csv"], [NEW], samples=6, choose="active", pool=60)
    before = network_checkpoint()
    adapted = adapt_to_tables(before, config)
    assert adapted.learned[NEW].isin(table[NEW]).all()
    assert len(adapted.learned) == 6
    assert NEW not in before.objectives
    assert adapted.checkpoint.card["commands"][-1]["table"] == "table.csv"
    judged = adapted.judge()[NEW]
    assert judged["n"] == len(adapted.others) == table["architecture"].nunique() - 6
    answers = Predictor(adapted.checkpoint).predict(adapted.texts_of_others, [NEW])
    assert judged["mae"] == pytest.approx(np.abs(answers.median[:, 0] - adapted.others[NEW]).mean())


def test_a_table_with_labels_of_none_of_the_objectives_is_told(tmp_path: Path) -> None:
    table = architecture_table(40).drop_duplicates("architecture")[["space", "architecture"]]
    parts = {
        "ten": table[:10].assign(**{NEW: np.arange(1.0, 11.0)}),
        "bare": table[10:14].assign(**{"params": 5, "macs@onnx": 6}),
    }
    parts["other"] = table[14:20].assign(**{NEW.upper(): 1.0})
    for name, part in parts.items():
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    config = AdaptConfig([tmp_path / f"{name}.csv" for name in parts], [NEW], samples=None, pool=10)
    with pytest.warns(UserWarning, match=f"expected a column {NEW}, got labels") as told:
        adapted = adapt_to_tables(network_checkpoint(), config)
    assert len(adapted.learned) == 10
    (message,) = (str(each.message) for each in told if "column" in str(each.message))
    assert message.startswith(str(tmp_path / "other.csv"))


@pytest.mark.parametrize("samples", [6, None])
def test_labels_of_the_test_split_teach_nothing(tmp_path: Path, samples: int | None) -> None:
    table = architecture_table(40).assign(**{NEW: np.linspace(1.0, 9.0, 40)})
    hidden = table.assign(**{NEW: table[NEW].where(table["split"] != "test", 50.0)})
    weights = []
    for name, frame in (("table.csv", table), ("hidden.csv", hidden)):
        frame.to_csv(tmp_path / name, index=False)
        config = AdaptConfig([tmp_path / name], [NEW], samples=samples, pool=60)
        weights.append(adapt_to_tables(network_checkpoint(), config).checkpoint.model.state_dict())
    known, unknown = weights
    assert all(x.equal(unknown[key]) for key, x in known.items())


def test_a_space_of_ones_own_is_one_from_wherever_tables_name_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SPACE)
    space = get_space(f"{tmp_path / 'mine.py'}:Mine")
    for number, folder in enumerate(("x", "y")):
        (tmp_path / folder).mkdir()
        rows = [space.format(made) for made in space.enumerate()][number::2]
        table = pd.DataFrame({"space": "../mine.py:Mine", "architecture": rows, NEW: np.arange(1.0, 6.0) + number})
        table.to_csv(tmp_path / folder / "t.csv", index=False)
    config = AdaptConfig([tmp_path / "x" / "t.csv", tmp_path / "y" / "t.csv"], [NEW], samples=None, pool=20)
    adapted = adapt_to_tables(network_checkpoint(), config)
    (name,) = adapted.checkpoint.taught_spaces(NEW)
    assert name.endswith("mine.py:Mine")
    assert adapted.learned["space"].nunique() == 1


def test_objectives_of_different_spaces_are_taught_in_these_alone(tmp_path: Path) -> None:
    labels = {"nasbench201": NEW, "nasbench_macro": "energy_mj@unheard"}
    for name, objective in labels.items():
        space = get_space(name)
        rows = [space.format(space.sample(np.random.default_rng(seed))) for seed in range(6)]
        table = pd.DataFrame({"space": name, "architecture": rows, objective: np.arange(1.0, 7.0)})
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    config = AdaptConfig(sorted(tmp_path.iterdir()), [*labels.values()], samples=None, pool=8)
    checkpoint = adapt_to_tables(network_checkpoint(), config).checkpoint
    for name, objective in labels.items():
        assert checkpoint.taught_spaces(objective) == [name]
        assert [other for other in labels.values() if checkpoint.was_taught(other, name)] == [objective]


@pytest.fixture
def two_spaces(tmp_path: Path) -> Path:
    """A table of cells with labels of two objectives, and of networks of other blocks with labels of one."""
    cells = architecture_table(24).drop_duplicates("architecture")[["space", "architecture"]]
    blocks = pd.DataFrame({"space": "nasbench_macro", "architecture": ["00000000", "11111111", "22222222", "01201201"]})
    cells["energy_mj@new"] = np.linspace(5.0, 6.0, len(cells))
    rows = pd.concat([cells, blocks])
    rows.assign(**{NEW: np.arange(1.0, len(rows) + 1)}).to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def test_an_objective_of_one_space_beside_one_of_two_counts_its_own_labels(two_spaces: Path) -> None:
    config = AdaptConfig([two_spaces], [NEW, "energy_mj@new"], samples=None, pool=10)
    adapted = adapt_to_tables(network_checkpoint(), config)
    assert adapted.checkpoint.taught_spaces(NEW) == ["nasbench201", "nasbench_macro"]
    assert adapted.checkpoint.taught_spaces("energy_mj@new") == ["nasbench201"]
    count = len(adapted.learned)
    assert adapted.checkpoint.card["commands"][-1]["labels"] == [count, count - 4]


def test_a_space_that_lacks_labels_of_an_objective_is_told(two_spaces: Path) -> None:
    config = AdaptConfig([two_spaces], [NEW, "energy_mj@new"], samples=6, pool=10)
    with pytest.warns(UserWarning, match="nasbench_macro: not learned, because no network has labels of latency_ms@un"):
        adapted = adapt_to_tables(network_checkpoint(), config)
    assert set(adapted.learned["space"]) == {"nasbench201"}


def test_a_space_that_does_not_exist_is_told_before_pools_are_made(
    two_spaces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    misspelt = pd.read_csv(two_spaces, dtype=str).replace("nasbench_macro", "nasbench_micro")
    misspelt.to_csv(two_spaces, index=False)
    monkeypatch.setattr(adapting, "make_pool", lambda *_, **__: pytest.fail("a pool was made"))
    with pytest.raises(ValueError, match=r"table\.csv, row \d+: space: .* got 'nasbench_micro'"):
        adapt_to_tables(network_checkpoint(), AdaptConfig([two_spaces], [NEW], samples=None, pool=10))


def test_names_without_a_context_are_labels_too(tmp_path: Path) -> None:
    rows = architecture_table(32).drop_duplicates("architecture")[["space", "architecture"]]
    words = ["n/a", *map(str, range(1, len(rows)))]
    (tmp_path / "t.jsonl").write_text(rows.assign(params=words).to_json(orient="records", lines=True))
    config = AdaptConfig([tmp_path / "t.jsonl"], ["params"], samples=None, pool=10)
    assert sorted(adapt_to_tables(network_checkpoint(), config).learned["params"]) == [*range(1, len(rows))]
    rows.assign(accuracy=[-1.0, *range(1, len(rows))]).to_csv(tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"t\.csv: expected percent, 0 to 100, in column accuracy, got -1 in row 0"):
        adapt_to_tables(network_checkpoint(), AdaptConfig([tmp_path / "t.csv"], ["accuracy"]))


def test_an_objective_of_too_few_labels_is_named(tmp_path: Path) -> None:
    rows = architecture_table(32).drop_duplicates("architecture")[["space", "architecture"]]
    other = [1.0, *[np.nan] * (len(rows) - 1)]
    rows.assign(**{NEW: np.arange(1.0, len(rows) + 1), "energy_mj@new": other}).to_csv(tmp_path / "t.csv")
    config = AdaptConfig([tmp_path / "t.csv"], [NEW, "energy_mj@new"], samples=None)
    with pytest.raises(
        ValueError, match="expected 2 or more rows outside the test split with labels of energy_mj@new, "
    ):
        adapt_to_tables(network_checkpoint(), config)


@pytest.mark.filterwarnings("ignore:adapt. expected about")
def test_labels_left_out_are_counted_by_network_also_where_two_have_one_text(tmp_path: Path) -> None:
    space = get_space("hiaml")
    drawn = [space.sample(np.random.default_rng(seed)) for seed in range(14)]
    rows = pd.DataFrame({"space": space.name, "architecture": [*map(space.format, drawn)]})
    rows[NEW] = 1.0 + named_counts(space, drawn, ["macs@onnx"])[:, 0] / 1e8
    rows.loc[5, NEW] = 1e9
    twin = rows.iloc[[5]].assign(architecture=rows["architecture"][5].replace(", ", ","))
    pd.concat([rows, twin]).to_csv(tmp_path / "t.csv", index=False)
    config = AdaptConfig([tmp_path / "t.csv"], [NEW], samples=None, pool=20, leave_out_strays=True)
    adapted = adapt_to_tables(Checkpoint.from_pretrained(), config)
    assert (len(adapted.learned), adapted.checkpoint.card["commands"][-1]["labels"]) == (15, 13)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tables": "table.csv"}, "expected tables as a list, got 'table.csv'"),
        ({"tables": []}, "expected tables, each once, got none"),
        ({"objectives": NEW}, f"expected objectives as a list, got '{NEW}'"),
        ({"objectives": [NEW, NEW]}, "expected objectives, each once, got"),
        ({"samples": 1}, "adapt: samples: expected 2 or more, got 1"),
        ({"pool": 0}, "adapt: pool: expected 2 or more, got 0"),
        ({"samples": 2.5}, "adapt: samples: expected"),
        ({"tables": [FRAME]}, IN_MEMORY),
        ({"tables": FRAME}, IN_MEMORY),
        ({"tables": {"t.csv": FRAME}}, "expected tables as a list of files' paths, got dict"),
        ({"tables": None}, "expected tables as a list of files' paths, got NoneType"),
        ({"objectives": [NEW, 3]}, "expected objectives as a list of names, got int"),
        ({"seed": -1}, "adapt: seed: expected 0 or more, got -1"),
        ({"seed": 0.5}, r"adapt: seed: expected a whole number, got 0\.5"),
        ({"tables": ["table.csv", "./table.csv"]}, "expected tables, each once, got table.csv, ./table.csv"),
        ({"space": get_space("nasbench201")}, r"adapt: expected the name of a space, got NASBench201\("),
        ({"like_table": "no"}, "adapt: like_table: expected True or False, got 'no'"),
        ({"leave_out_strays": None}, "adapt: leave_out_strays: expected True or False, got None"),
        ({"choose": "best"}, "expected choose to be one of random, active, got 'best'"),
    ],
)
def test_a_config_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AdaptConfig(**{"tables": ["table.csv"], "objectives": [NEW], **changes})


@pytest.mark.usefixtures("learning_little")
def test_accuracies_that_look_like_fractions_are_told_once(tmp_path: Path) -> None:
    table = architecture_table(40)
    table.assign(**{"accuracy@new": np.linspace(0.1, 0.9, 40)}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(UserWarning, match="percent, 0 to 100") as told:
        adapt_to_tables(network_checkpoint(), AdaptConfig([tmp_path / "t.csv"], ["accuracy@new"], pool=40))
    assert sum("percent" in str(warning.message) for warning in told) == 1


@pytest.mark.parametrize("config", [{"tables": ["t.csv"], "objectives": [NEW]}, FRAME, None])
def test_what_is_no_config_is_told(config: Any) -> None:
    with pytest.raises(ValueError, match=r"adapt_to_tables: expected an AdaptConfig, got \w+\. For labels in memory"):
        adapt_to_tables(network_checkpoint(), config)
