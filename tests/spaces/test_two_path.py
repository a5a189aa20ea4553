"""Two-Path: sequences of operations, their genes, its notation and its key."""

import json

import numpy as np
import pytest

from spaces import ArchitectureError
from spaces.two_path import TwoPath, TwoPathNetwork
from spaces.two_path_blocks import BLOCKS, CONVOLUTIONS, LAYOUTS, SUPPLEMENTARY, BlockPath
from tests.spaces.contract import SpaceContract, read_goldens, rng

SPACE = TwoPath()


def spelled(seed: int = 0) -> dict:
    return json.loads(SPACE.format(SPACE.sample(rng(seed))))


class TestContract(SpaceContract):
    space_name = "two_path"


class TestBlocks:
    @pytest.mark.parametrize("length", [1, 2])
    def test_enumerates_counts_and_orders_all(self, length):
        blocks = list(BLOCKS.enumerate(length))
        genes = [BLOCKS.encode(block) for block in blocks]
        assert len(set(blocks)) == len(blocks) == BLOCKS.count(length)
        assert genes == sorted(genes)
        assert [BLOCKS.decode(each, length) for each in genes] == blocks

    def test_any_genes_make_a_block_of_any_length(self):
        generator = np.random.default_rng(0)
        for _ in range(300):
            genes = generator.integers(BLOCKS.gene_sizes).tolist()
            for length in (1, 2, 3):
                block = BLOCKS.decode(genes, length)
                assert len(block) == length
                BLOCKS.check(block, "block")
                assert BLOCKS.decode(BLOCKS.encode(block), length) == block

    def test_samples_every_operation_and_at_most_one_supplementary(self):
        drawn = [BLOCKS.sample(3, rng(seed)) for seed in range(300)]
        assert {operation for block in drawn for operation in block} == {*CONVOLUTIONS, *SUPPLEMENTARY}
        extras = [sum(operation in SUPPLEMENTARY for operation in block) for block in drawn]
        assert set(extras) == {0, 1}
        share = 1 - (8 / 13) ** 2  # that one of two draws is supplementary
        assert abs(sum(extras) / 300 - share) < 0.12


class TestNotation:
    def test_goldens(self):
        for row in read_goldens("two_path"):
            network = SPACE.parse(json.dumps(row["genotype"]))
            assert json.loads(SPACE.format(network)) == row["genotype"]
            assert SPACE.decode(SPACE.encode(network)) == network

    @pytest.mark.parametrize(
        ("block", "message"),
        [
            ({"op_names": ["conv7x7"], "op_types": ["conv"]}, r"expected path1\[0\]\[0\] to be one of .*got 'conv7x7'"),
            ({"op_names": ["conv3x3"], "op_types": ["supp"]}, r"expected type 0 of path1\[0\] to be one of conv, got"),
            ({"op_names": ["conv1x1"], "op_types": ["supp"]}, r"a convolution among them .*got \['conv1x1'\]"),
            ({"op_names": ["conv3x3", "conv1x1", "conv1x1"], "op_types": ["conv"] * 3}, "at most one supplementary"),
            ({"op_names": [], "op_types": []}, r"in path1\[0\], got 0 of them"),
            ({"op_names": ["conv3x3"]}, "got no op_types"),
            ([], "expected an object with op_names, op_types, got"),
        ],
    )
    def test_errors_name_the_block(self, block, message):
        value = spelled()
        value["path1"][0] = block
        with pytest.raises(ArchitectureError, match=f"^two_path notation: .*{message}"):
            SPACE.parse(json.dumps(value))

    @pytest.mark.parametrize(
        ("reductions", "message"),
        [([0], "in path2_reduce_inds, got 1 of them"), ([0, 9], "got 9"), ([1, 1], r"got \d and \[1, 1\]")],
    )
    def test_errors_of_the_reductions(self, reductions, message):
        with pytest.raises(ArchitectureError, match=message):
            SPACE.parse(json.dumps(spelled() | {"path2_reduce_inds": reductions}))

    def test_reductions_in_any_order(self):
        value = spelled()
        turned = value | {"path1_reduce_inds": value["path1_reduce_inds"][::-1]}
        assert SPACE.parse(json.dumps(turned)) == SPACE.parse(json.dumps(value))


def test_size_is_the_published_one():
    """About 1.7e27: 8 + 144 + 1,472 blocks, rows of two to four, two of them reductions."""
    assert SPACE.size == (1_624**2 + 3 * 1_624**3 + 6 * 1_624**4) ** 2
    assert len(LAYOUTS) == 10


def test_samples_every_layout():
    drawn = {(len(path.blocks), path.reductions) for seed in range(100) for path in SPACE.sample(rng(seed)).paths}
    assert drawn == set(LAYOUTS)


def test_crossover_takes_blocks_and_layouts_from_the_parents():
    first, second = SPACE.sample(rng(0)), SPACE.sample(rng(1))
    for seed in range(50):
        child = SPACE.crossover(first, second, rng(seed))
        for path, *parents in zip(child.paths, first.paths, second.paths, strict=True):
            assert (len(path.blocks), path.reductions) in {(len(p.blocks), p.reductions) for p in parents}
            for position, block in enumerate(path.blocks):
                assert block in [p.blocks[position] for p in parents if position < len(p.blocks)]


class TestKey:
    def test_is_readable(self):
        path = BlockPath((("conv3x3", "avgpool3x3"), ("bottleneck-r4-k3",), ("inception_s5x5",)), (0, 2))
        key = SPACE.architecture_key(TwoPathNetwork((path, path)))
        assert key.partition(" | ")[0] == (
            "conv3x3:64/2 avgpool3x3:64/1 [conv3x3:16/1 conv3x3:64/1] conv1x5:128/2 conv5x1:128/1"
        )

    def test_swapped_paths_are_one_network(self):
        network = SPACE.sample(rng(0))
        swapped = TwoPathNetwork(network.paths[::-1])
        assert network != swapped
        assert SPACE.architecture_key(network) == SPACE.architecture_key(swapped)

    def test_a_residual_tells_blocks_apart(self):
        one = BlockPath((("conv3x3",), ("conv3x3",), ("conv3x3",), ("conv3x3",)), (0, 1))
        other = BlockPath((("conv3x3",), ("conv3x3",), ("conv3x3", "conv3x3")), (0, 1))
        keys = {SPACE.architecture_key(TwoPathNetwork((path, one))) for path in (one, other)}
        assert len(keys) == 2


@pytest.mark.parametrize("reductions", [(0,), (1, 0), (0, 2)])
def test_paths_made_by_hand_are_checked(reductions):
    with pytest.raises(ArchitectureError, match="expected 2 to 4 blocks and 2 of them"):
        BlockPath((("conv3x3",), ("conv3x3",)), reductions)


def test_mutation_draws_the_blocks_it_adds():
    parent = TwoPathNetwork((BlockPath((("conv3x3",),) * 2, (0, 1)),) * 2)
    children = [SPACE.mutate(parent, rng(seed)) for seed in range(500)]
    added = [path.blocks[-1] for child in children for path in child.paths if len(path.blocks) > 2]
    assert {operation for block in added for operation in block} == {*CONVOLUTIONS, *SUPPLEMENTARY}
    assert {len(block) for block in added} == {1, 2, 3}
    longer = [block for child in children for path in child.paths for block in path.blocks[:2] if len(block) > 1]
    assert {operation for block in longer for operation in block} == set(CONVOLUTIONS)
