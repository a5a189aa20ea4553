"""SupernetChoices on a supernet small enough to list: two resolutions, one or two blocks, then one block."""

import itertools

import pytest

from spaces import ArchitectureError
from spaces.stages import SupernetChoices

TINY = SupernetChoices(
    space="tiny",
    settings={"r": (8, 16)},
    depths=((1, 2), (1,)),
    parts={"k": (3, 5), "e": (0.5, 1.0, 2.0)},
    make_block=lambda *values: values,
)


def test_genes():
    assert TINY.gene_sizes == (2, 2, 2, 3, 2, 3, 1, 2, 3)
    assert TINY.num_networks == 2 * (6 + 36) * 6
    stages = (((5, 1.0),), ((3, 2.0),))
    assert TINY.encode((16,), stages) == (1, 0, 1, 1, 0, 0, 0, 0, 2)
    assert TINY.decode((1, 0, 1, 1, 1, 2, 0, 0, 2)) == ((16,), stages)
    assert TINY.in_use((1, 0, 1, 1, 0, 0, 0, 0, 2)) == [True] * 4 + [False] * 2 + [True] * 3
    assert all(TINY.in_use((1, 1, 1, 1, 0, 0, 0, 0, 2)))


def test_genotypes_are_those_whose_idle_genes_are_0():
    everything = itertools.product(*map(range, TINY.gene_sizes))
    canonical = [g for g in everything if not any(g[i] for i, used in enumerate(TINY.in_use(g)) if not used)]
    assert list(TINY.genotypes()) == canonical
    assert len(canonical) == TINY.num_networks
    assert [TINY.encode(*TINY.decode(genotype)) for genotype in canonical] == canonical


def test_networks_are_equal_only_with_equal_genotypes():
    assert len({TINY.decode(genotype) for genotype in TINY.genotypes()}) == TINY.num_networks


def test_fixed_settings():
    assert TINY.fixed(r=16).gene_sizes == (1, *TINY.gene_sizes[1:])
    assert TINY.fixed(r=16).decode((0,) * 9)[0] == (16,)
    assert TINY.fixed(r=None) == TINY
    with pytest.raises(ArchitectureError, match="tiny: expected r to be one of 8, 16, got 12"):
        TINY.fixed(r=12)


def test_lists_hold_blocks_in_use_or_all():
    stages = (((5, 1.0),), ((3, 2.0),))
    assert TINY.read_stages([1, 1], {"k": [5, 3], "e": [1.0, 2.0]}) == stages
    assert TINY.read_stages([1, 1], {"k": [5, 5, 3], "e": [1, 0.5, 2]}) == stages
    assert TINY.read_stages([1, 1], {"k": [5, "?", 3], "e": [1, None, 2]}) == stages, "entries past the depth are free"
    assert TINY.read_stages([2, 1], {"k": [5, 5, 3], "e": [1, 0.5, 2]}) == (((5, 1.0), (5, 0.5)), ((3, 2.0),))


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"k": [5, 3], "e": [1]}, "expected a list of 2 or 3 in e, got 1 of them"),
        ({"k": [5, 3], "e": [1, 2, 2]}, "expected lists of equal length, got 2 in k, 3 in e"),
        ({"k": [5, 3], "e": 1}, "expected a list of 2 or 3 in e, got 1[.]"),
        ({"k": [5, 4], "e": [1, 2]}, "expected k of stage 1, block 0 to be one of 3, 5, got 4"),
        ({"k": [5, 3], "e": [True, 2]}, "expected e of stage 0, block 0 to be one of .*, got True"),
        ({"k": [5, 3], "e": [float("nan"), 2]}, "expected e of stage 0, block 0 .*, got nan"),
    ],
)
def test_refused_lists(lists, message):
    with pytest.raises(ArchitectureError, match=message):
        TINY.read_stages([1, 1], lists)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ((((5, 1.0),),), "expected 2 stages, got 1 of them"),
        ((((5, 1.0),) * 3, ((3, 2.0),)), "expected the number of blocks in stage 0 to be one of 1, 2, got 3"),
        ((((5, 1.0), (7, 1.0)), ((3, 2.0),)), "expected k of stage 0, block 1 to be one of 3, 5, got 7"),
    ],
)
def test_refused_stages(stages, message):
    with pytest.raises(ArchitectureError, match=message):
        TINY.encode((8,), stages)
