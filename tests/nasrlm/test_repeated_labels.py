"""What labels of one network tell together, and how much one more of them would deviate."""

import numpy as np
import pytest

from nasrlm.repeated_labels import deviations_of_one, first_rows, mean_labels, places_of

TEXTS = ["b", "a", "b", "c", "a", "b"]


def test_each_text_has_the_means_of_its_labels() -> None:
    labels = np.array([[1.0, np.nan], [5.0, 2.0], [2.0, np.nan], [7.0, 8.0], [np.nan, 4.0], [6.0, np.nan]])
    rows, means = mean_labels(TEXTS, labels)
    assert rows.tolist() == first_rows(TEXTS).tolist() == [0, 1, 3]
    np.testing.assert_array_equal(means, [[3.0, np.nan], [5.0, 3.0], [7.0, 8.0]])
    assert places_of(TEXTS).tolist() == [0, 1, 0, 2, 1, 0]
    nothing, no_means = mean_labels([], np.empty((0, 2)))
    assert (nothing.shape, no_means.shape) == ((0,), (0, 2))


def test_labels_deviate_from_the_mean_of_others_as_repeated_ones_say() -> None:
    rng = np.random.default_rng(0)
    texts = np.repeat(np.arange(4000), 4)[: 4000 * 3 + 2000].tolist()  # some once or twice, most four times
    labels = np.array(texts) + 0.5 * rng.normal(size=len(texts))
    deviations = deviations_of_one(texts, labels)
    counts = np.bincount(texts)
    assert deviations == pytest.approx(0.5 * np.sqrt(1 - 1 / counts), rel=0.03)
    assert (deviations_of_one(["a", "b"], np.array([1.0, 9.0])) == 0).all()
    assert (deviations_of_one(["a", "b", "b"], np.array([1.0, 9.0, np.nan])) == 0).all()
    assert (deviations_of_one(["a", "a"], np.array([3.0, 3.0])) == 0).all()


def test_copies_of_a_label_are_the_label() -> None:
    labels = np.random.default_rng(0).normal(size=500)
    for copies in (3, 7):
        _, means = mean_labels(list(range(500)) * copies, np.tile(labels, copies)[:, None])
        np.testing.assert_array_equal(means[:, 0], labels)
