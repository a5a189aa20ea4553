"""Costs that are sums of what rows cost: close where rows add up, spelled elsewhere, kept with the checkpoint."""

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from converters import to_onnx_text
from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.pool import make_pool
from nasrlm.adaptation.refine import FEWEST_VALID, refine
from nasrlm.arrays import FloatArray
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.checkpoints.folder import CheckpointError
from nasrlm.examples import Examples, Origins
from nasrlm.model.encoded import Encoded
from nasrlm.predictor import Predictor
from nasrlm.reader import TextBatch, TextReader
from tests.nasrlm.adaptation.summed import (
    ACCURACY,
    LATENCY,
    NAMES,
    NOISE,
    SPACE,
    THROUGHPUT,
    labelled_table,
    rows_of_test,
    spelling_checkpoint,
)
from tests.nasrlm.scenes import CODE

LEVELS = (0.1, 0.5, 0.9)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return labelled_table()


@pytest.fixture(scope="module")
def examples(table: pd.DataFrame) -> Examples:
    known = table[table["split"] != "test"].reset_index(drop=True)
    return Examples.of_table(known, known["text"].tolist(), NAMES)


@pytest.fixture(scope="module")
def spelling(checkpoint: Checkpoint) -> Checkpoint:
    return spelling_checkpoint(checkpoint)


@pytest.fixture(scope="module")
def summing(spelling: Checkpoint, examples: Examples) -> Checkpoint:
    found, comparisons = refine(spelling, SPACE.name, examples)
    assert [(x.objective, x.is_summed) for x in comparisons] == [(LATENCY, True), (THROUGHPUT, True), (NOISE, False)]
    assert all(x.labels == 180 for x in comparisons)
    return found


def test_sums_are_as_close_as_labels_and_their_intervals_hold(summing: Checkpoint) -> None:
    rows = labelled_table(640)[240:]
    prediction = Predictor(summing).of_space(SPACE.name).predict(rows["text"].tolist(), NAMES)
    for column, name in ((1, LATENCY), (2, THROUGHPUT)):
        labels = rows[name].to_numpy()
        assert np.median(np.abs(prediction.median[:, column] / labels - 1)) < 0.01
        inside = (labels >= prediction.low[:, column]) & (labels <= prediction.high[:, column])
        assert 0.7 < inside.mean() < 0.9


def test_labels_that_add_up_exactly_are_said_exactly(spelling: Checkpoint) -> None:
    table = labelled_table(noise=0.0)
    table[LATENCY] = table[LATENCY].round(3)
    known = table[table["split"] != "test"].reset_index(drop=True)
    found, _ = refine(spelling, SPACE.name, Examples.of_table(known, known["text"].tolist(), NAMES))
    rows = rows_of_test(table)
    prediction = Predictor(found).of_space(SPACE.name).predict(rows["text"].tolist(), [LATENCY])
    errors = np.abs(prediction.median[:, 0] / rows[LATENCY].to_numpy() - 1)
    assert np.quantile(errors, 0.95) < 1e-3  # a text or two have rows that no labelled one had
    assert np.quantile((prediction.high / prediction.low)[:, 0], 0.95) < 1.002


@pytest.mark.parametrize("engine", ["torch", "onnxruntime"])
def test_everything_else_is_answered_as_before(
    spelling: Checkpoint, summing: Checkpoint, table: pd.DataFrame, engine: Any
) -> None:
    texts = rows_of_test(table)["text"].tolist()
    before, after = Predictor(spelling, engine), Predictor(summing, engine)
    for asked in (lambda x: x, lambda x: x.of_space("fbnet")):
        np.testing.assert_array_equal(asked(after).predict(texts).values, asked(before).predict(texts).values)
    here, there = (x.of_space(SPACE.name).predict(texts, NAMES).values for x in (before, after))
    np.testing.assert_allclose(there[:, [0, 3]], here[:, [0, 3]], rtol=1e-4)
    assert np.isclose(there[:, [1, 2]], here[:, [1, 2]], rtol=1e-3).mean() < 0.05  # but for one text with other rows
    by_hand = Predictor(summing.of_space(SPACE.name), engine).predict(texts, NAMES).values
    np.testing.assert_allclose(by_hand, there, rtol=1e-4)


def test_texts_with_rows_that_were_never_seen_are_spelled(
    spelling: Checkpoint, summing: Checkpoint, table: pd.DataFrame
) -> None:
    known = rows_of_test(table)["text"].tolist()[:3]
    canonical = [to_onnx_text(SPACE, SPACE.parse(x)) for x in rows_of_test(table)["architecture"][:2]]
    larger = known[0].replace("3,32,32]", "3,64,64]", 1)
    others = [*canonical, larger, "Conv3\nPool\n"]  # of other kinds, of another input, of no network
    before, after = (Predictor(x).of_space(SPACE.name) for x in (spelling, summing))
    spelled = before.predict(others, [LATENCY]).values
    together = after.predict([*known, *others], [LATENCY]).values
    np.testing.assert_array_equal(together[3:], spelled)
    np.testing.assert_allclose(together[:3], after.predict(known, [LATENCY]).values, rtol=1e-12)
    seeded = after.joint_samples([*known, *others], NAMES, 5, seed=3)
    assert np.isfinite(seeded).all()
    assert (np.abs(np.log(seeded[:3, 1] / together[:3, :, 1])) < 0.1).all()


def test_a_network_that_was_measured_again_tells_once(
    spelling: Checkpoint, summing: Checkpoint, examples: Examples
) -> None:
    twice = examples.rows(np.tile(np.arange(len(examples)), 2))
    noisy = replace(twice, labels=twice.labels * np.repeat([[0.9], [1.1]], len(examples), axis=0))
    _, before = refine(spelling, SPACE.name, examples)
    copied, measured_twice = (refine(spelling, SPACE.name, x) for x in (twice, noisy))
    for comparisons in (copied[1], measured_twice[1]):
        for now, then in zip(comparisons, before, strict=True):
            assert (now.objective, now.labels, now.is_summed) == (then.objective, then.labels, then.is_summed)
            assert (now.spelled, now.summed) == pytest.approx((then.spelled, then.summed), nan_ok=True)
    for name, known in summing.sums_by_space[SPACE.name].items():
        copy, of_one = (found.sums_by_space[SPACE.name][name] for found, _ in (copied, measured_twice))
        assert copy.deviation == pytest.approx(known.deviation)
        assert copy.levels == pytest.approx(known.levels, abs=0.02)
        assert of_one.deviation == pytest.approx(0.11 / 1.28, rel=0.02)  # of one label, not of the mean
    learned = replace(twice, splits=np.repeat(["train", "valid"], len(examples)))
    assert refine(spelling, SPACE.name, learned)[1] == []  # no valid row is of a text that is in no train row


@pytest.mark.parametrize("engine", ["torch", "onnxruntime"])
def test_texts_are_encoded_only_where_sums_do_not_tell_all(
    summing: Checkpoint, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, engine: Any
) -> None:
    known = rows_of_test(table)["text"].tolist()[:4]
    texts = [known[0], "Conv3\nPool\n", *known[1:], known[0]]
    predictor = Predictor(summing, engine).of_space(SPACE.name)
    beside_others = predictor.predict(texts, [ACCURACY, LATENCY, THROUGHPUT], LEVELS).values[:, 1:]
    encoded: list[str] = []
    read = TextReader.read

    def noted(reader: TextReader, batch: TextBatch) -> Encoded:
        encoded.extend(batch.texts)
        return read(reader, batch)

    monkeypatch.setattr(TextReader, "read", noted)
    alone = Predictor(summing, engine).of_space(SPACE.name).predict(texts, [LATENCY, THROUGHPUT], LEVELS).values
    assert encoded == ["Conv3\nPool\n"]
    np.testing.assert_allclose(alone, beside_others, rtol=1e-4)
    np.testing.assert_array_equal(alone[[0, 2, 3, 4, 5]], beside_others[[0, 2, 3, 4, 5]])
    with pytest.raises(ValueError, match=r"expected 1 to \d+ tokens, got 0 in row 4"):
        predictor.predict([*known, "", "Conv3\n"], [LATENCY])


def test_every_answer_is_of_one_distribution(summing: Checkpoint, table: pd.DataFrame) -> None:
    texts = rows_of_test(table)["text"].tolist()[:4]
    sums = {name: replace(x, levels=()) for name, x in summing.sums_by_space[SPACE.name].items()}
    raw = Predictor(replace(summing, sums_by_space={SPACE.name: sums})).of_space(SPACE.name)
    quantiles = raw.predict(texts, [LATENCY, ACCURACY], LEVELS).values
    for column, level in enumerate(LEVELS):
        values = quantiles[:, :, column]
        below = raw.cumulative_probabilities(texts, [LATENCY, ACCURACY], values)
        np.testing.assert_allclose(below[:, 0], level, atol=1e-6)
    samples = raw.sample(texts, [LATENCY], 2000, seed=0)[:, 0]
    np.testing.assert_allclose(np.quantile(samples, LEVELS, axis=1).T, quantiles[:, 0], rtol=2e-3)
    joint = raw.joint_samples(texts, [LATENCY, ACCURACY], 2000, seed=0)[:, 0]
    np.testing.assert_allclose(np.quantile(joint, LEVELS, axis=1).T, quantiles[:, 0], rtol=2e-3)
    given = raw.joint_samples(texts, [LATENCY], 3, known={LATENCY: [5.0, np.nan, 7.0, np.nan]}, seed=0)[:, 0]
    assert (given[[0, 2]] == np.array([[5.0], [7.0]])).all()
    numbers = CODE.decode(CODE.encode(np.linspace(1, 60, 600)))
    logs = [raw.log_probabilities(texts[:1], [LATENCY], [[x]])[0, 0] for x in np.unique(numbers)]
    assert np.exp(logs).sum() == pytest.approx(1, abs=1e-6)
    assert np.unique(numbers)[np.argmax(logs)] == pytest.approx(quantiles[0, 0, 1], rel=0.06)


def test_a_checkpoint_comes_back_with_its_sums(
    spelling: Checkpoint, summing: Checkpoint, table: pd.DataFrame, tmp_path: Path
) -> None:
    texts = rows_of_test(table)["text"].tolist()
    directly = Predictor(summing).of_space(SPACE.name).predict(texts, NAMES).values
    summing.save_pretrained(tmp_path / "saved")
    for made in (Checkpoint.from_pretrained(tmp_path / "saved"), pickle.loads(pickle.dumps(summing))):
        np.testing.assert_allclose(Predictor(made).of_space(SPACE.name).predict(texts, NAMES).values, directly)
        assert made.sha256 == summing.sha256 != spelling.sha256
    summing.of_space(SPACE.name).save_pretrained(tmp_path / "of space")
    alone = Checkpoint.from_pretrained(tmp_path / "of space")
    np.testing.assert_allclose(Predictor(alone).predict(texts, NAMES).values, directly)


@pytest.mark.parametrize(
    "change",
    [
        {"rows": []},
        {"rows": [0, 0]},
        {"rows": [2**70]},
        {"costs": [[1.0]]},
        {"costs": [[float("nan"), 0.0]]},
        {"deviation": 0.0},
        {"deviation": "wide"},
        {"is_rate": 1},
        {"levels": [0.5, 0.4]},
    ],
)
def test_broken_sums_are_refused(summing: Checkpoint, tmp_path: Path, change: dict[str, Any]) -> None:
    summing.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    sound = {"rows": [0], "costs": [[1.0, 0.0]], "deviation": 0.1, "is_rate": False, "levels": []}
    for sums in (sound | change, [1], {"rows": [0]}):
        config["sums_by_space"][SPACE.name][LATENCY] = sums
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(CheckpointError, match=r"config\.json: expected a model of this version"):
            Checkpoint.from_pretrained(tmp_path)
    config["sums_by_space"][SPACE.name] = {"latency_ms@unheard": sound}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="sums: expected sums for objectives of the checkpoint"):
        Checkpoint.from_pretrained(tmp_path)


def test_what_is_read_off_cannot_be_a_sum_too(summing: Checkpoint, table: pd.DataFrame, tmp_path: Path) -> None:
    texts = rows_of_test(table)["text"].tolist()
    labels = np.where(np.arange(len(texts)) < 12, np.linspace(5, 9, len(texts)), np.nan)
    adapted = adapt(summing, make_pool(summing, texts, space=SPACE.name), LATENCY, labels)
    replace(adapted, sums_by_space=summing.sums_by_space).save_pretrained(tmp_path)
    with pytest.raises(
        CheckpointError, match=f"expected {LATENCY} to have either a readout or a sum of costs, got both"
    ):
        Checkpoint.from_pretrained(tmp_path)


def test_an_objective_learned_anew_is_no_sum_any_more(summing: Checkpoint, table: pd.DataFrame) -> None:
    texts = rows_of_test(table)["text"].tolist()
    labels = np.where(np.arange(len(texts)) < 12, np.linspace(5, 9, len(texts)), np.nan)
    adapted = adapt(summing, make_pool(summing, texts, space=SPACE.name), LATENCY, labels)
    assert list(adapted.sums_by_space[SPACE.name]) == [THROUGHPUT]
    only = {SPACE.name: {LATENCY: summing.sums_by_space[SPACE.name][LATENCY]}}
    alone = adapt(replace(summing, sums_by_space=only), make_pool(summing, texts, space=SPACE.name), LATENCY, labels)
    assert alone.sums_by_space == {}
    said = Predictor(adapted).of_space(SPACE.name).predict(texts, [LATENCY, THROUGHPUT]).median
    assert (np.abs(said[:, 0] - 7) < 4).all()
    before = Predictor(summing).of_space(SPACE.name).predict(texts, [THROUGHPUT]).median
    np.testing.assert_allclose(said[:, 1:], before, rtol=1e-6)  # 32 bits: one objective, and one of two


def test_test_rows_are_not_used(spelling: Checkpoint, summing: Checkpoint, table: pd.DataFrame) -> None:
    everything = Examples.of_table(table, table["text"].tolist(), NAMES)
    assert refine(spelling, SPACE.name, everything)[0].sha256 == summing.sha256


def test_refining_again_compares_with_what_is_spelled(summing: Checkpoint, examples: Examples) -> None:
    again, comparisons = refine(summing, SPACE.name, examples)
    assert again.sha256 == summing.sha256
    assert comparisons[0].spelled > 100 * comparisons[0].summed
    of_space, comparisons_of_space = refine(summing.of_space(SPACE.name), SPACE.name, examples)
    assert comparisons_of_space[:2] == comparisons[:2]
    assert set(of_space.sums) == set()


def test_a_sum_that_is_dropped_leaves_nothing_behind(
    spelling: Checkpoint, summing: Checkpoint, examples: Examples, table: pd.DataFrame
) -> None:
    levels = [round(0.005 * level, 4) for level in range(1, 100)]
    known = {SPACE.name: {LATENCY: levels, ACCURACY: levels}}
    before = replace(spelling, calibration_by_space=known)
    with_sums = replace(summing, calibration_by_space=known)
    labels = examples.labels.copy()
    labels[0, 1] = 0.0  # no logarithm
    after, comparisons = refine(with_sums, SPACE.name, replace(examples, labels=labels))
    assert [x.is_summed for x in comparisons] == [False, True, False]
    assert list(after.sums_by_space[SPACE.name]) == [THROUGHPUT]
    assert after.calibration_by_space == with_sums.calibration_by_space == known
    texts = rows_of_test(table)["text"].tolist()
    said = (Predictor(x).of_space(SPACE.name).predict(texts, [LATENCY]).values for x in (before, after))
    np.testing.assert_array_equal(*said)


def test_what_is_known_of_a_space_stays(spelling: Checkpoint, examples: Examples) -> None:
    elsewhere = replace(spelling, calibration_by_space={"fbnet": {ACCURACY: (), LATENCY: ()}})
    found, _ = refine(elsewhere, SPACE.name, examples)
    for space in (SPACE.name, "fbnet", "unheard"):
        assert found.objectives_of(space) == elsewhere.objectives_of(space)
    assert found.spaces == elsewhere.spaces


@pytest.mark.parametrize("labels", [np.full(180, 1e-6), np.geomspace(1e-170, 1e-3, 180)])
def test_labels_that_are_no_sums_are_spelled(spelling: Checkpoint, examples: Examples, labels: FloatArray) -> None:
    many, column = examples.labels.copy(), NAMES.index(THROUGHPUT)
    many[::2, column] = labels[::2]
    _, comparisons = refine(spelling, SPACE.name, replace(examples, labels=many))
    assert {x.objective: x.is_summed for x in comparisons}[LATENCY]
    beyond = examples.labelled([LATENCY])
    beyond.labels[3] = 1e31
    with pytest.raises(ValueError, match=rf"refine: expected labels of {LATENCY} up to 1e\+30, got 1e\+31"):
        refine(spelling, SPACE.name, beyond)


def test_too_few_valid_labels_compare_nothing(spelling: Checkpoint, examples: Examples) -> None:
    valid = np.flatnonzero(examples.splits == "valid")
    few = examples.rows(np.concatenate([np.flatnonzero(examples.splits == "train"), valid[: FEWEST_VALID - 1]]))
    assert refine(spelling, SPACE.name, few) == (spelling, [])
    labels = examples.labels.copy()
    labels[0, 1] = -1.0  # no logarithm
    same, comparisons = refine(spelling, SPACE.name, replace(examples, labels=labels))
    assert not comparisons[0].is_summed
    assert np.isnan(comparisons[0].summed)
    assert comparisons[0].why == "a label is not above 0"
    assert LATENCY not in same.sums_by_space[SPACE.name]
    nothing, _ = refine(spelling, SPACE.name, examples.labelled([NOISE]))
    assert nothing.sha256 == spelling.sha256


def test_many_labels_of_networks_with_equal_rows_are_not_called_too_few(
    spelling: Checkpoint, examples: Examples
) -> None:
    alike = replace(examples, texts=[f"Conv{row}\nPool\n" for row in range(len(examples))])  # no networks
    _, comparisons = refine(spelling, SPACE.name, alike.labelled([LATENCY]))
    assert comparisons[0].why == "the labels do not determine what rows cost"


@pytest.mark.parametrize(
    ("row", "objective", "label", "is_fitted", "is_summed"),
    [
        (0, LATENCY, 1e9, False, False),
        (0, LATENCY, 1e-9, True, True),  # harms the sum, which is closer nevertheless
        (0, THROUGHPUT, 1e-9, False, False),
        (0, THROUGHPUT, 1e9, True, True),
        (50, LATENCY, 1e9, True, False),
    ],
)
def test_a_stray_label_is_told_by_its_row(
    spelling: Checkpoint,
    examples: Examples,
    table: pd.DataFrame,
    row: int,
    objective: str,
    label: float,
    is_fitted: bool,
    is_summed: bool,
) -> None:
    known, stray = table[table["split"] != "test"], examples.labelled([objective])
    stray.labels[row] = label
    origins = Origins.of_tables([known], [Path("t.csv")])
    _, (found,) = refine(spelling, SPACE.name, replace(stray, origins=origins))
    assert (found.is_summed, bool(np.isfinite(found.summed))) == (is_summed, is_fitted)
    assert found.why == f"t.csv, row {known.index[row]} has {label:g}, far from the other labels"


@pytest.mark.filterwarnings("error")
def test_several_sums_are_asked_without_a_warning(summing: Checkpoint, table: pd.DataFrame) -> None:
    texts = rows_of_test(table)["text"].tolist()[:3]
    here = Predictor(summing).of_space(SPACE.name)
    below = here.cumulative_probabilities(texts, [LATENCY, THROUGHPUT], np.full((3, 2), 5.0))
    assert ((below >= 0) & (below <= 1)).all()


@pytest.mark.parametrize("recorded", [{}, {"test": {"here/mine.py:Mine": {}}}])
def test_sums_of_a_space_of_ones_own_are_found_by_any_path_to_its_file(
    spelling: Checkpoint, examples: Examples, recorded: dict[str, Any]
) -> None:
    found, _ = refine(replace(spelling, card={"commands": [], **recorded}), "/there/mine.py:Mine", examples)
    for path in ("here/mine.py:Mine", "/there/mine.py:Mine", "mine.py:Mine"):
        assert list(found.of_space(path).sums) == [LATENCY, THROUGHPUT]
        assert refine(found, path, examples)[0].sha256 == found.sha256
    assert found.of_space("here/yours.py:Mine").sums == {}
