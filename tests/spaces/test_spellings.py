"""Every spelling is an architecture of its own, and else all is as in the space itself."""

import pickle
from copy import deepcopy

import numpy as np
import pytest

from spaces import Spellings, get_space


def test_twins_have_keys_of_their_own() -> None:
    space = get_space("nasbench201")
    spelled = Spellings(space)
    first, second = space.decode((0, 0, 0, 1, 0, 1)), space.decode((0, 0, 0, 1, 0, 0))
    assert space.architecture_key(first) == space.architecture_key(second)
    assert spelled.architecture_key(first) != spelled.architecture_key(second)
    assert spelled.representative(first) == first != space.representative(first)


def test_all_else_is_that_of_the_space() -> None:
    space = get_space("nasbench201")
    spelled = Spellings(space)
    draws = [(one.sample(rng), rng) for one, rng in ((s, np.random.default_rng(3)) for s in (space, spelled))]
    (cell, rng), (other, other_rng) = draws
    assert cell == other == spelled.parse(spelled.format(cell)) == spelled.decode(spelled.encode(cell))
    assert space.mutate(cell, rng) == spelled.mutate(cell, other_rng)
    assert space.crossover(cell, first_of(space), rng) == spelled.crossover(cell, first_of(spelled), other_rng)
    assert (spelled.name, spelled.size, spelled.sampled_sizes) == (space.name, space.size, space.sampled_sizes)
    assert spelled.runs_lost_operations
    space._address = "my.py:Mine"
    assert Spellings(space).address == space.address
    assert spelled.objectives == space.objectives


def test_copies_know_what_is_special_about_the_space() -> None:
    space = get_space("nasbench201", dataset="cifar100")
    spelled = Spellings(space)
    for each in (spelled, deepcopy(spelled), pickle.loads(pickle.dumps(spelled))):
        assert (each.num_classes, each.name) == (100, "nasbench201")
        with pytest.raises(AttributeError, match="'NASBench201' object has no attribute 'colour'"):
            _ = each.colour


def first_of(space: object) -> object:
    return next(iter(space.enumerate()))  # type: ignore[attr-defined]
