"""Draws of other architectures' choices: no others, as often, and together where they were always made alike."""

from typing import ClassVar

import numpy as np
import pytest

from spaces import ArchitectureError, GenotypeSpace, get_space
from spaces.drawing import draw, draw_different, sample_like
from spaces.nasbench101 import NASBench101

DARTS = get_space("darts")
CELL = 12  # genes of one cell


def test_choices_are_those_of_the_given() -> None:
    space = get_space("nasbench_macro")
    given = [(0, 1, 2, 0, 1, 2, 0, 0), (1, 1, 2, 0, 1, 2, 0, 0), (1, 1, 0, 0, 1, 2, 0, 0), (1, 1, 0, 0, 1, 2, 0, 0)]
    sample, rng = sample_like(space, given), np.random.default_rng(0)
    drawn = np.array([space.encode(sample(rng)) for _ in range(400)])
    assert drawn[:, [1, 3, 4, 5, 6, 7]].tolist() == [[1, 0, 1, 2, 0, 0]] * 400
    assert set(map(tuple, drawn[:, [0, 2]].tolist())) == {(0, 0), (0, 2), (1, 0), (1, 2)}  # each drawn by itself
    assert 0.7 < drawn[:, 0].mean() < 0.8


def test_cells_that_are_always_equal_stay_equal() -> None:
    rng = np.random.default_rng(0)
    genotypes = [DARTS.encode(DARTS.sample(rng)) for _ in range(20)]
    equal = [(*genes[:CELL], *genes[:CELL], *genes[2 * CELL :]) for genes in genotypes]
    sample = sample_like(DARTS, equal)
    drawn = [sample(rng) for _ in range(20)]
    assert all(network.normal == network.reduce for network in drawn)
    assert len(set(drawn)) > 15
    assert not set(map(DARTS.encode, drawn)) <= set(equal)


def test_genotypes_that_are_no_architecture_are_drawn_again() -> None:
    space, rng = NASBench101(), np.random.default_rng(0)
    given = [space.encode(space.sample(rng)) for _ in range(50)]
    drawn = list(draw(space, 50, 0, sample_like(space, given)))
    assert len(drawn) > 25
    for row in drawn:
        space.parse(row.architecture)


def test_choices_that_do_not_go_together_end_in_an_error() -> None:
    space = NASBench101()
    edges = [gene for gene in range(len(space.gene_sizes)) if space.gene_sizes[gene] == 2]
    everything = tuple(int(gene in edges) for gene in range(len(space.gene_sizes)))  # more edges than allowed
    with pytest.raises(
        ArchitectureError,
        match="nasbench101: expected an architecture that resembles those given, got none in 1000 draws",
    ):
        sample_like(space, [everything])(np.random.default_rng(0))


def test_draws_are_like_something() -> None:
    with pytest.raises(ValueError, match=r"^darts: expected architectures as a model for the draws, got none\.$"):
        sample_like(DARTS, [])


class Small(GenotypeSpace):
    """54 networks, of which few draws are the last."""

    name = "small"
    choices: ClassVar = {"depth": (1, 2, 3), "width": tuple(range(9)), "bias": ("yes", "no")}
    objectives = ()
    drawn = 9

    def build(self, architecture):
        raise NotImplementedError

    def sample(self, rng):
        return self.decode([rng.integers(3), rng.integers(self.drawn), rng.integers(2)])


@pytest.mark.parametrize(("count", "found"), [(15, 15), (20, 20), (54, 54), (60, 54)])
def test_as_many_different_ones_are_drawn_as_are_asked_for(count, found):
    rows = list(draw_different(Small(), count, 0))
    assert len({row.architecture for row in rows}) == len(rows) == found
    first = list(draw(Small(), count, 0))
    assert first == rows[: len(first)]
    assert len(first) < count


def test_what_is_never_drawn_is_not_waited_for():
    space = Small()
    space.drawn = 2
    assert len(list(draw_different(space, 20, 0))) == 12
    assert list(draw_different(space, 0, 0)) == []


def test_fewer_networks_can_be_held_out() -> None:
    space = get_space("nasbench_macro")
    splits = [x.split for x in draw_different(space, 2400, 0, held_out_percent=1)]
    assert 10 < splits.count("valid") < 60
    assert 10 < splits.count("test") < 60
    assert [x.split for x in draw(space, 3000, 0)].count("valid") > 80
