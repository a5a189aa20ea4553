"""A new objective from a few labels, and nothing forgotten."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy.stats import spearmanr
from torch import Tensor

from nasrlm.adaptation import Pool, adapt, choose_diverse, make_pool
from nasrlm.boosted_trees import expected_by_trees
from nasrlm.checkpoint import Checkpoint, CheckpointError
from nasrlm.cli import adaptations
from nasrlm.examples import make_examples
from nasrlm.group_process import GroupProcess
from nasrlm.model import RegressionLanguageModel
from nasrlm.model_config import ModelConfig
from nasrlm.number import NumberCode
from nasrlm.point_decoder import POINT_DIGITS
from nasrlm.predictor import Predictor
from nasrlm.readout import GRID
from nasrlm.readout_fit import Readout, TextFeatures
from nasrlm.text_counts import NUM_COUNTS
from nasrlm.train_config import TrainConfig
from nasrlm.training import train
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.scenes import OBJECTIVES, architecture_table, layer_table

NEW = "latency_ms@unheard"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A small model that knows how accuracy and latency follow from the layers."""
    table = layer_table(240)
    size = ModelConfig(width=32, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, hidden=64, dropout=0.0)
    config = TrainConfig(
        table=Path("layers.parquet"),
        out=tmp_path_factory.mktemp("run"),
        model=size,
        vocabulary_size=270,
        num_digits=3,
        epochs=15,
        batch_size=16,
        average_decay=0.95,
        evaluate_every_epochs=15,
    )
    return train(config, make_examples(table, table["text"].tolist(), OBJECTIVES), progress=False).checkpoint


def test_ten_labels_teach_a_device_that_resembles_a_known_one(trained: Checkpoint) -> None:
    table = layer_table(300, seed=1)
    pool = make_pool(trained, table["text"].tolist())
    true = 2 * table[OBJECTIVES[1]].to_numpy() ** 0.8
    used = choose_diverse(pool, np.arange(150), 10)
    labels = np.full(300, np.nan)
    labels[used] = true[used]
    adapted = adapt(trained, pool, NEW, labels)
    assert adapted.objectives == (*OBJECTIVES, NEW)
    prediction = Predictor(adapted).predict(list(pool.texts)[150:], [NEW])
    assert spearmanr(prediction.median[:, 0], true[150:]).statistic > 0.8
    assert 0.7 < np.median(prediction.median[:, 0] / true[150:]) < 1.4


@pytest.mark.parametrize("label", [1.0, 7.0])  # the logarithms of ten sevens deviate by 2e-16, of ones by 0
def test_equal_labels_leave_an_interval(trained: Checkpoint, label: float) -> None:
    pool = make_pool(trained, layer_table(30)["text"].tolist())
    adapted = adapt(trained, pool, NEW, np.where(np.arange(30) < 10, label, np.nan))
    prediction = Predictor(adapted).predict(pool.texts, [NEW])
    np.testing.assert_allclose(prediction.median, label, rtol=0.01)
    assert (prediction.low < 0.95 * label).all()
    assert (prediction.high > 1.05 * label).all()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])  # of chance in the labels
def test_intervals_are_as_wide_as_the_labels_deviate(trained: Checkpoint, share: float) -> None:
    table, rng = layer_table(300, seed=1), np.random.default_rng(0)
    pool = make_pool(trained, table["text"].tolist())
    explained = np.log(table[OBJECTIVES[1]].to_numpy())
    true = np.exp((1 - share) * explained + share * rng.normal(size=300) * explained.std())
    adapted = adapt(trained, pool, NEW, np.where(np.arange(300) < 20, true, np.nan))
    prediction = Predictor(adapted).predict(list(pool.texts)[20:], [NEW])
    inside = (prediction.low[:, 0] <= true[20:]) & (true[20:] <= prediction.high[:, 0])
    assert 0.6 < inside.mean() < 0.95


@pytest.fixture
def taught(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The labels that readouts learn, one array each; nothing is read from the texts."""
    labels: list[np.ndarray] = []
    fit = Readout.fit

    def noted(features: TextFeatures, mean: Tensor, deviation: Tensor, table: Tensor, *, logarithmic: bool) -> Readout:
        labels.append(np.interp(mean, GRID, table))
        return fit(features, mean, deviation, table, logarithmic=logarithmic)

    monkeypatch.setattr(Readout, "fit", noted)
    return labels


def summaries_with(sizes: np.ndarray, checkpoint: Checkpoint) -> np.ndarray:
    """States of random numbers, and networks of these (N, F) sizes."""
    rng = np.random.default_rng(1)
    states = rng.normal(size=(len(sizes), checkpoint.model.summary_width - sizes.shape[1]))
    states[:, -NUM_COUNTS:] = 0
    return np.concatenate([states, sizes], axis=1)


def test_an_accuracy_is_taught_by_what_the_texts_say_of_their_networks(
    checkpoint: Checkpoint, taught: list[np.ndarray]
) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.normal(size=(200, 4))
    true = 50 + 8 * np.exp(sizes[:, 0] / 2)
    labels = np.where(np.arange(200) < 40, true, np.nan)
    known = Pool([""] * 200, ("params@x", "macs@x"), rng.normal(size=(200, 2)), summaries_with(sizes, checkpoint))
    for pool in (replace(known, summaries=summaries_with(0 * sizes, checkpoint)), known):
        adapt(checkpoint, pool, "accuracy@new", labels)
    by_predictions, by_networks = (spearmanr(values[40:], true[40:]).statistic for values in taught)
    assert by_networks > 0.8
    assert by_predictions < 0.4
    assert taught[1].max() <= 100


def test_an_accuracy_that_is_learned_anew_does_not_go_by_what_its_labels_taught_before(
    checkpoint: Checkpoint, taught: list[np.ndarray]
) -> None:
    """The old model knows the labels by heart and nothing else; so may one of another accuracy."""
    rng = np.random.default_rng(0)
    sizes = rng.normal(size=(200, 4))
    true = 50 + 8 * np.exp(sizes[:, 0] / 2)
    by_heart = np.where(np.arange(200) < 40, true, rng.normal(60, 5, 200))[:, None]
    labels = np.where(np.arange(200) < 40, true, np.nan)
    pool = Pool([""] * 200, ("accuracy@new",), by_heart, summaries_with(sizes, checkpoint))
    for name in ("accuracy@new", "accuracy@other"):
        adapt(checkpoint, pool, name, labels)
    anew, misled = (spearmanr(values[40:], true[40:]).statistic for values in taught)
    assert anew > 0.8 > misled


def test_trees_see_steps_of_an_accuracy_that_a_process_smooths(
    checkpoint: Checkpoint, taught: list[np.ndarray]
) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.normal(size=(400, 12))
    true = 50 + 10 * (sizes[:, 0] > 0) + 5 * (sizes[:, 1] > 0.5) + sizes[:, 2] / 2
    labels = np.where(np.arange(400) < 100, true, np.nan)
    pool = Pool([""] * 400, ("params@x", "macs@x"), rng.normal(size=(400, 2)), summaries_with(sizes, checkpoint))
    adapt(checkpoint, pool, "accuracy@new", labels)
    alone = GroupProcess([sizes, pool.features]).fit(np.arange(100), true[:100]).expect(np.arange(100, 400))
    together = spearmanr(taught[0][100:], true[100:]).statistic
    assert together > spearmanr(alone, true[100:]).statistic + 0.02


def test_trees_of_features_that_are_all_equal_expect_the_mean() -> None:
    rows = np.arange(4)
    assert expected_by_trees(np.ones((6, 3)), rows, rows.astype(float)) == pytest.approx(np.full(6, 1.5))


def test_a_cost_is_taught_by_predictions_and_by_what_the_networks_are_made_of(
    checkpoint: Checkpoint, taught: list[np.ndarray]
) -> None:
    rng = np.random.default_rng(0)
    predictions, sizes = rng.normal(size=(200, 3)), rng.normal(size=(200, 4))
    true = np.exp(predictions[:, 0] + sizes[:, 0] / 2)
    labels = np.where(np.arange(200) < 20, true, np.nan)
    known = Pool([""] * 200, ("a@x", "b@x", "c@x"), predictions, summaries_with(sizes, checkpoint))
    for pool in (replace(known, summaries=summaries_with(0 * sizes, checkpoint)), known):
        adapt(checkpoint, pool, NEW, labels)
    by_predictions, together = (spearmanr(values[20:], true[20:]).statistic for values in taught)
    assert by_predictions > 0.6
    assert together > by_predictions + 0.1


@pytest.mark.parametrize("labels", [np.ones(3), np.ones((4, 1)), np.array([1.0, 2.0, np.inf, 3.0])])
def test_labels_are_one_a_text_and_finite(checkpoint: Checkpoint, labels: np.ndarray) -> None:
    pool = Pool([""] * 4, ("params@x",), np.ones((4, 1)), summaries_with(np.ones((4, 2)), checkpoint))
    with pytest.raises(ValueError, match=r"expected 4 finite labels of latency_ms@new, .* of shape \("):
        adapt(checkpoint, pool, "latency_ms@new", labels)


@pytest.mark.parametrize("beyond", [-0.5, 941.0])
def test_an_accuracy_is_in_percent(checkpoint: Checkpoint, beyond: float) -> None:
    pool = Pool([""] * 4, ("params@x",), np.ones((4, 1)), summaries_with(np.ones((4, 2)), checkpoint))
    with pytest.raises(
        ValueError, match=rf"expected an accuracy in percent, 0 to 100, got {beyond:g} for accuracy@new"
    ):
        adapt(checkpoint, pool, "accuracy@new", np.array([1.0, 2.0, beyond, np.nan]))


def test_what_was_known_is_answered_as_before(trained: Checkpoint) -> None:
    texts = layer_table(40, seed=2)["text"].tolist()
    labels = np.where(np.arange(40) < 5, np.linspace(1, 2, 40), np.nan)
    adapted = adapt(trained, make_pool(trained, texts), "accuracy@new", labels)
    assert adapted.objectives == (OBJECTIVES[0], "accuracy@new", OBJECTIVES[1])  # accuracies first
    before = Predictor(trained).predict(texts, OBJECTIVES).values
    assert (Predictor(adapted).predict(texts, OBJECTIVES).values == before).all()
    assert trained.objectives == OBJECTIVES


def test_two_new_objectives_are_kept_by_files_engines_and_further_training(trained: Checkpoint, tmp_path: Path) -> None:
    table = layer_table(60, seed=3)
    pool = make_pool(trained, table["text"].tolist())
    adapted = trained
    for name, power in ((NEW, 0.8), ("accuracy@new", 0.1)):
        labels = np.where(np.arange(60) < 20, table[OBJECTIVES[1]].to_numpy() ** power, np.nan)
        adapted = adapt(adapted, pool, name, labels)
    assert adapted.objectives[1:] == ("accuracy@new", OBJECTIVES[1], NEW)  # accuracies come first
    adapted.save_pretrained(tmp_path)
    loaded = Checkpoint.from_pretrained(tmp_path)
    assert loaded.model.config.num_readouts == 2
    answers = [Predictor(adapted, "torch"), Predictor(loaded, "torch"), Predictor(loaded, "onnxruntime")]
    kept, read, by_onnx = (predictor.predict(pool.texts).values for predictor in answers)
    np.testing.assert_array_equal(read, kept)
    np.testing.assert_allclose(by_onnx, kept, rtol=5e-3)
    config = TrainConfig(
        table=Path("layers.parquet"), out=tmp_path / "run", initial_checkpoint=tmp_path, epochs=1, max_steps=1
    )
    tuned = train(config, make_examples(table, table["text"].tolist(), OBJECTIVES), progress=False).checkpoint
    assert tuned.model.config.num_readouts == 0


def test_what_an_earlier_version_adapted_is_refused(trained: Checkpoint, tmp_path: Path) -> None:
    pool = make_pool(trained, layer_table(20)["text"].tolist())
    adapt(trained, pool, NEW, np.arange(1.0, 21.0)).save_pretrained(tmp_path / "old")
    config = json.loads((tmp_path / "old" / "config.json").read_text())
    del config["model"]["num_anchors"]
    (tmp_path / "old" / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="adapt again what an earlier version has adapted"):
        Checkpoint.from_pretrained(tmp_path / "old")


@pytest.mark.parametrize("read", [9, -1])
def test_a_readout_of_no_objective_is_refused(trained: Checkpoint, tmp_path: Path, read: int) -> None:
    pool = make_pool(trained, ["Pool\n", "Skip\n", "Conv3\n"])
    adapt(trained, pool, NEW, np.array([1.0, 2.0, np.nan])).save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    save_file(weights | {"readouts.objectives": torch.tensor([read])}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=rf"expected readouts of different objectives, 0\.\.2, got \[{read}\]"):
        Checkpoint.from_pretrained(tmp_path)


def test_the_command_names_texts_by_their_first_lines(
    nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path
) -> None:
    table = layer_table(12).assign(split="train", **{NEW: 1.0})
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


def test_a_known_objective_may_be_learned_anew(trained: Checkpoint) -> None:
    texts = layer_table(60, seed=3)["text"].tolist()
    labels = np.full(60, 500.0) + np.arange(60)
    adapted = adapt(trained, make_pool(trained, texts), OBJECTIVES[1], labels)
    assert adapted.objectives == OBJECTIVES
    assert np.median(Predictor(adapted).predict(texts, OBJECTIVES[1:]).median) > 100


def test_the_command_takes_accuracies_from_graphs(nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path) -> None:
    words = ["adapt", "--table", tmp_path / "table.parquet", "--objectives", "valid_accuracy@cifar10"]
    labels = {"valid_accuracy@cifar10": np.linspace(20, 40, 12)}  # the tiny code ends at 99
    table = architecture_table(12).assign(**labels)
    table.to_parquet(tmp_path / "table.parquet")
    done = nasrlm(*words, "--checkpoint", checkpoint_folder, "--samples", 6, "--pool", 20, "--out", tmp_path / "new")
    assert done.status == 0, done.stderr
    assert "valid_accuracy@cifar10" in Checkpoint.from_pretrained(tmp_path / "new").objectives


def test_the_command_takes_other_texts_of_the_tables_choices(
    nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    make = adaptations.make_pool
    monkeypatch.setattr(adaptations, "make_pool", lambda *given, **more: asked.append(given[1]) or make(*given, **more))
    table = architecture_table(300)
    table = table[~table["architecture"].str.contains("conv_3x3")][:12].assign(split="train", **{NEW: range(12)})
    table.to_parquet(tmp_path / "table.parquet")
    words = ("adapt", "--table", tmp_path / "table.parquet", "--objectives", NEW, "--checkpoint", checkpoint_folder)
    for option in ((), ("--like-table",)):
        done = nasrlm(*words, *option, "--samples", 3, "--pool", 30, "--out", tmp_path / "new")
        assert done.status == 0, done.stderr
    assert [len(texts) for texts in asked] == [33, 33]
    have_3x3 = [any("[16, 16, 3, 3]" in text for text in texts) for texts in asked]
    assert have_3x3 == [True, False]


def test_learning_a_known_objective_anew_is_said(nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path) -> None:
    architecture_table(8).to_parquet(tmp_path / "table.parquet")
    words = ["adapt", "--table", tmp_path / "table.parquet", "--objectives", OBJECTIVES[1], "--out", tmp_path / "new"]
    done = nasrlm(*words, "--checkpoint", checkpoint_folder, "--samples", 3, "--pool", 8)
    assert done.status == 0, done.stderr
    assert f"{OBJECTIVES[1]}: known already; " in done.stderr


def test_the_card_forgets_what_was_learned_anew(nasrlm: CommandLine, checkpoint: Checkpoint, tmp_path: Path) -> None:
    measured = {"nasbench201": {name: {"n": 3, "kendall_tau": 0.9} for name in OBJECTIVES}}
    replace(checkpoint, card={"commands": [], "test": measured}).save_pretrained(tmp_path / "old")
    rows = [f"| nasbench201 | {name} | 3 | 0.900 |" for name in OBJECTIVES]
    (tmp_path / "old" / "README.md").write_text("\n".join(["# A model", *rows]))
    architecture_table(8).to_parquet(tmp_path / "table.parquet")
    words = ["adapt", "--table", tmp_path / "table.parquet", "--objectives", OBJECTIVES[1], "--out", tmp_path / "new"]
    done = nasrlm(*words, "--checkpoint", tmp_path / "old", "--samples", 3, "--pool", 8)
    assert done.status == 0, done.stderr
    card = Checkpoint.from_pretrained(tmp_path / "new").card
    assert list(card["test"]["nasbench201"]) == [OBJECTIVES[0]]
    assert card["commands"][-1]["objectives"] == [OBJECTIVES[1]]
    told = f"`nasrlm adapt` added `{OBJECTIVES[1]}`, from 3 labels each of table.parquet."
    assert (tmp_path / "new" / "README.md").read_text().splitlines() == ["# A model", rows[0], "", told]


def test_one_label_is_too_few(trained: Checkpoint) -> None:
    pool = make_pool(trained, ["Pool\n", "Skip\n"])
    with pytest.raises(ValueError, match=r"adapt: expected 2 to 8,000 labels of latency_ms@unheard, got 1\."):
        adapt(trained, pool, NEW, np.array([1.0, np.nan]))


def test_a_pool_is_of_texts_in_their_order(trained: Checkpoint) -> None:
    table = layer_table(6).set_index(np.arange(6)[::-1])
    pool = make_pool(trained, table["text"])  # type: ignore[arg-type]
    assert pool.rows(np.array([0, 5])).texts == [table["text"].iloc[0], table["text"].iloc[5]]
    with pytest.raises(ValueError, match=r"adapt: expected a pool of texts, got none\."):
        make_pool(trained, [])
    with pytest.raises(ValueError, match=r"adapt: expected numbers as labels of latency_ms@unheard, got \['x', 'x'"):
        adapt(trained, pool, NEW, ["x"] * 6)  # type: ignore[arg-type]


def test_diverse_rows_are_distinct_candidates_from_different_groups() -> None:
    rng = np.random.default_rng(0)
    centres = 3 * np.eye(4)
    features = np.repeat(centres, 25, axis=0) + rng.normal(0, 0.05, (100, 4))
    candidates = np.arange(0, 100, 2)
    chosen = choose_diverse(
        Pool([""] * 100, [f"cost@{x}" for x in range(features.shape[1])], features, features), candidates, 4
    )
    assert set(chosen) <= set(candidates)
    assert sorted(chosen // 25) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="choose_diverse: expected 4 candidates or more, got 3"):
        choose_diverse(Pool([""] * 100, ["cost@x"], features[:, :1], features), candidates[:3], 4)


def test_the_command_adapts_and_says_what_it_used(nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path) -> None:
    table = architecture_table(24)
    table.to_parquet(tmp_path / "table.parquet")
    words = ["adapt", "--table", tmp_path / "table.parquet", "--objectives", NEW, "--checkpoint", checkpoint_folder]
    done = nasrlm(*words, "--samples", 5, "--choose", "active", "--pool", 30, "--out", tmp_path / "new", "--json")
    assert done.status == 0, done.stderr
    used = json.loads(done.stdout)["used"]
    rows = table.set_index("architecture").loc[used]
    assert len(rows) == 5
    assert "test" not in set(rows["split"])
    assert NEW in Checkpoint.from_pretrained(tmp_path / "new").objectives
    again = nasrlm(*words, "--samples", 5, "--choose", "active", "--pool", 30, "--out", tmp_path / "new2", "--json")
    assert json.loads(again.stdout)["used"] == used


def test_of_all_labels_none_are_chosen(
    nasrlm: CommandLine, checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = architecture_table(24)
    table.to_parquet(tmp_path / "table.parquet")
    monkeypatch.setattr("nasrlm.cli.adaptations.choose_diverse", lambda *_: pytest.fail("all are learned from"))
    words = ["adapt", "--table", tmp_path / "table.parquet", "--objectives", NEW, "--checkpoint", checkpoint_folder]
    done = nasrlm(*words, "--samples", "all", "--choose", "active", "--pool", 30, "--out", tmp_path / "new", "--json")
    learned = table[(table["split"] != "test") & table[NEW].notna()]
    assert sorted(json.loads(done.stdout)["used"]) == sorted(learned["architecture"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--samples": 100}, "expected at least 100 rows outside the test split with labels of latency_ms@unheard"),
        (
            {"--objectives": f"{NEW},{OBJECTIVES[0]}", "--samples": 100},
            " and accuracy@cifar10, got 6. Learn objectives of different rows one after the other, with --checkpoint.",
        ),
        (
            {"--samples": 9000},
            "--samples: expected at most 8,000 labels, got 9,000. Name a number, or use `nasrlm train`.",
        ),
        ({"--samples": "some"}, "--samples: expected all or a number above 1, got 'some'."),
        ({"--objectives": "latency_ms@nowhere"}, "latency_ms@nowhere"),
        ({"--objectives": "a delay"}, "objective: expected metric_unit@context, got 'a delay'."),
        ({"--out": "."}, "checkpoint: expected a folder of its own, got the working directory. Name one in it."),
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
    monkeypatch.setattr("nasrlm.cli.adaptations.table_texts", lambda *_, **__: pytest.fail("it worked before"))
    points = ModelConfig(width=16, num_heads=2, head="mse")
    model = RegressionLanguageModel(points, checkpoint.tokenizer.vocabulary_size, 2, NumberCode(POINT_DIGITS))
    replace(checkpoint, model=model, calibration={}).save_pretrained("points")
    architecture_table(8).to_parquet(tmp_path / "table.parquet")
    options: dict[str, object] = {
        "--table": tmp_path / "table.parquet",
        "--objectives": NEW,
        "--out": tmp_path / "out",
        "--checkpoint": checkpoint_folder,
    }
    done = nasrlm("adapt", *[word for option in (options | changes).items() for word in option])
    assert (done.status, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
