"""What every once-for-all space promises beside the contract of all spaces."""

import json
from typing import Any, ClassVar

import numpy as np
import pytest

from spaces import ArchitectureError, get_space
from tests.spaces.contract import SpaceContract, read_goldens


def as_notation(row: dict[str, Any]) -> str:
    return json.dumps(row["genotype"])


class OnceForAllContract(SpaceContract):
    block_lists: ClassVar[tuple[str, ...]] = ("ks", "e")
    notation: ClassVar[dict[str, Any]]
    refused: ClassVar[tuple[tuple[dict[str, Any], str], ...]]  # parts of a notation, and what is said of each

    def test_lists_of_all_blocks_and_of_those_in_use_are_one_notation(self, space):
        for row in read_goldens(space.name):
            architecture = space.parse(as_notation(row))
            notation = json.loads(space.format(architecture))
            in_use = sum(map(len, architecture.stages))
            assert [len(notation[name]) for name in self.block_lists] == [in_use] * len(self.block_lists)
            assert space.parse(json.dumps(notation)) == architecture

    def test_errors_name_the_position(self, space):
        for others, message in self.refused:
            with pytest.raises(ArchitectureError, match=message):
                space.parse(json.dumps(self.notation | others))

    def test_blocks_past_the_depth_do_not_count(self, space, architectures):
        for architecture in architectures:
            genotype = np.array(space.encode(architecture))
            idle = ~np.array(space.choices.in_use(genotype))
            genotype[idle] = np.array(space.gene_sizes)[idle] - 1
            assert space.decode(genotype) == architecture
            assert not np.array(space.encode(architecture))[idle].any()

    def test_crossover_takes_blocks_from_the_parent_that_has_them(self, space, architectures):
        shallow, deep = (min(architectures, key=depth), max(architectures, key=depth))
        for seed in range(20):
            child = space.crossover(shallow, deep, np.random.default_rng(seed))
            for blocks, *parents in zip(child.stages, shallow.stages, deep.stages, strict=True):
                for position, block in enumerate(blocks):
                    choices = [parent[position] for parent in parents if position < len(parent)]
                    assert all(part in parts for part, *parts in zip(block, *choices, strict=True))

    def test_mutation_draws_the_blocks_it_adds(self, space):
        smallest = space.decode((0,) * len(space.gene_sizes))
        children = [space.mutate(smallest, np.random.default_rng(seed)) for seed in range(500)]
        added = {child.stages[0][-1] for child in children if len(child.stages[0]) > len(smallest.stages[0])}
        assert len(added) > 1

    def test_resolution_can_be_fixed(self, space):
        one = get_space(space.name, resolution=160)
        assert one.size * 25 == space.size
        assert {one.sample(np.random.default_rng(seed)).resolution for seed in range(5)} == {160}
        with pytest.raises(ArchitectureError, match="expected r to be one of 160, got 224"):
            one.parse(as_notation(read_goldens(space.name)[0]))
        with pytest.raises(ValueError, match=r"expected r to be one of 128, .*, 224, got 130"):
            get_space(space.name, resolution=130)


def depth(architecture: Any) -> int:
    return sum(map(len, architecture.stages))
