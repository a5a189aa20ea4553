"""Once-for-all ResNet50: stem, widths and blocks."""

import json

from spaces.ofa_resnet50 import OFAResNet50
from tests.spaces.ofa import OnceForAllContract

SPACE = OFAResNet50()
NOTATION = {"d": [2, 0, 0, 1, 0], "e": [0.2, 0.35] * 2 + [0.25] * 7, "w": [0, 1, 2, 2, 1, 0], "r": 188}
REFUSED = (
    ({"d": [3, 0, 0, 1, 0]}, "expected d at position 0 to be one of 0, 1, 2, got 3"),
    ({"d": [0, 0, 0, 3, 0]}, "expected d at position 3 to be one of 0, 1, 2, got 3"),
    ({"d": [0, 0, 0, 1]}, "expected a list of 5 in d, got 4 of them"),
    ({"w": [0, 1, 2, 2, 1, 3]}, "expected w at position 5 to be one of 0, 1, 2, got 3"),
    ({"w": [0, True, 2, 2, 1, 0]}, "expected w at position 1 to be one of 0, 1, 2, got True"),
    ({"e": [0.2] * 10}, "expected a list of 11 or 18 in e, got 10 of them"),
    ({"e": [0.2] * 10 + [0.3]}, r"expected e of stage 3, block 1 to be one of 0\.2, 0\.25, 0\.35, got 0\.3"),
    ({"r": "188"}, "expected r to be one of 128, .*, got '188'"),
)


def notation(**others: object) -> str:
    return json.dumps(NOTATION | others)


class TestContract(OnceForAllContract):
    space_name = "ofa_resnet50"
    notation = NOTATION
    refused = REFUSED
    block_lists = ("e",)


def test_size():
    assert SPACE.size == 25 * 2 * 117**3 * 1053 * 3**6


def test_notation():
    architecture = SPACE.parse(notation())
    assert architecture.stem_block
    assert architecture.widths == (0, 1, 2, 2, 1, 0)
    assert [len(stage) for stage in architecture.stages] == [2, 2, 5, 2]
    assert architecture.stages[0] == ((0.2,), (0.35,))
    assert SPACE.format(architecture) == notation()


def test_the_stem_has_a_block_or_none():
    """Its depth is 0 or 2 where networks are drawn; a 1 omits the block, too."""
    none, also_none = (SPACE.parse(notation(d=[depth, 0, 0, 1, 0])) for depth in (0, 1))
    assert none == also_none != SPACE.parse(notation())
    assert not none.stem_block
    assert json.loads(SPACE.format(also_none))["d"][0] == 0


def test_the_two_first_widths_inside_the_stem_are_one():
    keys = {width: SPACE.architecture_key(SPACE.parse(notation(w=[width, 1, 2, 2, 1, 0]))) for width in range(3)}
    assert keys[0] == keys[1] != keys[2]
