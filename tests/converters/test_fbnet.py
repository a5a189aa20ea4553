"""FBNet's graphs against the reference networks."""

from converters import to_onnx_text
from spaces.fbnet import FBNet, Layers
from tests.converters.golden import GoldenContract, TableContract, operators

SPACE = FBNet()


class TestGoldens(GoldenContract):
    space_name = "fbnet"
    run_rows = (0, 5)


class TestTable(TableContract):
    space_name = "fbnet"


def test_equal_keys_mean_equal_texts():
    stages = (("k3_e3", "skip", "k5_e1"), ("skip", "k3_e3", "k5_e1"))
    first, second = (Layers("cifar100", ("skip", "k3_e1", *stage, *["k5_e1_g2"] * 17)) for stage in stages)
    assert first != second
    assert SPACE.architecture_key(first) == SPACE.architecture_key(second)
    assert to_onnx_text(SPACE, first) == to_onnx_text(SPACE, second)


def test_a_skip_that_changes_shape_is_a_convolution():
    """Stem, header and one for each of six stages; the first stage keeps the stem's channels."""
    onnx_text = to_onnx_text(SPACE, Layers("cifar100", ("skip",) * 22))
    assert "[24, 16, 1, 1]" in onnx_text
    assert "group" not in onnx_text


def test_operators_without_weights():
    """Stem and header have one ReLU, layers two; all add their input but the six that change the channels."""
    found = operators(SPACE, Layers("ImageNet", ("k3_e6",) * 11 + ("k5_e1_g2",) * 11))
    assert (found["Relu"], found["Sum"], found["Transpose"]) == (2 + 2 * 22, 22 - 6, 11)
