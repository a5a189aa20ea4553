"""Processes of few labels, averaged: as if every one were computed by itself; what is followed is found."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from nasrlm.adaptation import averaged_process
from nasrlm.adaptation.averaged_process import (
    AGREEMENT,
    CONSTANT,
    FOLLOWED,
    NOISES,
    NONE_FOLLOWED,
    SPREADS,
    AveragedProcess,
    prior_covariance,
)
from nasrlm.arrays import FloatArray

ROWS = np.array([1, 3, 4, 8, 9])


def scene(seed: int, count: int = 12) -> tuple[FloatArray, FloatArray]:
    """Features and known objectives."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 4)), rng.normal(size=(count, 3))


def fitted(features: FloatArray, known: FloatArray, targets: FloatArray, direction: float = 0.0) -> AveragedProcess:
    """A process that may follow each of the known objectives alike."""
    count = known.shape[1]
    return AveragedProcess(features, known, targets, np.full(count, 1 / max(count, 1)), np.full(count, direction))


def processes(
    features: FloatArray, known: FloatArray, directions: FloatArray
) -> Iterator[tuple[float, float, FloatArray, FloatArray]]:
    """Prior, noise, mean and covariance of each."""
    alike, expected = prior_covariance(features, features), AGREEMENT * FOLLOWED**0.5 * directions
    for (spread, likely), (noise, share) in itertools.product(SPREADS.items(), NOISES.items()):
        prior, nothing = likely * share, np.zeros(len(known))
        yield prior * NONE_FOLLOWED, spread**2 * noise, nothing, spread**2 * (alike + CONSTANT)
        for objective, slope in zip(known.T, expected, strict=True):
            around = (1 - FOLLOWED) * alike + CONSTANT + (FOLLOWED - slope**2) * np.outer(objective, objective)
            one = prior * (1 - NONE_FOLLOWED) / known.shape[1]
            yield one, spread**2 * noise, spread * slope * objective, spread**2 * around


def one_by_one(
    features: FloatArray, known: FloatArray, rows: NDArray[np.intp], targets: FloatArray, directions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means and deviations of all texts, by the book."""
    shares, means, variances = [], [], []
    for prior, noise, expected, covariance in processes(features, known, directions):
        own = covariance[np.ix_(rows, rows)] + noise * np.eye(len(rows))
        across = covariance[:, rows]
        shares.append(prior * multivariate_normal(expected[rows], own).pdf(targets))
        means.append(expected + across @ np.linalg.solve(own, targets - expected[rows]))
        variances.append(covariance.diagonal() + noise - (across * np.linalg.solve(own, across.T).T).sum(axis=1))
    weights = np.array(shares) / sum(shares)
    mean = weights @ np.array(means)
    return mean, np.sqrt(weights @ (np.array(variances) + (np.array(means) - mean) ** 2))


@pytest.mark.parametrize("directions", [(0.0, 0.0, 0.0), (1.0, -1.0, 0.0)])
def test_as_every_process_by_itself(monkeypatch: pytest.MonkeyPatch, directions: tuple[float, ...]) -> None:
    monkeypatch.setattr(averaged_process, "NEGLIGIBLE", 1e-300)
    (features, known), targets = scene(0), np.random.default_rng(1).normal(size=len(ROWS))
    signs = np.array(directions)
    process = AveragedProcess(features[ROWS], known[ROWS], targets, np.full(3, 1 / 3), signs)
    expected = one_by_one(features, known, ROWS, targets, signs)
    np.testing.assert_allclose(process.predict(features, known), expected, atol=1e-12)
    errors, deviations = process.left_out()
    for place, row in enumerate(ROWS):
        others = np.arange(len(ROWS)) != place
        mean, deviation = one_by_one(features, known, ROWS[others], targets[others], signs)
        np.testing.assert_allclose(errors[place], targets[place] - mean[row], atol=1e-12)
        np.testing.assert_allclose(deviations[place], deviation[row], atol=1e-12)


def test_what_is_negligible_moves_nothing() -> None:
    features, known = scene(2, count=60)
    rows = np.arange(30)
    targets = known[rows, 1] + 0.1 * np.random.default_rng(3).normal(size=30)
    process = fitted(features[rows], known[rows], targets)
    expected = one_by_one(features, known, rows, targets, np.zeros(3))
    np.testing.assert_allclose(process.predict(features, known), expected, atol=0.01)


def test_the_one_objective_that_labels_follow_is_found_among_many() -> None:
    rng = np.random.default_rng(0)
    known = rng.normal(size=(500, 40))
    rows, truth = np.arange(10), -2.0 * known[:, 7]
    labels = (truth[rows] - truth[rows].mean()) / truth[rows].std()
    mean, _ = fitted(known[rows], known[rows], labels).predict(known, known)
    assert np.corrcoef(mean[10:], truth[10:])[0, 1] > 0.98
    by_all_alike = prior_covariance(known, known[rows]) @ labels
    assert np.corrcoef(by_all_alike, truth)[0, 1] < 0.7


def test_labelled_networks_may_all_be_larger_than_others() -> None:
    rng = np.random.default_rng(0)
    known = rng.normal(size=(500, 12))
    truth = known[:, 7] + 0.05 * rng.normal(size=500)
    rows = np.flatnonzero((known[:, 7] > 0.5) & (known[:, 7] < 1.5))[:10]
    labels = (truth[rows] - truth[rows].mean()) / truth[rows].std()
    mean, _ = fitted(known[rows], known[rows], labels).predict(known, known)
    assert np.corrcoef(mean, truth)[0, 1] > 0.9


def test_an_expected_direction_helps_few_labels_and_harms_little_if_wrong() -> None:
    rng = np.random.default_rng(0)
    known = rng.normal(size=(500, 12))
    truth = known[:, 7] + 0.05 * rng.normal(size=500)

    def found(count: int, direction: float) -> float:
        drawn = np.split(np.arange(8 * count), 8)
        scaled = [(truth[rows] - truth[rows].mean()) / truth[rows].std() for rows in drawn]
        means = [
            fitted(known[rows], known[rows], labels, direction).predict(known, known)[0]
            for rows, labels in zip(drawn, scaled, strict=True)
        ]
        return float(np.mean([np.corrcoef(mean, truth)[0, 1] for mean in means]))

    assert found(5, 1.0) > found(5, 0.0) + 0.03
    assert found(10, -1.0) > 0.8
    assert found(20, -1.0) > 0.99


def test_noise_is_told_by_labels_that_scatter() -> None:
    rng = np.random.default_rng(0)
    known = rng.normal(size=(400, 5))
    labelled, others = known[:200], known[200:]
    scatter = rng.normal(size=200)
    exact, noisy = (
        fitted(labelled, labelled, labelled[:, 0] + size * scatter).predict(others, others)[1].mean()
        for size in (0.05, 0.6)
    )
    assert exact < 0.2 < 0.5 < noisy < 0.75


def test_labels_of_mostly_noise_are_told_from_labels_that_follow_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    known = rng.normal(size=(2000, 12)) + 2 * rng.normal(size=(2000, 1))  # costs of devices that are much alike
    known /= known.std(axis=0)
    noisy = known[:, 7] + rng.normal(size=2000)

    def found() -> float:
        means = []
        for rows in np.split(np.arange(500), 50):
            labels = (noisy[rows] - noisy[rows].mean()) / noisy[rows].std()
            process = fitted(known[rows], known[rows], labels, 1.0)
            means.append(process.predict(known, known)[0])
        return float(np.mean([np.corrcoef(mean, known[:, 7])[0, 1] for mean in means]))

    with_much_noise = found()
    monkeypatch.setattr(averaged_process, "NOISES", {0.01: 0.4, 0.03: 0.4, 0.1: 0.15, 0.3: 0.05})
    assert with_much_noise > found() + 0.02


def test_without_known_objectives_features_tell_alone() -> None:
    features, _ = scene(4, count=300)
    truth, nothing = features[:, 0], np.zeros((300, 0))
    mean, _ = fitted(features[:40], nothing[:40], truth[:40]).predict(features, nothing)
    assert np.corrcoef(mean[40:], truth[40:])[0, 1] > 0.9
