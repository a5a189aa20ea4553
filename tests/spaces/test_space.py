"""The defaults of SearchSpace on a tiny space with invalid and redundant genotypes."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from spaces import ArchitectureError, SearchSpace
from spaces.notation import checked_text
from spaces.shown import shown
from tests.spaces.contract import SpaceContract


@dataclass(frozen=True)
class Tower:
    widths: tuple[int, ...]


class Towers(SearchSpace[Tower]):
    """One to three layers; genes of absent layers are not in use, and widths of 0 only are invalid."""

    name = "towers"
    objectives = ("latency_ms@here",)
    gene_sizes = (3, 2, 3, 4)
    size = 1 + (2 * 3 - 1) + (2 * 3 * 4 - 1)

    def encode(self, architecture: Tower) -> tuple[int, ...]:
        widths = architecture.widths
        return (len(widths) - 1, *widths, *[0] * (3 - len(widths)))

    def _build(self, genotype: tuple[int, ...]) -> Tower:
        return self._tower(genotype[1 : genotype[0] + 2])

    def _tower(self, widths: tuple[int, ...]) -> Tower:
        if not any(widths):
            raise ArchitectureError(f"towers: expected a width above 0, got {widths}. Widen a layer.")
        return Tower(widths)

    def parse(self, notation: str) -> Tower:
        parts = checked_text(self.name, notation).split("-")
        known = [part.isdecimal() and int(part) < n for part, n in zip(parts, self.gene_sizes[1:], strict=False)]
        if len(parts) > 3 or not all(known) or notation != "-".join(str(int(part)) for part in parts):
            raise ArchitectureError(f"towers notation: expected widths joined by '-', got {shown(notation)}. See size.")
        return self._tower(tuple(int(part) for part in parts))

    def format(self, architecture: Tower) -> str:
        return "-".join(map(str, architecture.widths))

    def architecture_key(self, architecture: Tower) -> str:
        return self.format(architecture)


class TestContract(SpaceContract):
    space_name = "towers"

    @pytest.fixture
    def space(self) -> Towers:
        return Towers()

    def test_crossover_takes_genes_from_its_parents(self, space):
        """Genes out of use are made 0 in the child, so here its depth is the gene that shows it."""
        generator = np.random.default_rng(0)
        depths = {len(space.crossover(Tower((1,)), Tower((1, 2, 3)), generator).widths) for _ in range(50)}
        assert depths == {1, 3}

    def test_parse_refuses_what_is_cut_or_added(self, space):
        with pytest.raises(ArchitectureError):
            space.parse("1-2-3-0")


def test_sample_is_uniform_over_valid_genotypes():
    generator = np.random.default_rng(0)
    first = Counter(len(Towers().sample(generator).widths) for _ in range(2_000))
    # valid genotypes: 1 x 12 out of use at depth 1, 5 x 4 at depth 2, 23 at depth 3
    expected = {1: 12 / 55, 2: 20 / 55, 3: 23 / 55}
    assert all(abs(first[depth] / 2_000 - share) < 0.05 for depth, share in expected.items())


def test_mutate_changes_one_gene_fairly():
    generator, parent = np.random.default_rng(0), Tower((1, 1, 1))
    children = Counter(Towers().mutate(parent, generator) for _ in range(4_000))
    assert set(children) == {
        *(Tower((1,)), Tower((1, 1))),
        *(Tower((0, 1, 1)), Tower((1, 0, 1)), Tower((1, 2, 1))),
        *(Tower((1, 1, width)) for width in (0, 2, 3)),
    }
    assert abs(children[Tower((0, 1, 1))] - 1_000) < 150, "a gene is drawn first, then its choice"
    assert abs(children[Tower((1, 1, 0))] - 333) < 100


def test_genes_that_have_to_agree_mutate_together():
    class Alike(Towers):
        """All widths are one."""

        gene_sizes = (3, 2, 2, 2)
        size = 2

        def _build(self, genotype: tuple[int, ...]) -> Tower:
            if genotype[0] != 2 or len(set(genotype[1:])) > 1:
                raise ArchitectureError(f"alike: expected three widths alike, got {genotype}.")
            return Tower(genotype[1:])

    space, rng = Alike(), np.random.default_rng(0)
    assert space.mutate(Tower((0, 0, 0)), rng) == Tower((1, 1, 1))
    assert {space.sample(rng) for _ in range(20)} == set(space.enumerate())


def test_enumerate_steps_over_invalid_and_redundant_genotypes():
    listed = [tower.widths for tower in Towers().enumerate()]
    assert listed[:4] == [(1,), (0, 1), (0, 2), (1, 0)]
    assert (0, 0) not in listed


def test_numpy_genes_are_printed_plainly():
    with pytest.raises(ArchitectureError, match=r"4 integers in 0\.\.2, got \(0, 1, 7, 0\), position 2\."):
        Towers().decode(np.array([0, 1, 7, 0]))


def test_size_is_the_product_of_the_genes_by_default():
    class Free(Towers):
        size = SearchSpace.size

    assert Free().size == 72


@pytest.mark.parametrize("method", ["sample", "mutate", "crossover"])
def test_a_space_without_valid_neighbours_says_so(method):
    class Dead(Towers):
        def _valid(self, genotypes: object) -> Iterator[Tower]:
            return iter(())

    parents = {"sample": [], "mutate": [Tower((1,))], "crossover": [Tower((1,)), Tower((1, 1))]}[method]
    with pytest.raises(ValueError, match=f"towers {method}: expected a valid architecture .* got none"):
        getattr(Dead(), method)(*parents, np.random.default_rng(0))


def test_nothing_is_drawn_beyond_the_sampled_choices() -> None:
    class Wider(Towers):
        """Published records may have choices that nobody draws."""

        size = SearchSpace.size  # type: ignore[assignment]
        sampled_sizes = (2, 2, 2, 1)  # type: ignore[assignment]

    space, rng = Wider(), np.random.default_rng(0)
    parent = space.decode((1, 1, 1, 0))
    drawn = [*[space.sample(rng) for _ in range(50)], *[space.mutate(parent, rng) for _ in range(50)]]
    drawn += space.enumerate()
    assert space.size == 2 * 2 * 2
    assert {space.format(x) for x in drawn} == {"1", "0-1", "1-0", "1-1"}


def test_what_a_notebook_shows_of_a_space_is_its_name_and_size_of_genotypes() -> None:
    assert repr(Towers()) == "Towers(towers, 4 genes; see objectives, size)"
