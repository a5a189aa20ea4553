"""Labels become scores and come back."""

from __future__ import annotations

import numpy as np
import pytest

from nasrlm.adaptation.label_scales import NormalScores, Standardised


def test_labels_come_back_from_their_scores_and_go_on_beyond_the_ends() -> None:
    labels = np.array([10.0, 90.0, 91.0, 93.0, 91.0])
    scores = NormalScores.of(labels)
    forward = scores.forward(labels)
    assert forward[2] == forward[4]
    assert (np.argsort(forward, kind="stable") == np.argsort(labels, kind="stable")).all()
    assert scores.backward(forward) == pytest.approx(labels)
    low, high = scores.backward(np.array([-5.0, 5.0]))
    assert low < 10 < 93 < high
    assert NormalScores.of(np.array([3.0, 3.0])).backward(np.array([-1.0, 0.0, 1.0])) == pytest.approx([2, 3, 4])


def test_labels_that_are_all_equal_are_standardised_as_well() -> None:
    scale = Standardised.of(np.array([3.0, 3.0]))
    assert scale.forward(np.array([3.0, 5.0])).tolist() == [0.0, 2.0]
    assert Standardised.of(np.array([0.0, 1e-8]), logarithmic=True).deviation == 1.0
    other = Standardised.of(np.array([1.0, 5.0]))
    assert other.forward(np.array([1.0, 5.0, 7.0])).tolist() == [-1.0, 1.0, 2.0]
    assert other.backward(np.array([-1.0, 1.0, 2.0])).tolist() == [1.0, 5.0, 7.0]
