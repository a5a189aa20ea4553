"""What labels of one network tell together, and how much one more of them would deviate."""

from collections import defaultdict
from collections.abc import Hashable
from itertools import chain

import numpy as np
import pytest

from converters import to_measured_text
from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.pool import make_pool
from nasrlm.adaptation.repeated_labels import deviations_of_one, first_of_each, first_rows, mean_labels, places_of
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.predictor import Predictor
from spaces import get_space

TEXTS = ["b", "a", "b", "c", "a", "b"]


def test_each_text_has_the_means_of_its_labels() -> None:
    labels = np.array([[1.0, np.nan], [5.0, 2.0], [2.0, np.nan], [7.0, 8.0], [np.nan, 4.0], [6.0, np.nan]])
    rows, means = mean_labels(TEXTS, labels)
    assert rows.tolist() == first_rows(TEXTS).tolist() == [0, 1, 3]
    np.testing.assert_array_equal(means, [[3.0, np.nan], [5.0, 3.0], [7.0, 8.0]])
    assert places_of(TEXTS).tolist() == [0, 1, 0, 2, 1, 0]
    assert first_of_each(TEXTS).tolist() == [0, 1, 0, 3, 1, 0]
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


@pytest.mark.usefixtures("learning_little")
@pytest.mark.filterwarnings("ignore:adapt. expected labels of .* that differ")
def test_spellings_of_a_network_that_share_a_label_tell_once(checkpoint: Checkpoint) -> None:
    space, rng = get_space("nasbench201"), np.random.default_rng(0)
    drawn: dict[str, list[Hashable]] = defaultdict(list)
    for _ in range(600):
        architecture = space.sample(rng)
        drawn[space.architecture_key(architecture)].append(architecture)
    alike = ({to_measured_text(space, x): None for x in cells} for cells in drawn.values() if len(cells) > 2)
    several = [list(spellings)[:3] for spellings in alike if len(spellings) > 2][:10]
    assert len(several) == 10
    texts = list(chain.from_iterable(several))
    pool, of_network = make_pool(checkpoint, texts), np.repeat(np.linspace(5.0, 9.0, len(several)), 3)
    first_alone = np.where(np.arange(len(texts)) % 3 == 0, of_network, np.nan)
    apart = of_network * np.linspace(1.0, 1.01, len(texts))
    for objective in ("latency_ms@mine", "accuracy@mine"):
        shared, alone, differing = (
            Predictor(adapt(checkpoint, pool, objective, labels)).predict(texts, [objective]).values
            for labels in (of_network, first_alone, apart)
        )
        np.testing.assert_array_equal(shared, alone)
        assert not np.allclose(shared, differing, rtol=1e-3)
    two = np.full(len(texts), np.nan)
    two[:2] = 5.0  # of one network
    assert np.isfinite(Predictor(adapt(checkpoint, pool, objective, two)).predict(texts, [objective]).values).all()
