"""Draws of other architectures' choices: no others, as often, and together where they were always made alike."""

import numpy as np
import pytest

from spaces import ArchitectureError, get_space
from spaces.drawing import draw, sample_like
from spaces.nasbench101 import NASBench101

DARTS = get_space("darts")
CELL = 12  # genes of one cell


def test_choices_are_those_of_the_given() -> None:
    space = get_space("nasbench_macro")
    given = [(0, 1, 2, 0, 1, 2, 0, 0), (1, 1, 2, 0, 1, 2, 0, 0), (1, 1, 0, 0, 1, 2, 0, 0), (1, 1, 0, 0, 1, 2, 0, 0)]
    sample, rng = sample_like(space, [space.decode(genes) for genes in given]), np.random.default_rng(0)
    drawn = np.array([space.encode(sample(rng)) for _ in range(400)])
    assert drawn[:, [1, 3, 4, 5, 6, 7]].tolist() == [[1, 0, 1, 2, 0, 0]] * 400
    assert set(map(tuple, drawn[:, [0, 2]].tolist())) == {(0, 0), (0, 2), (1, 0), (1, 2)}  # each drawn by itself
    assert 0.7 < drawn[:, 0].mean() < 0.8


def test_cells_that_are_always_equal_stay_equal() -> None:
    rng = np.random.default_rng(0)
    genotypes = [DARTS.encode(DARTS.sample(rng)) for _ in range(20)]
    equal = [DARTS.decode((*genes[:CELL], *genes[:CELL], *genes[2 * CELL :])) for genes in genotypes]
    sample = sample_like(DARTS, equal)
    drawn = [sample(rng) for _ in range(20)]
    assert all(network.normal == network.reduce for network in drawn)
    assert len(set(drawn)) > 15
    assert not set(drawn) <= set(equal)


def test_genotypes_that_are_no_architecture_are_drawn_again() -> None:
    space, rng = NASBench101(), np.random.default_rng(0)
    given = [space.sample(rng) for _ in range(50)]
    drawn = list(draw(space, 50, 0, sample_like(space, given)))
    assert len(drawn) > 25
    for row in drawn:
        space.parse(row.architecture)


def test_a_network_without_a_genotype_is_refused() -> None:
    wider = DARTS.parse(
        DARTS.format(DARTS.sample(np.random.default_rng(0))).replace('"init_channels": 32', '"init_channels": 33')
    )
    with pytest.raises(ArchitectureError, match="expected"):
        sample_like(DARTS, [wider])
