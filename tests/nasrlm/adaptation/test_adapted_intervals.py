"""How sure an adapted objective is: intervals are as wide as labels ask for."""

import numpy as np
import pytest

from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.pool import make_pool
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.predictor import Predictor
from tests.nasrlm.scenes import OBJECTIVES, layer_table

NEW = "latency_ms@unheard"


def test_a_text_that_was_measured_again_tells_once(trained: Checkpoint) -> None:
    table = layer_table(200, seed=1).drop_duplicates("text")
    texts, true = table["text"].tolist(), table[OBJECTIVES[1]].to_numpy() ** 1.5
    pool = make_pool(trained, [*texts, *texts, *texts])
    once, copied, again = np.full((3, 3, len(texts)), np.nan)
    once[0, :40] = true[:40]
    copied[:, :40] = true[:40]
    again[:, :40] = true[:40] * np.array([[0.6], [1.0], [1.4]])
    first, second, third = (
        Predictor(adapt(trained, pool, NEW, labels.ravel())).predict(texts, [NEW]).values
        for labels in (once, copied, again)
    )
    np.testing.assert_allclose(second, first, rtol=1e-6)
    np.testing.assert_allclose(third[:, 0, 1], first[:, 0, 1], rtol=1e-4)
    rng = np.random.default_rng(0)
    labels = true[40:] * np.exp(0.4 * rng.normal(size=len(true) - 40))  # one each, as it deviates among the three
    low, high = third[40:, 0, 0], third[40:, 0, 2]
    assert 0.65 < np.mean((labels > low) & (labels < high)) < 0.95
    assert np.mean((labels > first[40:, 0, 0]) & (labels < first[40:, 0, 2])) < 0.65
    with pytest.raises(
        ValueError, match="expected labels of latency_ms@unheard for different texts, got 3 for a single"
    ):
        adapt(trained, pool, NEW, np.where(np.arange(3 * len(texts)) % len(texts) == 0, 1.0, np.nan))


@pytest.mark.filterwarnings("ignore:adapt. expected labels of .* that differ")
@pytest.mark.parametrize(
    ("label", "step"),
    [(1.0, 0.0), (7.0, 0.0), (1.0, 1e-8)],  # the logarithms of ten sevens deviate by 2e-16, of ones by 0
)
def test_equal_labels_leave_an_interval(trained: Checkpoint, label: float, step: float) -> None:
    pool, places = make_pool(trained, layer_table(30)["text"].tolist()), np.arange(30)
    adapted = adapt(trained, pool, NEW, np.where(places < 10, label + step * places, np.nan))
    prediction = Predictor(adapted).predict(pool.texts, [NEW])
    np.testing.assert_allclose(prediction.median, label, rtol=0.01)
    assert (prediction.low < 0.96 * label).all()
    assert (prediction.high > 1.04 * label).all()


@pytest.mark.filterwarnings("ignore:adapt. expected labels of latency_ms@unheard above 0")
def test_latencies_of_which_some_are_zero_are_never_negative(trained: Checkpoint) -> None:
    texts = layer_table(60, seed=1)["text"].tolist()
    labels = np.where(np.arange(60) < 20, np.arange(60) % 2 * 3.0, np.nan)
    prediction = Predictor(adapt(trained, make_pool(trained, texts), NEW, labels)).predict(texts, [NEW])
    assert prediction.values.min() == 0.0
    assert prediction.high.max() > 1.0


def test_a_repeat_that_failed_is_told_and_leaves_intervals_of_one_scale(trained: Checkpoint) -> None:
    table = layer_table(200, seed=1).drop_duplicates("text")
    texts, true = table["text"].tolist(), table[OBJECTIVES[1]].to_numpy()
    labels = np.full((2, len(texts)), np.nan)
    labels[:, :15] = true[:15]
    labels[1, 3] = 0.0
    pool = make_pool(trained, [*texts, *texts])
    with pytest.warns(UserWarning, match=f"expected labels of {NEW} above 0, got 1 of 0"):
        adapted = adapt(trained, pool, NEW, labels.ravel())
    prediction = Predictor(adapted).predict(texts, [NEW])
    assert np.median(prediction.high - prediction.low) < 4 * true.std()


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


def test_one_label_in_twenty_that_is_far_off_does_not_widen_all_intervals(trained: Checkpoint) -> None:
    table, rng = layer_table(400, seed=1), np.random.default_rng(0)
    pool = make_pool(trained, table["text"].tolist())
    true = table[OBJECTIVES[1]].to_numpy() * np.exp(0.05 * rng.normal(size=400))
    true[::20] *= 5
    adapted = adapt(trained, pool, NEW, np.where(np.arange(400) < 200, true, np.nan))
    prediction = Predictor(adapted).predict(list(pool.texts)[200:], [NEW])
    inside = (prediction.low[:, 0] <= true[200:]) & (true[200:] <= prediction.high[:, 0])
    assert 0.7 < inside.mean() < 0.9
