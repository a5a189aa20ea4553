"""NAS-Bench-Macro: digits, and identities that do not count."""

import pytest

from spaces import ArchitectureError
from spaces.nasbench_macro import Layers, NASBenchMacro
from tests.spaces.contract import SpaceContract

SPACE = NASBenchMacro()


def key(notation: str) -> str:
    return SPACE.architecture_key(SPACE.parse(notation))


class TestContract(SpaceContract):
    space_name = "nasbench_macro"
    malformed = (*SpaceContract.malformed, "00000003", "0000000", "000000000", "0000000²", '"0000000"', "0 000000")


class TestNotation:
    def test_digits_are_genes(self):
        architecture = SPACE.parse("01200120")
        assert architecture.operations[:3] == ("id", "ir_3x3_t3", "ir_5x5_t6")
        assert SPACE.encode(architecture) == (0, 1, 2, 0, 0, 1, 2, 0)
        assert SPACE.format(architecture) == "01200120"

    @pytest.mark.parametrize(
        ("notation", "message"),
        [("0000300", "position 4"), ("0000000", "7 of them"), ("1" * 1000, r"….*1000 of them")],
    )
    def test_errors_name_the_position(self, notation, message):
        with pytest.raises(ArchitectureError, match=f"expected 8 digits of 012, got .*{message}"):
            SPACE.parse(notation)

    @pytest.mark.parametrize(
        ("operations", "where"), [(("id",) * 7, "7 of them"), (("id",) * 7 + ("skip",), "position 7")]
    )
    def test_layers_made_by_hand_are_checked(self, operations, where):
        with pytest.raises(ArchitectureError, match=f"expected 8 operations of id, .*{where}"):
            Layers(operations)


class TestKey:
    def test_is_readable(self):
        assert key("20001012") == "ir_5x5_t6; id ir_3x3_t3; id ir_3x3_t3 ir_5x5_t6"

    def test_identities_stand_anywhere_in_their_stage(self):
        assert key("00001002") == key("00010020")

    def test_the_first_of_a_stage_is_a_convolution(self):
        assert key("01000000") != key("10000000")
        assert key("00010000") != key("00100000")
        assert key("00000100") != key("00000010")

    def test_count(self):
        """9 pairs, and per stage of three 3 openings x (1 + 2 + 4) sequences of the others."""
        assert len({SPACE.architecture_key(architecture) for architecture in SPACE.enumerate()}) == 9 * 21 * 21
