"""Once-for-all ResNet50's graphs against the reference networks."""

import json

from converters import to_onnx_text
from spaces.ofa_resnet50 import OFAResNet50
from tests.converters.golden import GoldenContract, operators

SPACE = OFAResNet50()


class TestGoldens(GoldenContract):
    space_name = "ofa_resnet50"
    run_rows = (4, 47)  # small ones


def test_equal_keys_mean_equal_texts():
    genotype = {"d": [2, 0, 0, 0, 0], "e": [0.2] * 10, "r": 128}
    first, second = (
        SPACE.parse(json.dumps(genotype | {"w": [inside_the_stem, 0, 0, 0, 0, 0]})) for inside_the_stem in (0, 1)
    )
    assert first != second
    assert SPACE.architecture_key(first) == SPACE.architecture_key(second)
    assert to_onnx_text(SPACE, first) == to_onnx_text(SPACE, second)


def test_operators_without_weights():
    """18 blocks of three ReLUs; four shortcuts with a pooling; two or three ReLUs in the stem."""
    for stem_depth in (0, 1):
        genotype = {"d": [2 * stem_depth, 2, 2, 2, 2], "e": [0.2] * 18, "w": [0] * 6, "r": 132}
        found = operators(SPACE, SPACE.parse(json.dumps(genotype)))
        assert (found["Relu"], found["Sum"]) == (3 * 18 + 2 + stem_depth, 18 + stem_depth)
        assert (found["AveragePool"], found["MaxPool"]) == (4, 1)
