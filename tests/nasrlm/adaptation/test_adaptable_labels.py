"""Labels that cannot be learned, which are refused before any work where that is known, and odd ones."""

import warnings
from functools import partial

import numpy as np
import pytest

from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.adaptable_labels import check_sizes, without_strays
from nasrlm.adaptation.pool import Pool, make_pool
from nasrlm.checkpoints.checkpoint import Checkpoint
from tests.nasrlm.adaptation.test_adaptation import NEW, summaries_with
from tests.nasrlm.scenes import layer_table, numbered


def test_labels_too_large_to_learn_matter_before_some_are_chosen_if_too_few_are_left() -> None:
    labels = np.array([1.0, np.nan, -1e35, 2.0, 1e31])
    check_sizes("delta@new", labels, 2)
    for fewest in (3, 9, None):
        with pytest.raises(ValueError, match=r"adapt: expected labels of delta@new up to 1e\+30, got 1e\+35\."):
            check_sizes("delta@new", labels, fewest)


@pytest.mark.usefixtures("learning_little")
def test_labels_that_are_all_equal_are_told(checkpoint: Checkpoint) -> None:
    pool = make_pool(checkpoint, layer_table(12)["text"].tolist())
    labels = np.where(np.arange(12) < 5, 7.0, np.nan)
    for name in ("latency_ms@new", "accuracy@new"):
        with pytest.warns(
            UserWarning, match=f"adapt: expected labels of {name} that differ, got 5 times 7: no ranking"
        ):
            adapt(checkpoint, pool, name, labels)


@pytest.mark.usefixtures("learning_little")
def test_accuracies_that_look_like_fractions_are_told(checkpoint: Checkpoint) -> None:
    pool = make_pool(checkpoint, layer_table(12)["text"].tolist())
    labels = np.linspace(0.5, 0.93, 12)
    with pytest.warns(UserWarning, match=r"percent, 0 to 100, as labels of accuracy@new, got none above 0\.93\."):
        adapt(checkpoint, pool, "accuracy@new", labels)
    with warnings.catch_warnings(action="error"):
        adapt(checkpoint, pool, "accuracy@new", 100 * labels)
        adapt(checkpoint, pool, NEW, labels)


@pytest.mark.parametrize("named", [["a"], [], ["a"] * 5])
def test_names_are_of_the_texts(checkpoint: Checkpoint, named: list[str]) -> None:
    pool = Pool(numbered(4), ("params@x",), np.ones((4, 1)), summaries_with(np.ones((4, 2)), checkpoint))
    for learn in (partial(adapt, checkpoint), without_strays):
        with pytest.raises(ValueError, match=rf"adapt: expected one name per text \(4\), got {len(named)}\."):
            learn(pool, NEW, np.arange(4.0), names=named)


def test_more_labels_than_can_be_learned_are_refused(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nasrlm.adaptation.adaptable_labels.MOST_LABELS", 3)
    pool = Pool(numbered(4), ("params@x",), np.ones((4, 1)), summaries_with(np.ones((4, 2)), checkpoint))
    with pytest.raises(ValueError, match=r"expected 2 to 3 labels of latency_ms@unheard, got 4\. Leave some out, or"):
        adapt(checkpoint, pool, NEW, np.arange(1.0, 5.0))
