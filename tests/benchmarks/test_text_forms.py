"""Other forms of a text say what it says, and reordered sums are the same network."""

import numpy as np

from benchmarks.text_forms import as_letters, reordered, with_distances, with_names
from converters import to_model, to_onnx_text
from nasrlm.text.presentation import present
from nasrlm.text.tokenizer import TextTokenizer
from spaces import get_space
from tests.converters.numerics import relative_error, run_model

SPACE = get_space("nasbench201")
TEXT = to_onnx_text(SPACE, SPACE.decode((3, 2, 1, 3, 2, 3)))
CELL = """B1 v0 to v10
v1 Relu v0
v2 nn.ConvBias pads=[1,1,1,1],weight_shape=[64,64,3,3] v1
v3 nn.ConvBias weight_shape=[64,64,1,1] v1
v4 Sum v2 v3
v5 Relu v4
v6 nn.ConvBias pads=[1,1,1,1],weight_shape=[64,64,3,3] v5
v7 Relu v2
v8 nn.ConvBias weight_shape=[64,64,1,1] v7
v9 nn.ConvBias pads=[1,1,1,1],weight_shape=[64,64,3,3] v1
v10 Sum v9 v8 v6
"""


def test_a_cell_in_names_and_in_distances() -> None:
    named, by_distance = with_names(TEXT), with_distances(TEXT)
    assert CELL in named
    rows = [row.split() for row in CELL.splitlines()[1:]]
    number = {"v0": 0} | {row[0]: index for index, row in enumerate(rows, start=1)}
    expected = [
        " ".join(f"@{index - number[word]}" if word in number else word for word in words)
        for index, (_, *words) in enumerate(rows, start=1)
    ]
    assert "\n".join(["B1", *expected, ""]) in by_distance
    assert len(by_distance.splitlines()) == len(named.splitlines())
    assert {present(named), present(by_distance)} == {named, by_distance}, "read as they stand"


def test_reordered_sums_are_the_same_network() -> None:
    others = {reordered(TEXT, np.random.default_rng(seed)) for seed in range(200)}
    assert len(others) == 2 * 2 * 6
    expected = run_model(to_model(TEXT))
    for other in list(others)[:3]:
        assert sorted(other) == sorted(TEXT)
        assert relative_error(run_model(to_model(other)), expected) < 1e-5


def test_letters_are_as_many_as_tokens() -> None:
    texts = [TEXT, to_onnx_text(SPACE, SPACE.decode((0, 2, 1, 3, 2, 3)))]
    tokenizer = TextTokenizer.train(texts, 300)
    letters, tokens = as_letters(texts, tokenizer), tokenizer.to_ids(texts)
    assert [*map(len, letters)] == [*map(len, tokens)]
    assert letters[0][0] == letters[1][0], "the same token is the same letter"
    assert letters[0] != letters[1]
