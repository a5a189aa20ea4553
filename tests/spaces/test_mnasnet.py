"""The MnasNet space: both notations, and blocks that are checked."""

import json

import pytest

from spaces import ArchitectureError, get_space
from spaces.mnasnet import FIELDS, Block, MnasNet, Network
from tests.spaces.contract import SpaceContract, read_goldens

SPACE = MnasNet()
SMALL = Block(1, 3, 1, False)
ROW = {"e": 1, "k": 3, "l": 1, "se": False}


class TestContract(SpaceContract):
    space_name = "mnasnet"
    malformed = (*SpaceContract.malformed, "null", "[1, 2, 3, 4, 5, 6, 7]", "[[]]", '{"block0_e": 1}', "[" * 100_000)


class TestNotation:
    def test_list_and_published_object(self):
        for row in read_goldens("mnasnet"):
            published = row["genotype"]
            blocks = [{field: published[f"block{index}_{field}"] for field in FIELDS} for index in range(7)]
            architecture = SPACE.parse(json.dumps(published))
            assert SPACE.parse(json.dumps(blocks)) == architecture
            assert SPACE.format(architecture) == json.dumps(blocks)

    def test_genes_of_a_block_stand_together(self):
        blocks = [ROW, {"e": 6, "k": 5, "l": 3, "se": True}, ROW, ROW, ROW, ROW | {"l": 4}, ROW]
        architecture = SPACE.parse(json.dumps(blocks))
        assert architecture.blocks[1] == Block(6, 5, 3, True)
        assert SPACE.encode(architecture) == (*[0] * 4, 2, 1, 2, 1, *[0] * 14, 3, *[0] * 5)

    def test_size(self):
        assert SPACE.size == 3**7 * 2**7 * 3**6 * 4 * 2**7

    @pytest.mark.parametrize(
        ("blocks", "message"),
        [
            ([ROW] * 6, "expected a list of 7 in blocks, got 6 of them"),
            ([ROW] * 6 + [{"e": 1, "k": 3, "l": 1}], "expected an object with e, k, l, se, got no se"),
            ([ROW] * 6 + [ROW | {"c": 16}], "got also 'c'"),
            ([ROW] * 6 + [3], "expected an object with e, k, l, se, got 3"),
            ([ROW] * 4 + [ROW | {"e": 3}] + [ROW] * 2, "expected e of block 4 to be one of 1, 4, 6, got 3"),
            ([ROW | {"l": 4}] + [ROW] * 6, "expected l of block 0 to be one of 1, 2, 3, got 4"),
            ([ROW | {"se": 1}] + [ROW] * 6, "expected se of block 0 to be one of False, True, got 1"),
            ([ROW | {"e": True}] + [ROW] * 6, "expected e of block 0 to be one of 1, 4, 6, got True"),
            ([ROW | {"k": 3.0}] + [ROW] * 6, r"expected k of block 0 to be one of 3, 5, got 3\.0"),
            ([ROW | {"k": [3]}] + [ROW] * 6, r"expected k of block 0 to be one of 3, 5, got \[3\]"),
        ],
    )
    def test_errors_name_the_block(self, blocks, message):
        with pytest.raises(ArchitectureError, match=f"^mnasnet.*{message}"):
            SPACE.parse(json.dumps(blocks))

    def test_published_object_must_be_whole(self):
        published = read_goldens("mnasnet")[0]["genotype"]
        del published["block3_l"]
        with pytest.raises(ArchitectureError, match="got no block3_l in"):
            SPACE.parse(json.dumps(published))

    def test_networks_made_by_hand_are_checked(self):
        with pytest.raises(ArchitectureError, match="expected 7 blocks, got 2 of them"):
            Network((SMALL, SMALL))
        with pytest.raises(ArchitectureError, match="expected k of block 6"):
            Network((*[SMALL] * 6, Block(1, 7, 1, False)))


class TestActivation:
    def test_options(self):
        assert SPACE.activation == "silu"
        assert get_space("mnasnet", activation="relu").activation == "relu"

    def test_unknown(self):
        with pytest.raises(ValueError, match="expected one of silu, relu, got 'gelu'"):
            MnasNet(activation="gelu")
