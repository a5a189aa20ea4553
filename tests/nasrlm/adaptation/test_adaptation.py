"""A new objective from a few labels, and nothing forgotten."""

import json
from collections import defaultdict
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy.stats import spearmanr

from converters import to_onnx_text
from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.boosted_trees import expected_by_trees
from nasrlm.adaptation.graph_network_fit import FittedGraphs
from nasrlm.adaptation.group_process import GroupProcess
from nasrlm.adaptation.pool import Pool, choose_diverse, make_pool
from nasrlm.adaptation.readout_fit import Expected, Readout, TextFeatures
from nasrlm.checkpoints.checkpoint import Checkpoint, round_weights
from nasrlm.checkpoints.folder import CheckpointError
from nasrlm.examples import Examples
from nasrlm.model.graph_network import GraphNetwork
from nasrlm.model.readout import GRID
from nasrlm.predictor import Predictor
from nasrlm.text.counts import NUM_COUNTS
from nasrlm.text.row_counts import WHOLE, RowCounts, row_counts
from nasrlm.training.config import TrainConfig
from nasrlm.training.train import train
from spaces import get_space
from tests.nasrlm.scenes import OBJECTIVES, drawn_texts, layer_table, numbered

NEW = "latency_ms@unheard"


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


@pytest.fixture
def taught(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The labels that readouts learn, one array each; nothing is read from the texts."""
    labels: list[np.ndarray] = []
    fit = Readout.fit

    def noted(features: TextFeatures, expected: Expected) -> Readout:
        share = expected.graphs.share if expected.graphs else 0.0
        labels.append(np.interp((1 - share) * expected.mean, GRID, expected.table))
        return fit(features, expected)

    monkeypatch.setattr(Readout, "fit", noted)
    return labels


def summaries_with(sizes: np.ndarray, checkpoint: Checkpoint) -> np.ndarray:
    """States of random numbers, and networks of these (N, F) sizes."""
    rng = np.random.default_rng(1)
    states = rng.normal(size=(len(sizes), checkpoint.model.summary_width - sizes.shape[1]))
    states[:, -NUM_COUNTS:] = 0
    return np.concatenate([states, sizes], axis=1)


def accuracies_by_sizes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(200, 4) sizes of networks, their accuracies, which follow the first of them, and these as labels of 40."""
    sizes = rng.normal(size=(200, 4))
    true = 50 + 8 * np.exp(sizes[:, 0] / 2)
    return sizes, true, np.where(np.arange(200) < 40, true, np.nan)


def test_an_accuracy_is_taught_by_what_the_texts_say_of_their_networks(
    checkpoint: Checkpoint, taught: list[np.ndarray]
) -> None:
    rng = np.random.default_rng(0)
    sizes, true, labels = accuracies_by_sizes(rng)
    known = Pool(numbered(200), ("params@x", "macs@x"), rng.normal(size=(200, 2)), summaries_with(sizes, checkpoint))
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
    sizes, true, labels = accuracies_by_sizes(rng)
    by_heart = np.where(np.arange(200) < 40, true, rng.normal(60, 5, 200))[:, None]
    pool = Pool(numbered(200), ("accuracy@new",), by_heart, summaries_with(sizes, checkpoint))
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
    pool = Pool(numbered(400), ("params@x", "macs@x"), rng.normal(size=(400, 2)), summaries_with(sizes, checkpoint))
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
    known = Pool(numbered(200), ("a@x", "b@x", "c@x"), predictions, summaries_with(sizes, checkpoint))
    for pool in (replace(known, summaries=summaries_with(0 * sizes, checkpoint)), known):
        adapt(checkpoint, pool, NEW, labels)
    by_predictions, together = (spearmanr(values[20:], true[20:]).statistic for values in taught)
    assert by_predictions > 0.6
    assert together > by_predictions + 0.1


@pytest.mark.parametrize("labels", [np.ones(3), np.ones((4, 1)), np.array([1.0, 2.0, np.inf, 3.0])])
def test_labels_are_one_a_text_and_finite(checkpoint: Checkpoint, labels: np.ndarray) -> None:
    pool = Pool(numbered(4), ("params@x",), np.ones((4, 1)), summaries_with(np.ones((4, 2)), checkpoint))
    with pytest.raises(ValueError, match=r"expected 4 finite labels of latency_ms@new, .* of shape \("):
        adapt(checkpoint, pool, "latency_ms@new", labels)


@pytest.mark.parametrize(
    ("objective", "beyond", "wanted"),
    [
        ("accuracy@new", -0.5, "percent, 0 to 100,"),
        ("accuracy@new", 941.0, "percent, 0 to 100,"),
        ("latency_ms@new", -1.0, "numbers of 0 or more"),
    ],
)
def test_labels_that_cannot_be_are_refused(checkpoint: Checkpoint, objective: str, beyond: float, wanted: str) -> None:
    pool = Pool(numbered(4), ("params@x",), np.ones((4, 1)), summaries_with(np.ones((4, 2)), checkpoint))
    with pytest.raises(ValueError, match=f"expected {wanted} as labels of {objective}, got {beyond:g}"):
        adapt(checkpoint, pool, objective, np.array([1.0, 2.0, beyond, np.nan]))


@pytest.mark.usefixtures("learning_little")
def test_what_was_known_is_answered_as_before(trained: Checkpoint) -> None:
    texts = layer_table(40, seed=2)["text"].tolist()
    labels = np.where(np.arange(40) < 5, np.linspace(1, 2, 40), np.nan)
    adapted = adapt(trained, make_pool(trained, texts), "accuracy@new", labels)
    assert adapted.objectives == (OBJECTIVES[0], "accuracy@new", OBJECTIVES[1])  # accuracies first
    before = Predictor(trained).predict(texts, OBJECTIVES).values
    assert (Predictor(adapted).predict(texts, OBJECTIVES).values == before).all()
    assert trained.objectives == OBJECTIVES


@pytest.mark.usefixtures("learning_little")
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
    tuned = train(config, Examples.of_table(table, table["text"].tolist(), OBJECTIVES), progress=False).checkpoint
    assert tuned.model.config.num_readouts == 0


def test_what_16_bits_hold_is_told_before_it_is_saved(trained: Checkpoint, tmp_path: Path) -> None:
    half = replace(trained, model=deepcopy(trained.model), weight_bits=16)
    round_weights(half.model)
    adapted = adapt(half, make_pool(half, layer_table(20)["text"].tolist()), NEW, np.arange(1.0, 21.0))
    adapted.save_pretrained(tmp_path)
    assert Checkpoint.from_pretrained(tmp_path).sha256 == adapted.sha256


def test_what_an_earlier_version_adapted_is_refused(trained: Checkpoint, tmp_path: Path) -> None:
    pool = make_pool(trained, layer_table(20)["text"].tolist())
    adapt(trained, pool, NEW, np.arange(1.0, 21.0)).save_pretrained(tmp_path / "old")
    config = json.loads((tmp_path / "old" / "config.json").read_text())
    config["format_version"] = 2
    (tmp_path / "old" / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="readouts of an earlier version; adapt again"):
        Checkpoint.from_pretrained(tmp_path / "old")


@pytest.mark.parametrize("read", [9, -1])
def test_a_readout_of_no_objective_is_refused(trained: Checkpoint, tmp_path: Path, read: int) -> None:
    pool = make_pool(trained, ["Pool\n", "Skip\n", "Conv3\n"])
    adapt(trained, pool, NEW, np.array([1.0, 2.0, np.nan])).save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    save_file(weights | {"readouts.objectives": torch.tensor([read])}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=rf"expected readouts of objectives 0\.\.2, got \[{read}\]"):
        Checkpoint.from_pretrained(tmp_path)


@pytest.mark.usefixtures("learning_little")
def test_graph_networks_come_and_go_with_the_accuracies_that_they_belong_to(
    trained: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = iter([*(FittedGraphs(GraphNetwork().half().float(), share, 1.0) for share in (0.5, 0.25)), None])
    monkeypatch.setattr(FittedGraphs, "fit", lambda *_: next(fitted))
    space, rng = get_space("nasbench201"), np.random.default_rng(0)
    pool = make_pool(trained, [to_onnx_text(space, space.sample(rng)) for _ in range(12)])
    adapted, answers = [trained], []
    for name in ("accuracy@a", "accuracy@b", "accuracy@a"):
        adapted.append(adapt(adapted[-1], pool, name, np.linspace(60, 90, 12)))
        answers.append(Predictor(adapted[-1]).predict(pool.texts, [name]).values)
    assert [x.model.config.num_graph_networks for x in adapted] == [0, 1, 2, 1]
    assert not np.array_equal(answers[2], answers[0])
    adapted[-1].save_pretrained(tmp_path)
    for answering in (adapted[-1], Checkpoint.from_pretrained(tmp_path)):  # bit for bit
        np.testing.assert_array_equal(Predictor(answering).predict(pool.texts, ["accuracy@b"]).values, answers[1])
    weights = load_file(tmp_path / "model.safetensors")
    for name, size in (("readouts.shares", 1.5), ("readouts.networks.0.kinds.weight", 6e4)):
        broken = weights | {name: torch.full_like(weights[name], size)}
        save_file(broken, tmp_path / "model.safetensors")
        with pytest.raises(CheckpointError, match=name):
            Checkpoint.from_pretrained(tmp_path)


@pytest.fixture(scope="module")
def added_up(trained: Checkpoint) -> tuple[Pool, np.ndarray, list[RowCounts], str]:
    """160 networks, what their rows cost together, the rows of each, and a network of another space."""
    space, rng = get_space("nasbench201"), np.random.default_rng(0)
    texts = [to_onnx_text(space, space.sample(rng)) for _ in range(160)]
    cost_of: dict[int, float] = defaultdict(lambda: float(rng.uniform(0.1, 2.0)))
    counts = [row_counts(text) for text in texts]
    *_, kind = counts[0].by_row  # the same of all
    cost_of |= {WHOLE: cost_of[WHOLE], kind: 0.0}
    true = np.array([sum(count * cost_of[row] for row, count in text.by_row.items()) for text in counts])
    unheard = to_onnx_text(get_space("nasbench101"), get_space("nasbench101").sample(rng))
    return make_pool(trained, texts), true, counts, unheard


@pytest.mark.usefixtures("learning_little")
@pytest.mark.parametrize("name", [NEW, "throughput_ips@new"])
def test_a_cost_that_rows_add_up_to_is_exact_from_more_labels_than_rows(
    trained: Checkpoint,
    added_up: tuple[Pool, np.ndarray, list[RowCounts], str],
    tmp_path: Path,
    name: str,
) -> None:
    pool, true, counts, unheard = added_up
    true = true if name == NEW else 1000 / true
    texts = pool.texts
    few, enough = (adapt(trained, pool, name, np.where(np.arange(160) < count, true, np.nan)) for count in (20, 80))
    assert [x.model.config.num_sum_rows > 0 for x in (few, enough)] == [False, True]
    prediction = Predictor(enough).predict(texts[80:], [name])
    labelled = {row for text in counts[:80] for row in text.by_row}
    told = np.array([set(text.by_row) <= labelled for text in counts[80:]])
    assert 70 < told.sum() < 80
    errors = np.abs(prediction.median[:, 0] / true[80:] - 1)
    assert np.median(errors) < 1e-5
    assert errors[told].max() < 0.02  # rows that came together in all labelled texts come apart
    widths = (prediction.high / prediction.low)[:, 0]
    assert np.median(widths) < 1.001
    assert (widths[~told] > 1.05).all()
    of_few = Predictor(few).predict(texts[80:], [name])
    assert np.abs(of_few.median[:, 0] - true[80:]).mean() > 0.01 * true.std()

    adapted = adapt(enough, pool, "accuracy@a", np.where(np.arange(160) < 12, 70 + np.arange(160) / 8, np.nan))
    adapted.save_pretrained(tmp_path)
    for answering in (adapted, Checkpoint.from_pretrained(tmp_path)):  # beside one that adds nothing up
        assert answering.model.config.num_sum_rows == enough.model.config.num_sum_rows
        again = Predictor(answering).predict([*texts[80:], unheard], [name]).values
        np.testing.assert_allclose(again[:-1], prediction.values, rtol=1e-6)
        assert again[-1, 0, 2] / again[-1, 0, 0] > 1.05  # only what resembles the pool can tell
    weights = load_file(tmp_path / "model.safetensors")
    broken = weights | {"readouts.sum_shares": torch.full_like(weights["readouts.sum_shares"], 1.5)}
    save_file(broken, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"expected readouts\.sum_shares between 0 and 1, got 1\.5 to 1\.5"):
        Checkpoint.from_pretrained(tmp_path)


def test_a_known_objective_may_be_learned_anew(trained: Checkpoint) -> None:
    texts = layer_table(60, seed=3)["text"].tolist()
    labels = np.full(60, 500.0) + np.arange(60)
    adapted = adapt(trained, make_pool(trained, texts), OBJECTIVES[1], labels)
    assert adapted.objectives == OBJECTIVES
    assert np.median(Predictor(adapted).predict(texts, OBJECTIVES[1:]).median) > 100


def test_what_was_adapted_foresees_no_label_of_its_own(trained: Checkpoint) -> None:
    table = layer_table(60, seed=3).drop_duplicates("text")
    texts, labels = table["text"].tolist(), table[OBJECTIVES[1]].to_numpy() ** 1.5
    ten, twenty = (np.where(np.arange(len(texts)) < count, labels, np.nan) for count in (10, 20))
    first = adapt(trained, make_pool(trained, texts), NEW, ten)
    at_once, after = (adapt(start, make_pool(start, texts), NEW, twenty) for start in (trained, first))
    answers = [Predictor(adapted).predict(texts, [NEW]).values for adapted in (at_once, after)]
    np.testing.assert_allclose(*answers, rtol=1e-6)


@pytest.mark.usefixtures("learning_little")
def test_an_accuracy_adapted_anew_goes_by_no_other_accuracy_however_often(checkpoint: Checkpoint) -> None:
    rng = np.random.default_rng(0)
    texts = drawn_texts("nasbench201", 40, rng)
    labels = np.where(np.arange(len(texts)) < 20, rng.uniform(80, 90, len(texts)), np.nan)
    beside = adapt(checkpoint, make_pool(checkpoint, texts), "accuracy@other", labels)
    model, answers = beside, []
    for _ in range(2):
        model = adapt(model, make_pool(model, texts), OBJECTIVES[0], labels)
        answers.append(Predictor(model).predict(texts, [OBJECTIVES[0]]).values)
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-5)


def test_costs_go_by_where_operators_stand(checkpoint: Checkpoint) -> None:
    """Which neither predictions by random weights nor numbers of operators tell."""
    space, rng = get_space("nasbench_macro"), np.random.default_rng(0)
    drawn = [space.sample(rng) for _ in range(120)]
    weights = np.array([16, 1, 1, 12, 1, 1, 8, 1])
    costs = np.array([weights @ [1 + 3 * (name != "id") for name in x.operations] for x in drawn], dtype=float)
    texts = [to_onnx_text(space, x) for x in drawn]
    adapted = adapt(checkpoint, make_pool(checkpoint, texts), NEW, np.where(np.arange(120) < 29, costs, np.nan))
    answer = Predictor(adapted).predict(texts[29:], [NEW]).median[:, 0]
    assert spearmanr(answer, costs[29:]).statistic > 0.58  # 0.46 without a process of networks


def test_an_objective_of_its_own_is_all_that_a_model_may_know(checkpoint: Checkpoint) -> None:
    rng = np.random.default_rng(0)
    texts = drawn_texts("nasbench201", 40, rng)
    labels = np.array([float(text.count("Conv")) for text in texts]) + rng.uniform(0.5, 0.6, len(texts))
    model = adapt(checkpoint, make_pool(checkpoint, texts), NEW, labels)
    alone = make_pool(model, texts)
    for name in OBJECTIVES:
        alone = alone.without(name)
    assert alone.objectives == [NEW]
    again = adapt(model, alone, NEW, np.where(np.arange(len(texts)) < 20, labels, np.nan))
    answer = Predictor(again).predict(texts[20:], [NEW]).median
    assert spearmanr(answer[:, 0], labels[20:]).statistic > 0.5


def test_texts_of_no_network_are_not_learned_from_by_a_model_that_knows_nothing_else(checkpoint: Checkpoint) -> None:
    pool = make_pool(checkpoint, ["Conv3\n", "Pool\n", "Skip\n"])
    alone, labels = replace(pool, read_off=frozenset(OBJECTIVES)).without(OBJECTIVES[0]), np.array([1.0, 2.0, np.nan])
    with pytest.raises(
        ValueError, match=f"adapt: expected texts of networks, .* more than {OBJECTIVES[1]}, .* neither"
    ):
        adapt(checkpoint, alone, OBJECTIVES[1], labels)


def test_one_label_is_too_few(trained: Checkpoint) -> None:
    pool = make_pool(trained, ["Pool\n", "Skip\n"])
    with pytest.raises(ValueError, match=r"adapt: expected 2 to 8,000 labels of latency_ms@unheard, got 1\."):
        adapt(trained, pool, NEW, np.array([1.0, np.nan]))


def test_a_pool_is_of_texts_in_their_order(trained: Checkpoint) -> None:
    table = layer_table(6).set_index(np.arange(6)[::-1])
    pool = make_pool(trained, table["text"])  # type: ignore[arg-type]
    assert pool.pool_of(np.array([0, 5])).texts == [table["text"].iloc[0], table["text"].iloc[5]]
    with pytest.raises(ValueError, match=r"adapt: expected a pool of texts, got none\."):
        make_pool(trained, [])
    with pytest.raises(ValueError, match=r"adapt: expected numbers as labels of latency_ms@unheard, got \['x', 'x'"):
        adapt(trained, pool, NEW, ["x"] * 6)  # type: ignore[arg-type]
