"""HiAML: a list of four names."""

import json

import pytest

from spaces import ArchitectureError
from spaces.hiaml import BLOCKS, HiAML, Stages
from tests.spaces.contract import SpaceContract, read_goldens

SPACE = HiAML()
NAMES = ["hiaml_z", "hiaml_src8", "hiaml_l20", "hiaml_z"]


class TestContract(SpaceContract):
    space_name = "hiaml"
    malformed = (*SpaceContract.malformed, "null", '"hiaml_z"', '["hiaml_z"]', "[" * 100_000)


class TestNotation:
    def test_names(self):
        architecture = SPACE.parse(json.dumps(NAMES))
        assert architecture == Stages(tuple(NAMES))
        assert SPACE.encode(architecture) == (0, 13, 2, 0)
        assert SPACE.format(architecture) == json.dumps(NAMES)
        assert SPACE.size == 14**4 == 38_416

    def test_goldens_hold_every_block(self):
        found = {name for row in read_goldens("hiaml") for name in SPACE.parse(json.dumps(row["genotype"])).blocks}
        assert found == set(BLOCKS)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (NAMES[:3], "expected a list of 4 in the notation, got 3 of them"),
            ([*NAMES[:3], "z"], "expected the block at position 3 to be one of hiaml_z, .*, got 'z'"),
            ([*NAMES[:3], ["hiaml_z"]], r"position 3 to be one of hiaml_z, .*, got \['hiaml_z'\]"),
            ({"blocks": NAMES}, "expected a list of 4 in the notation, got {'blocks'"),
        ],
    )
    def test_errors_name_the_position(self, value, message):
        with pytest.raises(ArchitectureError, match=f"^hiaml.*{message}"):
            SPACE.parse(json.dumps(value))

    def test_stages_made_by_hand_are_checked(self):
        with pytest.raises(ArchitectureError, match="expected 4 blocks, got 1 of them"):
            Stages(("hiaml_z",))
