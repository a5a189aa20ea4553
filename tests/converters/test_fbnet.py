"""FBNet's graphs against the reference networks."""

from converters import to_onnx_text
from converters.text import parse
from spaces.fbnet import FBNet, Layers
from tests.converters.golden import GoldenContract, TableContract


class TestGoldens(GoldenContract):
    space_name = "fbnet"


class TestTable(TableContract):
    space_name = "fbnet"


def test_equal_keys_mean_equal_texts():
    space = FBNet()
    rest = ("k5_e1_g2",) * 17
    first, second = (Layers("cifar100", ("skip", "k3_e1", *stage, *rest)) for stage in PLACES)
    assert space.architecture_key(first) == space.architecture_key(second)
    assert to_onnx_text(space, first) == to_onnx_text(space, second)


def test_a_skip_that_changes_shape_is_a_convolution():
    space = FBNet()
    texts = [to_onnx_text(space, Layers("cifar100", ("skip", *["skip"] * 21)))]
    convolutions = [line for line in texts[0].splitlines() if "nn.Conv" in line]
    assert len(parse(texts[0]).graph.node) > 0
    assert convolutions
