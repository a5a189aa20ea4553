"""Once-for-all ProxylessNAS's graphs against the reference networks."""

import json

from spaces.ofa_proxylessnas import OFAProxylessNAS
from tests.converters.golden import GoldenContract, operators

SPACE = OFAProxylessNAS()


class TestGoldens(GoldenContract):
    space_name = "ofa_proxylessnas"
    run_rows = (3, 35)  # small ones


def test_operators_without_weights():
    """ReLU6 everywhere: stem, first block, two in each of 21 blocks, head; only later blocks of a stage add."""
    genotype = {"ks": [3] * 21, "e": [3] * 21, "d": [4] * 5 + [1], "r": 128}
    found = operators(SPACE, SPACE.parse(json.dumps(genotype)))
    assert (found["nn.Clip"], found["Relu"], found["Sum"]) == (1 + 1 + 2 * 21 + 1, 0, 5 * 3)
