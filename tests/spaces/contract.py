"""The promises of every search space: inherit SpaceContract, name the space, add what is special."""

import dataclasses
import itertools
import json
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from spaces import ArchitectureError, SearchSpace, get_space

GOLDENS = Path(__file__).parents[1] / "goldens"
ENUMERABLE = 20_000  # spaces up to this size are listed in full
SEEDS = range(20)
LONGS = ("x" * 100_000, "9" * 4_000)


def read_goldens(name: str) -> list[dict[str, Any]]:
    """The rows of tests/goldens/<name>.jsonl."""
    return [json.loads(line) for line in (GOLDENS / f"{name}.jsonl").read_text().splitlines()]


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def words(notation: str) -> set[str]:
    """Names and numbers in a notation."""
    return set(re.findall(r"\w+", notation))


def refusal(space: SearchSpace[Any], notation: str) -> str:
    """What the error says; empty where there is none."""
    try:
        space.parse(notation)
    except ArchitectureError as error:
        return str(error)
    return ""


def assert_keys_agree(keys: Iterable[tuple[Hashable, Hashable]]) -> None:
    """Of many architectures each with its key and a slow definition's: equal ones are equal in both."""
    slow_keys, fast_keys = defaultdict(set), defaultdict(set)
    for fast, slow in keys:
        slow_keys[fast].add(slow)
        fast_keys[slow].add(fast)
    assert len(slow_keys) > 500
    assert all(len(slow) == 1 for slow in slow_keys.values()), "unequal architectures share a key"
    assert all(len(fast) == 1 for fast in fast_keys.values()), "equal architectures have several keys"


class SpaceContract:
    space_name: ClassVar[str]
    malformed: ClassVar[tuple[str, ...]] = ("", " ", "nonsense", "{}", "[]", "|", "0")

    @pytest.fixture
    def space(self) -> SearchSpace[Any]:
        return get_space(self.space_name)

    @pytest.fixture
    def architectures(self, space: SearchSpace[Any]) -> list[Any]:
        return [space.sample(rng(seed)) for seed in SEEDS]

    def test_describes_itself(self, space):
        assert space.name == self.space_name
        assert all(re.fullmatch(r"[a-z0-9_]+@[a-z0-9_-]+", objective) for objective in space.objectives)
        assert len(set(space.objectives)) == len(space.objectives)
        assert all(isinstance(choices, int) and choices >= 1 for choices in space.gene_sizes)
        assert isinstance(space.size, int)
        assert space.size >= 1

    def test_architectures_are_frozen_and_hashable(self, space, architectures):
        for architecture in architectures:
            assert hash(architecture) == hash(space.decode(space.encode(architecture)))
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(architecture, dataclasses.fields(architecture)[0].name, None)

    def test_genotype_round_trip(self, space, architectures):
        for architecture in architectures:
            genotype = space.encode(architecture)
            assert isinstance(genotype, tuple)
            assert len(genotype) == len(space.gene_sizes)
            assert all(type(gene) is int for gene in genotype)
            assert space.decode(genotype) == architecture
            assert space.decode(np.array(genotype)) == architecture

    def test_notation_round_trip(self, space, architectures):
        for architecture in architectures:
            notation = space.format(architecture)
            assert space.parse(notation) == architecture
            assert space.format(space.parse(notation)) == notation

    def test_sample_follows_the_seed(self, space, architectures):
        assert [space.sample(rng(seed)) for seed in SEEDS] == architectures
        assert len(set(architectures)) > 1

    @pytest.mark.parametrize(("method", "parents"), [("sample", 0), ("mutate", 1), ("crossover", 2)])
    def test_a_seed_is_no_generator(self, space, architectures, method, parents):
        with pytest.raises(ValueError, match=rf"^{method}: expected a generator, got 0\. Make one with numpy"):
            getattr(space, method)(*architectures[:parents], 0)

    def test_mutate_differs_and_is_valid(self, space, architectures):
        for seed, parent in zip(SEEDS, architectures, strict=True):
            child = space.mutate(parent, rng(seed))
            assert child != parent
            assert space.decode(space.encode(child)) == child
            assert space.mutate(parent, rng(seed)) == child

    def test_mutate_reaches_every_gene(self, space, architectures):
        varied = {i for i, choices in enumerate(space.sampled_sizes) if choices > 1}
        generator, walker, seen = rng(0), architectures[0], set()
        genes = space.encode(walker)
        for _ in range(100 * len(space.gene_sizes)):
            walker = space.mutate(walker, generator)
            before, genes = genes, space.encode(walker)
            seen |= {i for i, gene in enumerate(genes) if gene != before[i]}
            assert all(gene < choices for gene, choices in zip(genes, space.sampled_sizes, strict=True))
            if seen >= varied:
                break
        assert seen == varied

    def test_crossover_takes_genes_from_its_parents(self, space, architectures):
        for seed, (first, second) in enumerate(itertools.pairwise(architectures)):
            child = space.crossover(first, second, rng(seed))
            genes = zip(space.encode(child), space.encode(first), space.encode(second), strict=True)
            assert all(gene in parents for gene, *parents in genes)
            assert space.crossover(first, second, rng(seed)) == child

    def test_crossover_with_itself_changes_nothing(self, space, architectures):
        for architecture in architectures:
            assert space.crossover(architecture, architecture, rng(0)) == architecture

    def test_crossover_mixes(self, space, architectures):
        children = {space.crossover(*architectures[:2], rng(seed)) for seed in range(50)}
        assert children - set(architectures[:2])

    def test_enumerate_is_distinct_ordered_and_complete(self, space):
        listed = list(itertools.islice(space.enumerate(), ENUMERABLE + 1 if space.size <= ENUMERABLE else 200))
        genotypes = [space.encode(architecture) for architecture in listed]
        assert all(before < after for before, after in itertools.pairwise(genotypes))
        assert len(set(listed)) == len(listed)
        if space.size <= ENUMERABLE:
            assert len(listed) == space.size

    def test_decode_refuses_wrong_lengths(self, space, architectures):
        genotype = space.encode(architectures[0])
        for wrong in ((), genotype[:-1], (*genotype, 0)):
            with pytest.raises(ArchitectureError, match=f"{space.name} genotype: expected .*, {len(wrong)} of them"):
                space.decode(wrong)

    def test_decode_refuses_genes_out_of_range(self, space, architectures):
        genotype = space.encode(architectures[0])
        for position, choices in enumerate(space.gene_sizes):
            for gene in (-1, choices, 10**9):
                wrong = (*genotype[:position], gene, *genotype[position + 1 :])
                with pytest.raises(ArchitectureError, match=rf"in 0\.\.{choices - 1}, got .*position {position}\b"):
                    space.decode(wrong)

    def test_decode_repeats_little_of_a_long_genotype(self, space, architectures):
        genotype = space.encode(architectures[0])
        for wrong in (genotype * 1000, (*genotype[:-1], "0" * 100_000)):
            with pytest.raises(ArchitectureError) as refused:
                space.decode(wrong)
            assert len(str(refused.value)) < 1000

    @pytest.mark.parametrize("gene", [0.5, 0.0, "0", None, float("nan")])
    def test_decode_refuses_genes_that_are_no_integers(self, space, architectures, gene):
        with pytest.raises(ArchitectureError, match=r"integers in .* position 0\."):
            space.decode((gene, *space.encode(architectures[0])[1:]))

    def test_parse_refuses_malformed_notation(self, space):
        for notation in self.malformed:
            with pytest.raises(ArchitectureError, match=f"^{space.name}.*: expected (?s:.*), got "):
                space.parse(notation)

    def test_parse_and_decode_refuse_other_types(self, space, architectures):
        for wrong in (None, 3, float("nan"), space.format(architectures[0]).encode(), ["x"], architectures[0]):
            with pytest.raises(ArchitectureError, match=f"^{space.name} notation: expected a string, got "):
                space.parse(wrong)
        for wrong in (None, 3, iter(space.encode(architectures[0]))):
            with pytest.raises(ArchitectureError, match=f"^{space.name} genotype: expected a row of integers, got "):
                space.decode(wrong)

    def test_parse_refuses_what_is_cut_or_added(self, space, architectures):
        notation = space.format(architectures[0])
        for wrong in (notation[:-1], notation[1:], notation + "\x00", notation + notation):
            with pytest.raises(ArchitectureError):
                space.parse(wrong)

    def test_parse_repeats_little_of_a_long_notation(self, space, architectures):
        notation = space.format(architectures[0])
        longs = [re.sub(rf"\b{word}\b", long, notation, count=1) for word in words(notation) for long in LONGS]
        for wrong in (*LONGS, f"[{LONGS[0]}]", f"[{'0,' * 50_000}0]", notation * 1000, *longs):
            assert len(refusal(space, wrong)) < 2000

    def test_key_is_one_line_and_equal_for_equal_architectures(self, space, architectures):
        for architecture in architectures:
            key = space.architecture_key(architecture)
            assert key
            assert "\n" not in key
            assert space.architecture_key(space.parse(space.format(architecture))) == key

    def test_representative_stands_for_its_key(self, space, architectures):
        for architecture in architectures:
            representative = space.representative(architecture)
            assert space.architecture_key(representative) == space.architecture_key(architecture)
            assert space.representative(representative) == representative

    def test_keys_tell_architectures_apart(self, space, architectures):
        assert len({space.architecture_key(architecture) for architecture in architectures}) > 1
