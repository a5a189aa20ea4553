"""Which texts to measure: those whose labels would tell most."""

import numpy as np
import pytest

from nasrlm.adaptation.pool import Pool, choose_diverse
from tests.nasrlm.scenes import numbered


def test_diverse_rows_are_distinct_candidates_from_different_groups() -> None:
    rng = np.random.default_rng(0)
    centres = 3 * np.eye(4)
    features = np.repeat(centres, 25, axis=0) + rng.normal(0, 0.05, (100, 4))
    candidates = np.arange(0, 100, 2)
    chosen = choose_diverse(
        Pool(numbered(100), [f"cost@{x}" for x in range(features.shape[1])], features, features),
        candidates,
        4,
    )
    assert set(chosen) <= set(candidates)
    assert sorted(chosen // 25) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="choose_diverse: expected 4 candidates or more, got 3"):
        choose_diverse(Pool(numbered(100), ["cost@x"], features[:, :1], features), candidates[:3], 4)


def test_what_is_measured_already_is_not_asked_again() -> None:
    rng = np.random.default_rng(0)
    features = np.repeat(3 * np.eye(4), 25, axis=0) + rng.normal(0, 0.05, (100, 4))
    pool = Pool(numbered(100), [f"cost@{x}" for x in range(4)], features, features)
    for measured, expected in (((30,), [0, 2, 3]), ((3, 60, 80), [1])):
        others = np.setdiff1d(np.arange(100), measured)
        chosen = choose_diverse(pool, others, len(expected), measured=measured)
        assert sorted(chosen // 25) == expected
    first = choose_diverse(pool, np.arange(100), 3)
    then = choose_diverse(pool, np.arange(100), 2, measured=first[:1].tolist())
    assert then.tolist() == first[1:].tolist()


def test_texts_that_are_all_alike_are_chosen_once_each() -> None:
    alike = Pool(numbered(6), ["cost@x"], np.ones((6, 1)), np.ones((6, 1)))
    assert sorted(choose_diverse(alike, np.arange(6), 6)) == [0, 1, 2, 3, 4, 5]


def test_a_pool_chooses_among_all_its_texts() -> None:
    features = np.random.default_rng(0).normal(size=(20, 4))
    pool = Pool(numbered(20), [f"cost@{x}" for x in range(4)], features, features)
    assert pool.choose(5).tolist() == choose_diverse(pool, np.arange(20), 5).tolist()
    with pytest.raises(ValueError, match="samples: expected 1 or more, got -1"):
        pool.choose(-1)
