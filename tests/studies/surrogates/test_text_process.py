"""An objective that the predictor does not know, learned from what texts say of their networks."""

import pickle
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import kendalltau

from converters import to_measured_text
from nasrlm.arrays import FloatArray
from nasrlm.text.counts import counts_and_sizes, log_sizes
from spaces import get_space
from studies.surrogates.text_parts import FARTHEST, TextParts
from studies.surrogates.text_process import TextGroups, TextProcess

SPACE = get_space("nasbench_macro")
NAME = "latency_ms@mine"
RNG = np.random.default_rng(0)
ARCHITECTURES = [SPACE.sample(RNG) for _ in range(120)]
TEXTS = [to_measured_text(SPACE, architecture) for architecture in ARCHITECTURES]
# Blocks that expand sixfold cost three times as much as others.
TRUE = np.array([1.0 + SPACE.format(x).count("1") + 3 * SPACE.format(x).count("2") for x in ARCHITECTURES])


def nothing(texts: Sequence[str]) -> FloatArray:
    """A predictor that has no idea."""
    return np.zeros((len(texts), 2))


@pytest.fixture(scope="module")
def groups() -> TextGroups:
    return TextGroups(nothing, TEXTS[:40])


def test_what_a_network_is_made_of_ranks_it_where_the_predictor_has_no_idea(groups: TextGroups) -> None:
    process = TextProcess(groups, NAME, TEXTS[:30], TRUE[:30])
    low, median, high = process.quantiles(TEXTS[40:], np.array([-1.28, 0.0, 1.28])).T
    assert kendalltau(median, TRUE[40:])[0] > 0.85
    assert 0.6 < np.mean((low <= TRUE[40:]) & (TRUE[40:] <= high)) <= 1.0
    assert np.median(high - low) < 2 * TRUE.std()


def test_ten_speeds_may_follow_the_activations() -> None:
    """On a GPU that runs many images at once, whatever a predictor guesses of another one."""
    space, rng = get_space("mnasnet"), np.random.default_rng(0)
    texts = [to_measured_text(space, space.sample(rng)) for _ in range(60)]
    speeds = 1e9 / np.expm1(log_sizes(texts)[:, 1])
    guesses = dict(zip(texts, rng.normal(size=(len(texts), 20)), strict=True))
    guessing = TextGroups(lambda asked: np.array([guesses[text] for text in asked]), texts)
    found = TextProcess(guessing, "throughput_ips@mine", texts[:10], speeds[:10]).quantiles(texts[10:], np.zeros(1))
    assert kendalltau(found[:, 0], speeds[10:])[0] > 0.95  # 0.01 without sizes


def test_sizes_that_are_equal_in_the_pool_are_no_features() -> None:
    """Even though their standard deviation is not 0, but what rounding leaves of it."""
    space = get_space("nasbench201")
    cells = sorted(set(permutations((1, 1, 3, 3, 3, 4))))[:20]
    texts = [to_measured_text(space, space.decode(cell)) for cell in cells]
    macs = log_sizes(texts)[:, 0]
    assert np.ptp(macs) == 0 < macs.std()
    assert TextParts(texts).of(texts)[-1].shape == (20, 2)


def test_answers_do_not_depend_on_what_is_asked_together(groups: TextGroups) -> None:
    process, level = TextProcess(groups, NAME, TEXTS[:30], TRUE[:30]), np.array([0.5])
    together = process.quantiles(TEXTS[40:60], level)
    np.testing.assert_allclose(together[5:7], process.quantiles(TEXTS[45:47], level))
    assert process.quantiles([], level).shape == (0, 1)


def test_samples_are_joint_and_have_the_distributions_of_labels_without_noise(groups: TextGroups) -> None:
    process = TextProcess(groups, NAME, TEXTS[:30], TRUE[:30])
    drawn = process.sample([*TEXTS[40:44], TEXTS[40]], 4000, np.random.default_rng(1))
    assert drawn.shape == (5, 4000)
    expected = process.quantiles(TEXTS[40:44], np.array([-1.28, 0.0, 1.28]))
    np.testing.assert_allclose(np.quantile(drawn[:4], (0.1, 0.5, 0.9), axis=1).T, expected, rtol=0.05)
    np.testing.assert_allclose(drawn[4], drawn[0], rtol=1e-3)
    noisy = TextProcess(groups, NAME, TEXTS, TRUE * np.random.default_rng(2).lognormal(0, 0.3, size=len(TEXTS)))
    low, high = noisy.quantiles(TEXTS[40:41], np.array([-1.0, 1.0]))[0]
    assert noisy.sample(TEXTS[40:41], 2000, np.random.default_rng(3)).std() < 0.7 * (high - low) / 2


def test_each_text_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    def count(texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        counted.extend(texts)
        return counts_and_sizes(texts)

    monkeypatch.setattr("studies.surrogates.text_parts.counts_and_sizes", count)
    groups = TextGroups(nothing, TEXTS[:10])
    groups.of([*TEXTS[:5], TEXTS[10], TEXTS[10]])
    assert sorted(counted) == sorted({*TEXTS[:11]})


def test_features_vary_by_one_over_the_pool_and_none_is_far_away(groups: TextGroups) -> None:
    features = groups.of(TEXTS[:40])
    assert groups.linear == (0, len(features) - 2, len(features) - 1)
    assert [np.mean(x.var(axis=0)) for x in features[1:]] == pytest.approx([1.0] * (len(features) - 1), rel=0.1)
    other = to_measured_text(get_space("mnasnet"), get_space("mnasnet").sample(np.random.default_rng(0)))
    assert np.abs(groups.of([other])[-1]).max() <= FARTHEST


def test_texts_that_are_no_networks_have_what_the_predictor_says() -> None:
    groups = TextGroups(lambda texts: np.array([[float(len(text))] for text in texts]), ["a", "bb", "ccc"])
    assert groups.linear == (0,)
    assert [x.tolist() for x in groups.of(["dddd"])] == [[[4.0]]]


def test_a_copy_counts_anew(groups: TextGroups) -> None:
    process = TextProcess(groups, NAME, TEXTS[:30], TRUE[:30])
    groups.of(TEXTS)
    copied = pickle.loads(pickle.dumps(process))
    assert len(pickle.dumps(copied)) < 60 * len(TEXTS[0]) + 2_000_000
    assert not copied._groups._parts._counted
    level = np.array([0.3])
    np.testing.assert_allclose(copied.quantiles(TEXTS[40:44], level), process.quantiles(TEXTS[40:44], level))


def test_predictions_count_where_they_make_results_probable(groups: TextGroups) -> None:
    """A predictor that knows the space, of which texts say little in few results."""
    known = dict(zip(TEXTS, (TRUE - TRUE.mean()) / TRUE.std(), strict=True))
    knowing = TextGroups(lambda texts: np.array([[known[text]] for text in texts]).reshape(-1, 1), TEXTS[:40])
    shares = [TextProcess(each, NAME, TEXTS[:12], TRUE[:12])._shares for each in (knowing, groups)]
    assert shares[0][0] > 0.5 > shares[1][0]
