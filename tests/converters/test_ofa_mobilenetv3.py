"""Once-for-all MobileNetV3's graphs against the reference networks and the published counts."""

import json

from spaces.ofa_mobilenetv3 import OFAMobileNetV3
from tests.converters.golden import CountedTableContract, GoldenContract, operators

SPACE = OFAMobileNetV3()


class TestGoldens(GoldenContract):
    space_name = "ofa_mobilenetv3"
    run_rows = (2, 62)  # the smallest of both widths


class TestTable(CountedTableContract):
    space_name = "ofa_mobilenetv3"


def test_operators_without_weights():
    """Four blocks a stage: stages 0 and 1 with ReLU, the others with h-swish; attention in stages 1, 3 and 4."""
    genotype = {"ks": [3] * 20, "e": [3] * 20, "d": [4] * 5, "r": 128, "w": 1.0}
    found = operators(SPACE, SPACE.parse(json.dumps(genotype)))
    first_block, attention = 1, 3 * 4
    assert found["Relu"] == first_block + 2 * 2 * 4 + attention
    assert found["HardSwish"] == 1 + 3 * 2 * 4 + 2
    assert found["HardSigmoid"] == found["Mul"] == found["GlobalAveragePool"] - 1 == attention
    assert found["Sum"] == first_block + 5 * 3
