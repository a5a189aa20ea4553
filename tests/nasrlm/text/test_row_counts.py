"""Rows of texts with all their attributes: counted at their places, wherever their blocks are called."""

import zlib
from collections import Counter

import numpy as np
import pytest

from converters import to_measured_text, to_onnx_text
from nasrlm.text.counts import places
from nasrlm.text.network import read_written_out
from nasrlm.text.row_counts import LARGEST, OTHER, WHOLE, row_counts
from spaces import get_space, space_names
from tests.nasrlm.text.test_presentation import called, function, network

CONV = "nn.ConvBias <pads: ints = [1, 1, 1, 1], weight_shape: ints = [8, 8, 3, 3]>"
POOL = "AveragePool <kernel_shape: ints = [3, 3], strides: ints = [2, 2]>"


def counted(text: str) -> dict[int, float]:
    """Without what says what kind of text it is."""
    whole, kind = list(row_counts(text).by_row.items())[-2:]
    assert (whole, kind[1]) == ((WHOLE, 1), 1)
    return dict(list(row_counts(text).by_row.items())[:-2])


def written_out(text: str) -> Counter[int]:
    """The same of a network with every block written out."""
    network, *executed = read_written_out(text)
    at = [place.rpartition(" ")[2] for place in places(network)]
    names = [f"{operator.spelled} {place}" for operator, place in zip(network.operators, at, strict=True)]
    names += [f"executed {operator.spelled}" for body in executed for operator in body.operators]
    return Counter(zlib.crc32(name.encode()) for name in names)


@pytest.mark.parametrize("name", space_names())
@pytest.mark.parametrize("to_text", [to_onnx_text, to_measured_text])
def test_blocks_count_as_what_they_are_wherever_they_are_called(name: str, to_text: type[str]) -> None:
    space, rng = get_space(name), np.random.default_rng(1)
    for _ in range(5):
        text = to_text(space, space.sample(rng))
        assert counted(text) == written_out(text)


def test_inputs_and_blocks_as_executed_make_other_kinds_of_texts() -> None:
    space = get_space("nasbench201")
    architecture = space.sample(np.random.default_rng(0))
    canonical, measured = (to_text(space, architecture) for to_text in (to_onnx_text, to_measured_text))
    of_each = [row_counts(text) for text in (canonical, measured, canonical.replace("3,32,32]", "3,64,64]", 1))]
    assert [x.num_pixels for x in of_each] == [32 * 32, 32 * 32, 64 * 64]
    assert len({list(x.by_row)[-1] for x in of_each}) == 3
    assert row_counts(network("v9 = Relu (v0)")).num_pixels == 1


def test_rows_are_counted_at_their_places() -> None:
    halved = network("v1 = Relu (v0)", f"v2 = {CONV} (v1)", f"v3 = {POOL} (v2)", f"v4 = {CONV} (v3)", "v9 = Relu (v4)")
    first, last = (counted(network(f"v1 = {a} (v0)", f"v9 = {b} (v1)")) for a, b in ((POOL, CONV), (CONV, POOL)))
    counts = counted(halved)
    assert sorted(counts.values()) == [1] * 5  # a ReLU and a convolution at either place, the pool
    assert set(first) | set(last) < set(counts)
    assert set(first) != set(last)


def test_calls_give_blocks_their_values_and_places() -> None:
    cell = function("B0 <a0>(v0) => (v9)", "v1 = nn.Conv <weight_shape: ints = @a0> (v0)", f"v9 = {POOL} (v1)")
    row = function("B1 <a0>(v0) => (v9)", *called(2, "block.B0 <a0: ints = @a0>"))
    small, large = ("block.B1 <a0: ints = [4, 2, 3, 3]>", "block.B1 <a0: ints = [8, 2, 3, 3]>")
    text = network(f"v1 = {small} (v0)", f"v9 = {large} (v1)") + row + cell
    assert counted(text) == written_out(text)
    assert len(counted(text)) == 8  # four convolutions, as many pools
    cell = function("B0 <a0>(v0) => (v9)", "v1 = nn.Conv <weight_shape: ints = @a0> (v0)", "v9 = Relu (v1)")
    called_seven_times = network(*called(7, "block.B0 <a0: ints = [4, 2, 3, 3]>")) + cell
    assert sorted(counted(called_seven_times).values()) == [7, 7]


def test_what_is_no_network_is_another_text() -> None:
    of_itself = network("v9 = block.B0 (v0)") + function("B0 (v0) => (v9)", "v9 = block.B0 (v0)")
    of_nothing = network("v9 = Relu (v7)")
    twice = network("v9 = Relu (v0)", "v9 = Relu (v0)")
    for text in ("def f(): pass", "", of_itself, of_nothing, twice):
        assert row_counts(text).by_row == {WHOLE: 1, OTHER: 1}


def test_blocks_of_blocks_stay_within_bounds() -> None:
    doubling = [
        function(f"B{index} (v0) => (v9)", f"v1 = block.B{index - 1} (v0)", f"v9 = block.B{index - 1} (v1)")
        for index in range(1, 60)
    ]
    ten_times = function("B0 (v0) => (v9)", *called(10, "Relu"))
    counts = counted(network("v9 = block.B59 (v0)") + "".join(doubling) + ten_times)
    assert max(counts.values()) == 10 * 2**59
    hundreds = [function(f"B{index} (v0) => (v9)", *called(90, f"block.B{index - 1}")) for index in range(1, 40)]
    counts = counted(network("v9 = block.B39 (v0)") + "".join(hundreds) + ten_times)
    assert max(counts.values()) == LARGEST


def all_differ(levels: int) -> str:
    """Blocks that each call the next twice, with another last argument: two to the power of the levels calls in all."""
    blocks = []
    for count in range(1, levels + 1):
        given = [f"a{index}: int = @a{index}" for index in range(count)]
        calls = [
            f"v{place} = block.B{count} <{', '.join([*given, f'a{count}: int = {place}'])}> (v{place - 1})"
            for place in (1, 2)
        ]
        parameters = ",".join(f"a{index}" for index in range(count))
        blocks.append(function(f"B{count - 1} <{parameters}>(v0) => (v2)", *calls))
    parameters = ",".join(f"a{index}" for index in range(levels + 1))
    attributes = ", ".join(f"p{index}: int = @a{index}" for index in range(levels + 1))
    leaf = function(f"B{levels} <{parameters}>(v0) => (v9)", f"v9 = My <{attributes}> (v0)")
    return network("v9 = block.B0 <a0: int = 0> (v0)") + "".join(blocks) + leaf


def test_calls_that_all_differ_are_counted() -> None:
    assert list(counted(all_differ(5)).values()) == [1] * 2**5


@pytest.mark.parametrize("levels", [20, 60])
def test_calls_that_all_differ_are_not_followed_for_hours(levels: int) -> None:
    assert row_counts(all_differ(levels)).by_row == {WHOLE: 1, OTHER: 1}


def test_depth_counts_wherever_a_chain_is_entered() -> None:
    chain = [function(f"B{level} (v0) => (v9)", f"v9 = block.B{level - 1} (v0)") for level in range(1, 70)]
    text = (
        network("v1 = block.B20 (v0)", "v9 = block.B69 (v1)")
        + "".join(chain)
        + function("B0 (v0) => (v9)", "v9 = Relu (v0)")
    )
    assert row_counts(text).by_row == {WHOLE: 1, OTHER: 1}
