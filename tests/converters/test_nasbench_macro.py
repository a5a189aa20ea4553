"""NAS-Bench-Macro's graphs against the reference networks."""

from converters import to_onnx_text
from spaces.nasbench_macro import NASBenchMacro
from tests.converters.golden import CountedTableContract, GoldenContract, operators

SPACE = NASBenchMacro()


class TestGoldens(GoldenContract):
    space_name = "nasbench_macro"


class TestTable(CountedTableContract):
    space_name = "nasbench_macro"


def test_equal_keys_mean_equal_texts():
    first, second = SPACE.parse("20001012"), SPACE.parse("20010102")
    assert SPACE.architecture_key(first) != SPACE.architecture_key(second)
    assert to_onnx_text(SPACE, first) != to_onnx_text(SPACE, second)
    second = SPACE.parse("20010012")
    assert first != second
    assert SPACE.architecture_key(first) == SPACE.architecture_key(second)
    assert to_onnx_text(SPACE, first) == to_onnx_text(SPACE, second)


def test_operators():
    """Stem and header have a ReLU, an inverted residual two; only those that keep the shape add their input."""
    found = operators(SPACE, SPACE.parse("12010002"))
    assert (found["Relu"], found["Sum"], found["nn.Conv"]) == (2 + 2 * 4, 3, 2 + 3 * 4 + 2)
