"""Once-for-all MobileNetV3: notation, widths and sizes."""

import json

import numpy as np
import pytest

from spaces import ArchitectureError
from spaces.ofa import MobileBlock
from spaces.ofa_mobilenetv3 import MobileNetV3, OFAMobileNetV3
from tests.spaces.ofa import OnceForAllContract

SPACE = OFAMobileNetV3()
NOTATION = {"ks": [3, 5] * 5, "e": [3, 6] * 5, "d": [2] * 5, "r": 188, "w": 1.2}
REFUSED = (
    ({"d": [2, 2, 2, 2]}, "expected a list of 5 in d, got 4 of them"),
    ({"d": [2, 2, 5, 2, 2]}, "expected d at position 2 to be one of 2, 3, 4, got 5"),
    ({"d": 2}, "expected a list of 5 in d, got 2[.]"),
    ({"ks": [3] * 11}, "expected a list of 10 or 20 in ks, got 11 of them"),
    ({"ks": [3] * 20}, "expected lists of equal length, got 20 in ks, 10 in e"),
    ({"ks": [3] * 3 + [4] * 7}, "expected ks of stage 1, block 1 to be one of 3, 5, 7, got 4"),
    ({"e": [3] * 9 + ["6"]}, "expected e of stage 4, block 1 to be one of 3, 4, 6, got '6'"),
    ({"r": 130}, "expected r to be one of 128, .*, got 130"),
    ({"r": None}, "expected r to be one of 128, .*, got None"),
    ({"w": 1.1}, r"expected w to be one of 1\.0, 1\.2, got 1\.1"),
    ({"image_size": 224}, "got also 'image_size'"),
)


def notation(**others: object) -> str:
    return json.dumps(NOTATION | others)


class TestContract(OnceForAllContract):
    space_name = "ofa_mobilenetv3"
    notation = NOTATION
    refused = REFUSED


def test_size():
    assert SPACE.size == 2 * 25 * (9**2 + 9**3 + 9**4) ** 5
    assert OFAMobileNetV3(width=1.0, resolution=224).size == (9**2 + 9**3 + 9**4) ** 5


def test_parse():
    stage = (MobileBlock(3, 3), MobileBlock(5, 6))
    architecture = MobileNetV3(stages=(stage,) * 5, resolution=188, width=1.2)
    assert SPACE.parse(notation()) == architecture
    assert SPACE.format(architecture) == notation()
    assert SPACE.encode(architecture)[:11] == (15, 1, 0, 0, 0, 1, 2, 0, 0, 0, 0)


def test_numbers_are_those_of_the_choices():
    """1 reads as 1.0 and 188.0 as 188: the canonical spelling has one form."""
    architecture = SPACE.parse(notation(w=1, r=188.0, d=[2.0] * 5))
    assert SPACE.format(architecture) == notation(w=1.0)


def test_width_can_be_left_out_where_there_is_one():
    without = json.dumps({key: value for key, value in NOTATION.items() if key != "w"})
    assert OFAMobileNetV3(width=1.2).parse(without) == SPACE.parse(notation())
    with pytest.raises(ArchitectureError, match="with ks, e, d, r, w, got no w"):
        SPACE.parse(without)


def test_samples_of_one_width():
    space = OFAMobileNetV3(width=1.2)
    assert {space.sample(np.random.default_rng(seed)).width for seed in range(5)} == {1.2}
    with pytest.raises(ArchitectureError, match=r"expected w to be one of 1\.2, got 1\.0"):
        space.parse(notation(w=1.0))


def test_networks_made_by_hand_are_checked():
    stages = ((MobileBlock(3, 3), MobileBlock(3, 5)),) * 5
    with pytest.raises(ArchitectureError, match="expected e of stage 0, block 1 to be one of 3, 4, 6, got 5"):
        MobileNetV3(stages=stages, resolution=224, width=1.0)


def test_keys_are_the_notation():
    assert SPACE.architecture_key(SPACE.parse(notation(ks=[3, 5, 7, 7] * 5, e=[3, 6, 3, 3] * 5))) == notation()
