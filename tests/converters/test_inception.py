"""The graphs of Inception networks against the reference networks."""

import pytest

from converters import to_onnx_text
from spaces.inception import Inception, InceptionNetwork
from spaces.inception_blocks import BlockPath, Stage
from tests.converters.golden import GoldenContract, operators

SPACE = Inception()
CHANNELS = (32, 64, 128, 256)


def network(*operations: str) -> InceptionNetwork:
    """Two blocks a stage, of one path."""
    return InceptionNetwork(tuple(Stage((BlockPath(operations, c, c),), 2) for c in CHANNELS))


class TestGoldens(GoldenContract):
    space_name = "inception"


def test_operators_without_weights():
    """Stem, last convolution and one or more for each of eight blocks; five blocks keep their shape."""
    found = operators(SPACE, network("conv3x3"))
    assert (found["nn.Clip"], found["Sum"], found["Concat"]) == (2 + 8, 5, 0)
    found = operators(SPACE, network("inception_p3x3"))
    assert (found["nn.Clip"], found["Concat"]) == (2 + 3 * 8, 8)
    found = operators(SPACE, network("depthwise5x5"))
    assert found["nn.Clip"] == 2 + 8
    found = operators(SPACE, network("conv3x3", "avgpool3x3"))
    assert (found["AveragePool"], found["nn.BatchNormalization"]) == (8, 2 + 2 * 8)


@pytest.mark.parametrize("operation", ["conv5x5", "inception_s3x3", "inception_p5x5", "depthwise3x3"])
def test_first_blocks_halve_the_resolution(operation):
    assert "strides" in to_onnx_text(SPACE, network(operation))


def test_pools_count_their_padding_and_maxima_do_not():
    onnx_text = to_onnx_text(SPACE, network("conv3x3", "avgpool3x3"))
    assert "count_include_pad: int = 1" in onnx_text


def test_representatives_of_swapped_paths_have_equal_texts():
    paths = (
        [BlockPath(("conv3x3",), c, c) for c in (16, 32, 64, 128)],
        [BlockPath(("conv5x5",), c, c) for c in (16, 32, 64, 128)],
    )
    networks = [
        InceptionNetwork(tuple(Stage(pair, 2) for pair in zip(*order, strict=True))) for order in (paths, paths[::-1])
    ]
    assert SPACE.architecture_key(networks[0]) == SPACE.architecture_key(networks[1])
    first, second = (to_onnx_text(SPACE, SPACE.representative(each)) for each in networks)
    assert first == second
