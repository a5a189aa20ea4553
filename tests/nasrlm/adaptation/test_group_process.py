"""A Gaussian process of groups of features: known answers, scales that fit, and labels back in their unit."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal, spearmanr

from nasrlm.adaptation import group_process
from nasrlm.adaptation.group_process import JITTER, PRIOR, GroupProcess
from nasrlm.adaptation.label_scales import Standardised
from nasrlm.arrays import FloatArray

RNG = np.random.default_rng(5)
GROUPS = [RNG.normal(size=(24, 2)), RNG.normal(size=(24, 3))]
KINDS = np.arange(24) % 5
LABELS = GROUPS[0][:, 0] + GROUPS[1][:, 1] ** 2 + 0.1 * KINDS


def covariance_in_loops(scales: FloatArray) -> FloatArray:
    """(24, 24) of two curved groups, the second also linear, and kinds, by their variances and lengths."""
    found = np.zeros((24, 24))
    for i in range(24):
        for j in range(24):
            for group, variance, length in zip(GROUPS, scales[0:4:2], scales[1:4:2], strict=True):
                distance = np.sqrt(5 * ((group[i] - group[j]) ** 2).mean()) / length
                found[i, j] += variance * (1 + distance + distance**2 / 3) * np.exp(-distance)
            found[i, j] += scales[4] * (GROUPS[1][i] * GROUPS[1][j]).mean() + scales[5] * (KINDS[i] == KINDS[j])
    return found


def test_a_process_is_its_definition() -> None:
    process = GroupProcess([np.empty((24, 0)), *GROUPS], linear=(0, 2), kinds=KINDS)
    process.fit(np.arange(15), LABELS[:15], Standardised.of(LABELS))
    scales = np.exp(process._scales.logs)
    covariance, rows, new = covariance_in_loops(scales), np.arange(15), np.arange(15, 24)
    np.testing.assert_allclose(process.covariance(np.arange(24), np.arange(24)), covariance)
    of_labels = covariance[:15, :15] + (scales[6] + JITTER) * np.eye(15)
    weights = np.linalg.solve(of_labels, covariance[rows][:, new]).T
    mean, deviation = process.predict(new)
    targets = (LABELS[:15] - LABELS.mean()) / LABELS.std()
    np.testing.assert_allclose(mean, weights @ targets)
    logarithm = multivariate_normal.logpdf(targets, np.zeros(15), of_labels)
    assert process.surprise == pytest.approx(-logarithm - 7.5 * np.log(2 * np.pi))
    np.testing.assert_allclose(deviation**2, (covariance[new][:, new] - weights @ covariance[rows][:, new]).diagonal())
    np.testing.assert_allclose(process.expected_scores(new), mean)
    np.testing.assert_allclose(process.expect(new), LABELS.mean() + LABELS.std() * mean)


def test_scales_are_fitted_by_likelihood_and_prior_and_their_slopes(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, Any] = {}

    def minimize(surprise: Any, start: FloatArray, **options: Any) -> SimpleNamespace:
        found.update(surprise=surprise, start=start)
        return SimpleNamespace(x=start)

    monkeypatch.setattr(group_process, "minimize", minimize)
    GroupProcess(GROUPS, linear=(1,), kinds=KINDS).fit(np.arange(24), LABELS, Standardised(1.0, 2.0))
    surprise, start = found["surprise"], found["start"]
    order = np.random.default_rng(0).permutation(24)
    values = []
    for shift in (np.zeros(7), np.linspace(-0.5, 0.7, 7)):
        scales = np.exp(start + shift)
        covariance = covariance_in_loops(scales)[np.ix_(order, order)] + (scales[6] + JITTER) * np.eye(24)
        likelihood = multivariate_normal.logpdf((LABELS[order] - 1) / 2, np.zeros(24), covariance)
        value, slopes = surprise(start + shift)
        values.append(value + likelihood - PRIOR * (shift**2).sum())
        np.testing.assert_allclose(slopes, approx_fprime(start + shift, lambda x: surprise(x)[0]), rtol=1e-4, atol=1e-4)
    assert values[0] == pytest.approx(values[1])  # all but a constant


def test_a_group_that_says_nothing_is_not_listened_to() -> None:
    rng = np.random.default_rng(0)
    telling, noise = rng.normal(size=(300, 2)), rng.normal(size=(300, 40))
    labels = np.exp(telling[:, 0] - 2 * telling[:, 1] ** 2)
    rows, others = np.arange(60), np.arange(60, 300)
    together, _ = GroupProcess([telling, noise]).fit(rows, labels[rows]).predict(others)
    mixed, _ = GroupProcess([np.hstack([telling, noise])]).fit(rows, labels[rows]).predict(others)
    assert spearmanr(together, labels[others]).statistic > 0.9
    assert spearmanr(mixed, labels[others]).statistic < 0.6


def test_it_is_sure_where_it_has_labels_and_unsure_far_away() -> None:
    x = np.concatenate([np.linspace(-1, 1, 20), [30.0]])[:, None]
    process = GroupProcess([x]).fit(np.arange(20), np.sin(3 * x[:20, 0]))
    mean, deviation = process.predict(np.arange(21))
    assert process.scale.backward(mean[:20]) == pytest.approx(np.sin(3 * x[:20, 0]), abs=0.15)
    assert deviation[20] > 3 * deviation[:20].max()


def test_outliers_are_hardly_followed_on_request() -> None:
    x = np.random.default_rng(0).normal(size=(60, 2))
    kinds, labels = np.arange(60) // 2, x @ [2.0, 1.0]
    seen, scale = np.arange(0, 60, 2), Standardised(0.0, 2.0)
    labels[0] += 6.0  # but not its twin's, and both are of one kind
    follows, doubts, doubts_beyond = (
        GroupProcess([x], linear=(0,), kinds=kinds).fit(seen, labels[seen], scale, trusted=trusted)
        for trusted in (np.inf, 0.0, 2.0)
    )
    places = np.array([0, *range(3, 60, 2)])
    expected = np.array([x[0] @ [2.0, 1.0], *labels[3::2]])
    errors = [np.abs(process.expect(places) - expected) for process in (follows, doubts, doubts_beyond)]
    for of_doubting in errors[1:]:
        assert of_doubting[0] < 0.5 * errors[0][0]
        assert of_doubting[1:].mean() < errors[0][1:].mean()


def test_what_differs_as_much_as_is_to_be_expected_is_trusted() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    labels = x @ [2.0, 1.0] + rng.normal(scale=0.5, size=40)
    plain, doubts, trusts = (
        GroupProcess([x]).fit(np.arange(30), labels[:30], trusted=trusted).predict(np.arange(30, 40))
        for trusted in (np.inf, 0.0, 4.0)
    )
    np.testing.assert_array_equal(trusts, plain)
    assert (doubts[1] > plain[1]).all()


def test_a_stronger_prior_keeps_scales_near_their_starting_values() -> None:
    x = np.linspace(-3, 3, 60)[:, None]
    fitted, nearer, kept = (
        GroupProcess([x]).fit(np.arange(60), np.sin(6 * x[:, 0]), prior=prior).kernels[0] for prior in (0.01, 1.0, 1e6)
    )
    np.testing.assert_allclose(kept, [0.5, 1.0], rtol=1e-3)
    assert fitted[1] < nearer[1] < kept[1]


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected \(N, F\) features of the same N rows, got \(3, 1\), \(2, 1\)\."):
        GroupProcess([np.zeros((3, 1)), np.zeros((2, 1))])
    assert np.isfinite(GroupProcess([np.eye(2)]).fit(np.arange(2), np.array([1.0, 2.0])).predict(np.arange(2))).all()
    with pytest.raises(ValueError, match="expected two or more labelled rows, got 1 and 1 labels"):
        GroupProcess([np.zeros((3, 1))]).fit(np.array([0]), np.array([1.0]))


def test_a_trend_goes_on_beyond_the_labels() -> None:
    x = np.linspace(-3, 3, 61)[:, None]
    inside = np.arange(20, 41)
    follows, levels_off = (GroupProcess([x], linear=linear).fit(inside, 2 * x[inside, 0]) for linear in ((0,), ()))
    errors = [abs(p.scale.backward(p.predict(np.array([60]))[0])[0] - 6) for p in (follows, levels_off)]
    assert errors[0] < 0.7 * errors[1]


def test_rows_of_one_kind_share_what_their_features_do_not_explain() -> None:
    rng = np.random.default_rng(0)
    kinds = np.repeat(np.arange(40), 3)
    x = rng.normal(size=(120, 4))
    labels = x[:, 0] + rng.normal(size=40)[kinds]
    seen, twins = np.arange(0, 120, 3), np.arange(1, 120, 3)
    knows, guesses = (
        GroupProcess([x], kinds=k).fit(np.r_[seen, seen[:10] + 2], labels[np.r_[seen, seen[:10] + 2]])
        for k in (kinds, None)
    )
    told, deviation = knows.predict(twins)
    assert (
        np.abs(told - knows.scale.forward(labels[twins])).mean()
        < 0.6 * np.abs(guesses.predict(twins)[0] - guesses.scale.forward(labels[twins])).mean()
    )
    assert deviation.shape == (40,)
    drawn = knows.sample(np.r_[twins[:2], seen[:1]], 4000, np.random.default_rng(1))
    mean, deviation = knows.predict(np.r_[twins[:2], seen[:1]])
    np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=0.05)
    np.testing.assert_allclose(drawn.std(axis=1), deviation, atol=0.05)


def test_rows_are_compared_in_blocks_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(90, 3))
    whole = GroupProcess([x]).fit(np.arange(70), x[:70, 0] ** 2)
    monkeypatch.setattr("nasrlm.adaptation.group_process.ROWS_AT_ONCE", 16)
    parts = GroupProcess([x]).fit(np.arange(70), x[:70, 0] ** 2)
    np.testing.assert_allclose(parts.predict(np.arange(90)), whole.predict(np.arange(90)), atol=1e-9)


def test_a_row_left_out_is_expected_by_all_others() -> None:
    x = np.random.default_rng(1).normal(size=(30, 2))
    labels = x[:, 0] - x[:, 1] ** 2
    process = GroupProcess([x]).fit(np.arange(30), labels, Standardised.of(labels))
    scores = Standardised.of(labels).forward(labels)
    covariance = process.covariance(np.arange(30), np.arange(30)) + process.noise * np.eye(30)
    rest = np.arange(1, 30)
    expected = covariance[0, rest] @ np.linalg.solve(covariance[np.ix_(rest, rest)], scores[rest])
    assert process.left_out()[0] == pytest.approx(scores[0] - expected)
    assert process.weights_for(scores) @ covariance[:, 3] == pytest.approx(scores[3])


def test_rows_that_a_process_was_not_made_with_are_answered_alike() -> None:
    rng = np.random.default_rng(0)
    groups = [rng.normal(size=(60, 3)), rng.normal(size=(60, 2)), np.empty((60, 0))]
    labels = groups[0][:, 0] + groups[1][:, 1]
    of_all = GroupProcess(groups, linear=(1,)).fit(np.arange(40), labels[:40])
    of_some = GroupProcess([x[:40] for x in groups], linear=(1,)).fit(np.arange(40), labels[:40])
    others, rows = [x[40:] for x in groups], np.arange(20)
    for given in (others, [*others, rng.normal(size=(20, 4))]):  # groups that it does not know have no effect
        found = of_some.for_others(given).predict(rows)
        np.testing.assert_allclose(found, of_all.predict(np.arange(40, 60)), rtol=1e-9)
