"""The graphs of Two-Path networks against the reference networks."""

from converters import to_onnx_text
from spaces.two_path import TwoPath, TwoPathNetwork
from spaces.two_path_blocks import BlockPath
from tests.converters.golden import GoldenContract, operators

SPACE = TwoPath()


def network(*blocks: tuple[str, ...], reductions: tuple[int, int] = (0, 1)) -> TwoPathNetwork:
    """Two equal paths."""
    path = BlockPath(blocks, reductions)
    return TwoPathNetwork((path, path))


class TestGoldens(GoldenContract):
    space_name = "two_path"


def test_operators_without_weights():
    """Stem and last convolution have three activations; blocks that keep their shape add their input."""
    found = operators(SPACE, network(("conv3x3",), ("conv5x5",), ("conv3x3",)))
    assert (found["nn.Clip"], found["Sum"], found["Concat"]) == (3 + 2 * 3, 2, 1)
    found = operators(SPACE, network(("avgpool3x3", "conv3x3"), ("conv3x3", "maxpool3x3")))
    assert (found["AveragePool"], found["MaxPool"], found["nn.BatchNormalization"]) == (2, 2, 3 + 2 * 4)
    assert "count_include_pad: int = 1" in to_onnx_text(SPACE, network(("avgpool3x3", "conv3x3"), ("conv3x3",)))


def test_blocks_of_the_same_layers_are_one_text():
    kept = network(("conv3x3",), ("conv3x3",), ("double3x3",)), network(("conv3x3",), ("conv3x3",), ("conv3x3",) * 2)
    moved = (
        network(("conv3x3", "conv1x1"), ("conv5x5",)),
        network(("conv3x3",), ("conv1x1", "conv5x5")),
    )
    for first, second in (kept, moved):
        assert first != second
        assert SPACE.architecture_key(first) == SPACE.architecture_key(second)
        assert to_onnx_text(SPACE, first) == to_onnx_text(SPACE, second)


def test_representatives_of_swapped_paths_have_equal_texts():
    one, other = BlockPath((("conv3x3",), ("conv5x5",)), (0, 1)), BlockPath((("conv5x5",), ("conv3x3",)), (0, 1))
    first, second = (TwoPathNetwork(paths) for paths in ((one, other), (other, one)))
    assert SPACE.architecture_key(first) == SPACE.architecture_key(second)
    assert SPACE.representative(first) == SPACE.representative(second)
