"""Once-for-all ProxylessNAS: its last stage has one block, its width is 1.3."""

import json

from spaces.ofa_proxylessnas import OFAProxylessNAS
from tests.spaces.ofa import OnceForAllContract

SPACE = OFAProxylessNAS()
NOTATION = {"ks": [3, 5] * 5 + [7], "e": [3, 6] * 5 + [4], "d": [2] * 5 + [1], "r": 188, "w": 1.3}
REFUSED = (
    ({"d": [2] * 6}, "expected d at position 5 to be one of 1, got 2"),
    ({"w": 1.0}, r"expected w to be one of 1\.3, got 1\.0"),
    ({"ks": [3] * 20, "e": [3] * 20}, "expected a list of 11 or 21 in ks, got 20 of them"),
)


class TestContract(OnceForAllContract):
    space_name = "ofa_proxylessnas"
    notation = NOTATION
    refused = REFUSED


def test_size():
    assert SPACE.size == 25 * (9**2 + 9**3 + 9**4) ** 5 * 9


def test_notation():
    architecture = SPACE.parse(json.dumps(NOTATION))
    assert architecture.stages[5] == ((7, 4),)
    assert SPACE.format(architecture) == json.dumps(NOTATION)
    assert SPACE.parse(json.dumps({key: value for key, value in NOTATION.items() if key != "w"})) == architecture
