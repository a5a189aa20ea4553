"""Inception: blocks of parallel paths, their channels, genes, notation and key."""

import json
from dataclasses import replace
from itertools import islice, pairwise

import pytest

from spaces import ArchitectureError
from spaces.inception import Inception, InceptionNetwork
from spaces.inception_blocks import (
    CONVOLUTIONS,
    LAYOUTS,
    STAGE_CHANNELS,
    SUPPLEMENTARY,
    BlockPath,
    Stage,
    internal_choices,
    path_widths,
)
from spaces.inception_genes import all_stages, count_stages, decode_stage, encode_stage
from tests.spaces.contract import SpaceContract, read_goldens, rng

SPACE = Inception()


def spelled(seed: int = 0) -> dict:
    return json.loads(SPACE.format(SPACE.sample(rng(seed))))


class TestContract(SpaceContract):
    space_name = "inception"


class TestPath:
    def test_first_and_last_resizing_operations_set_the_channels(self):
        path = BlockPath(("maxpool3x3", "conv3x3", "conv5x5", "conv3x3"), 32, 64)
        assert [tuple(step) for step in path.steps(128, 2)] == [
            ("maxpool3x3", 128, 1),
            ("conv3x3", 32, 2),
            ("conv5x5", 32, 1),
            ("conv3x3", 64, 1),
        ]

    def test_a_supplementary_operation_resizes_but_has_no_stride(self):
        assert [tuple(step) for step in BlockPath(("conv1x1", "conv3x3"), 32, 64).steps(128, 2)] == [
            ("conv1x1", 32, 1),
            ("conv3x3", 64, 2),
        ]
        assert [step.channels for step in BlockPath(("conv3x3", "double1x1"), 32, 64).steps(128, 2)] == [32, 64]

    def test_widths(self):
        assert [path_widths(64, n) for n in (1, 2, 4)] == [(64,), (32, 32), (16,) * 4]
        assert [path_widths(64, 3, widest) for widest in range(3)] == [(32, 16, 16), (16, 32, 16), (16, 16, 32)]
        assert path_widths(32, 3) == (16, 16, 16), "at least 16 each"

    def test_internal_channels_change_only_between_two_resizing_operations(self):
        assert internal_choices(("conv3x3", "maxpool3x3"), 32) == (32, 32, 32)
        assert internal_choices(("conv3x3", "conv1x1"), 32) == (32, 16, 64)
        assert internal_choices(("conv3x3", "conv1x1"), 16) == (16, 16, 32)


class TestGenes:
    def test_any_genes_make_a_stage(self):
        for seed in range(200):
            genotype = tuple(rng(seed).integers(SPACE.gene_sizes).tolist())
            network = SPACE.decode(genotype)
            assert SPACE.decode(SPACE.encode(network)) == network

    def test_stages_are_listed_in_order(self):
        for channels in STAGE_CHANNELS:
            stages = list(islice(all_stages(channels), 3_000))
            genes = [encode_stage(stage) for stage in stages]
            assert all(before < after for before, after in pairwise(genes))
            assert [decode_stage(each, channels) for each in genes] == stages

    def test_count_of_one_path(self):
        """Sequences of 1, 2 and 3 operations with three widths inside, where two can change it."""
        one_path = [stage for stage in islice(all_stages(64), 8_000) if stage.num_blocks == 2 and len(stage.paths) == 1]
        assert len(one_path) == 8 + (32 + 3 * 96) + 3 * (512 + 3 * 4 * 64)
        assert count_stages(32) < count_stages(64) < count_stages(128) == count_stages(256)

    def test_layouts(self):
        assert [sum(len(lengths) == n for lengths in LAYOUTS) for n in (1, 2, 3, 4)] == [3, 6, 10, 15]


class TestNotation:
    def test_goldens(self):
        for row in read_goldens("inception"):
            network = SPACE.parse(json.dumps(row["genotype"]))
            assert json.loads(SPACE.format(network)) == row["genotype"]
            assert SPACE.decode(SPACE.encode(network)) == network

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"n_blocks": 7}, "expected n_blocks of stage 1 to be one of 2, 3, 4, 5, 6, got 7"),
            ({"C_out": 32}, "expected C_out of stage 1 to be one of 64, got 32"),
            ({"stride": 1}, "expected stride of stage 1 to be one of 2, got 1"),
            ({"block": {"paths": []}}, "in paths of stage 1, got 0 of them"),
            ({"block": []}, "expected an object with paths, got"),
            ({"more": 1}, "got also 'more'"),
        ],
    )
    def test_errors_name_the_stage(self, change, message):
        value = spelled()
        value["stages"][1] |= change
        with pytest.raises(ArchitectureError, match=f"^inception notation: .*{message}"):
            SPACE.parse(json.dumps(value))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"ops": ["conv7x7"]}, r"expected stage 1 path 0\[0\] to be one of .*got 'conv7x7'"),
            ({"op_types": ["supp"]}, "expected type 0 of stage 1 path 0 to be one of conv, got 'supp'"),
            ({"C_internal": 48}, "expected C_internal of 64, got 48 in stage 1 path 0"),
            ({"C_internal": "64"}, "expected C_internal of stage 1 path 0 to be an integer of 1 or more, got '64'"),
            ({"C_out": 32, "C_internal": 32}, r"expected paths of \[64\] channels, got \[32\] in stage 1"),
            ({"ops": ["conv3x3"] * 4, "op_types": ["conv"] * 4}, r"expected paths of lengths .*got \[4\] in stage 1"),
        ],
    )
    def test_errors_name_the_path(self, change, message):
        value = spelled()
        path = {"ops": ["conv3x3"], "op_types": ["conv"], "C_internal": 64, "C_out": 64}
        value["stages"][1]["block"]["paths"] = [path | change]
        with pytest.raises(ArchitectureError, match=message):
            SPACE.parse(json.dumps(value))


def test_samples_every_form():
    stages = [stage for seed in range(400) for stage in SPACE.sample(rng(seed)).stages]
    assert {stage.num_blocks for stage in stages} == {2, 3, 4, 5, 6}
    assert {tuple(len(path.operations) for path in stage.paths) for stage in stages} == set(LAYOUTS)
    changed = [path for stage in stages for path in stage.paths if path.internal != path.out]
    assert {path.internal / path.out for path in changed} == {0.5, 2}


def test_crossover_takes_whole_blocks():
    first, second = SPACE.sample(rng(0)), SPACE.sample(rng(1))
    for seed in range(30):
        child = SPACE.crossover(first, second, rng(seed))
        for stage, *parents in zip(child.stages, first.stages, second.stages, strict=True):
            assert stage.paths in [parent.paths for parent in parents]
            assert stage.num_blocks in [parent.num_blocks for parent in parents]


class TestKey:
    def test_is_readable(self):
        plain = InceptionNetwork(tuple(Stage((BlockPath(("conv3x3",), c, c),), 2) for c in STAGE_CHANNELS))
        assert SPACE.architecture_key(plain).startswith("2*(conv3x3:32>32) 2*(conv3x3:64>64) ")

    def test_paths_in_any_order_are_one_network(self):
        turned = 0
        for seed in range(20):
            network = SPACE.sample(rng(seed))
            twin = InceptionNetwork(tuple(replace(stage, paths=stage.paths[::-1]) for stage in network.stages))
            assert SPACE.architecture_key(twin) == SPACE.architecture_key(network)
            assert SPACE.representative(twin) == SPACE.representative(network)
            turned += twin != network
        assert turned > 10


def test_networks_made_by_hand_have_four_stages():
    stage = SPACE.sample(rng(0)).stages[0]
    with pytest.raises(ArchitectureError, match="expected 4 stages, got 1"):
        InceptionNetwork((stage,))


def test_mutation_draws_the_paths_it_adds():
    path = BlockPath(("conv3x3",), 32, 32)
    stages = (Stage((path,), 2), *(Stage((replace(path, internal=c, out=c),), 2) for c in STAGE_CHANNELS[1:]))
    children = [SPACE.mutate(InceptionNetwork(stages), rng(seed)) for seed in range(300)]
    added = [path for child in children for stage in child.stages for path in stage.paths[1:]]
    assert {operation for path in added for operation in path.operations} == {*CONVOLUTIONS, *SUPPLEMENTARY}
    assert {path.internal / path.out for path in added} == {0.5, 1, 2}
    widest = {
        stage.paths.index(max(stage.paths, key=lambda path: path.out))
        for child in children
        for stage in child.stages[1:]
        if len(stage.paths) == 3
    }
    assert widest == {0, 1, 2}
