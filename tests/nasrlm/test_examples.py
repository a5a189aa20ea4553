"""Texts with labels: what a table's rows become, and what does not fit together."""

from typing import Any

import numpy as np
import pytest

from nasrlm.examples import Examples
from tests.nasrlm.scenes import FRAME


def examples(**changes: object) -> Examples:
    return Examples.of_table(FRAME.assign(**changes), ["a", "b"], ["accuracy@cifar10", "latency_ms@raspi4"])


def test_examples_take_labels_splits_and_spaces_from_the_table() -> None:
    found = examples(space="nasbench201")
    np.testing.assert_array_equal(found.labels, [[93.25, 7], [np.nan, 8]])
    assert found.splits.tolist() == ["train", "test"]
    assert set(found.spaces) == {"nasbench201"}


def test_rows_without_a_split_are_for_training() -> None:
    assert examples(split=["test", None]).splits.tolist() == ["test", "train"]
    unsplit = Examples.of_table(FRAME.drop(columns="split"), ["a", "b"], ["params"])
    assert unsplit.splits.tolist() == ["train", "train"]


@pytest.mark.parametrize("nothing", ["", None, np.nan])
def test_an_empty_word_is_none(nothing: object) -> None:
    found = examples(space=[nothing, "darts"], split=["test", nothing])
    assert found.spaces.tolist() == ["text", "darts"]
    assert found.splits.tolist() == ["test", "train"]


def test_labelled_rows_have_one_of_the_labels() -> None:
    found = examples().labelled(["accuracy@cifar10"])
    assert (list(found.texts), found.objectives, found.labels.tolist()) == (["a"], ("accuracy@cifar10",), [[93.25]])


def test_the_digest_tells_data_apart() -> None:
    same = examples()
    assert examples().digest() == same.digest()
    others = [examples(split="valid"), examples(**{"latency_ms@raspi4": [7, 9]}), same.rows(np.array([1, 0]))]
    assert len({data.digest() for data in [same, *others]}) == 4


def test_labels_must_be_finite_or_missing() -> None:
    with pytest.raises(ValueError, match=r"expected finite or missing labels, got inf in row 1, accuracy@cifar10"):
        examples(**{"accuracy@cifar10": [1.0, np.inf]})


def test_examples_must_fit_together() -> None:
    with pytest.raises(ValueError, match=r"Examples: expected N texts, .* got 1 texts, labels \(2, 1\)"):
        Examples.of_table(FRAME, ["a"], ["params"])
    with pytest.raises(ValueError, match=r"Examples: expected text in every row, got '' in row 1"):
        Examples.of_table(FRAME, ["a", ""], ["params"])
    with pytest.raises(ValueError, match=r"Examples: expected different objectives, got params, params\."):
        Examples.of_table(FRAME, ["a", "b"], ["params", "params"])
    labels, splits, spaces = np.zeros((1, 1)), np.array(["train"]), np.array(["text"])
    with pytest.raises(ValueError, match="Examples: expected NumPy arrays"):
        Examples(["a"], ("params",), labels[0], splits, spaces)
    with pytest.raises(ValueError, match="Examples: expected splits train, valid, test, got 'validation' in row 0"):
        Examples(["a"], ("params",), labels, np.array(["validation"]), spaces)
    for columns in ((splits[:, None], spaces), (splits, spaces[:, None])):
        with pytest.raises(ValueError, match=r"Examples: expected N texts, .* \(1, 1\)"):
            Examples(["a"], ("params",), labels, *columns)
    with pytest.raises(ValueError, match="expected numbers as labels and strings as objectives and spaces"):
        Examples(["a"], (1,), labels, splits, spaces)  # type: ignore[arg-type]
    assert Examples(["a"], ("params",), labels.astype(np.longdouble), splits, spaces).labels.dtype == np.float64


@pytest.mark.parametrize("wrong", ["a", {"a": 1}, None])
def test_texts_and_objectives_are_lists(wrong: Any) -> None:
    labels, splits, spaces = np.zeros((1, 1)), np.array(["train"]), np.array(["text"])
    with pytest.raises(ValueError, match=r"Examples: expected a list of texts, got "):
        Examples(wrong, ("params",), labels, splits, spaces)
    with pytest.raises(ValueError, match=r"Examples: expected a list of objectives, got "):
        Examples(["a"], wrong, labels, splits, spaces)
    assert Examples(["a"], ["params"], labels, splits, spaces).objectives == ("params",)  # type: ignore[arg-type]


def test_what_the_table_lacks_is_named() -> None:
    with pytest.raises(ValueError, match=r"Examples: expected a column x@y, got .*params"):
        Examples.of_table(FRAME, ["a", "b"], ["params", "x@y"])
    with pytest.raises(ValueError, match=r"objectives: expected a list of names, got 'params'\. Put it in a list\."):
        Examples.of_table(FRAME, ["a", "b"], "params")
    with pytest.raises(ValueError, match="Examples: expected numbers in params: could not convert string"):
        Examples.of_table(FRAME.assign(params=["many", "few"]), ["a", "b"], ["params"])
