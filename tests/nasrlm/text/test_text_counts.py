"""Walks, neighbours, rows and sizes of texts: counted as defined, whatever the names, within bounds."""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest

from converters import to_measured_text, to_onnx_text
from converters.convert import to_canonical_graph, to_graph
from nasrlm.text import inlining
from nasrlm.text.counts import (
    AT_PLACES,
    LONGEST_WALK,
    MOST_WALKS,
    NUM_COUNTS,
    NUM_PLACES,
    NUM_ROWS,
    NUM_SIZES,
    NUM_STRUCTURES,
    counts_and_sizes,
    log_sizes,
    neighbours,
    paths,
    places,
    text_counts,
    walks,
)
from nasrlm.text.network import read_written_out
from nasrlm.text.operator_graph import BodyGraph
from spaces import get_space, space_names
from studies.surrogates.features import BESIDE, COUNT, ROW, WALK, graph_features
from tests.nasrlm.scenes import drawn_texts
from tests.nasrlm.text.test_presentation import called, function, network

CONV = "nn.ConvBias <pads: ints = [1, 1, 1, 1], weight_shape: ints = [8, 8, 3, 3]>"
POOL = "AveragePool <kernel_shape: ints = [3, 3], strides: ints = [2, 2]>"


def nodes(text: str) -> BodyGraph:
    return read_written_out(text)[0]


def enumerated(nodes: BodyGraph) -> Counter[str]:
    """Every path of up to LONGEST_WALK operators, one by one."""
    total: Counter[str] = Counter()

    def walk(number: int, below: tuple[str, ...]) -> None:
        if not nodes.passed[number]:
            below = (nodes.labels[number], *below)
            total[" > ".join(below)] += 1
            if len(below) == LONGEST_WALK:
                return
        for source in nodes.sources[number]:
            walk(source, below)

    for number, passed in enumerate(nodes.passed):
        if not passed:
            walk(number, ())
    return total


def test_walks_pass_sums_and_relus_and_know_kernels_and_strides() -> None:
    text = network(f"v1 = {CONV} (v0)", f"v2 = {POOL} (v1)", "v3 = Relu (v2)", "v9 = Sum (v3, v1)")
    of_text = walks(nodes(text))
    assert of_text["input > Conv3x3 > AveragePool3s > output"] == 1
    assert of_text["Conv3x3 > output"] == 1
    assert not any("Sum" in walk or "Relu" in walk for walk in of_text)
    assert neighbours(nodes(text))["Sum < Conv3x3 < Relu"] == 1


def test_every_pair_of_neighbours_is_counted_at_every_operator() -> None:
    sources = (f"v1 = {CONV} (v0)", f"v2 = {CONV} (v0)", f"v3 = {POOL} (v0)")
    sums = ("v4 = Sum (v1, v2, v3)", "v5 = Sum (v1, v2, v3)")
    counts = neighbours(nodes(network(*sources, *sums, "v9 = Mul (v4, v5)")))
    of_sums = {name.removeprefix("Sum "): count for name, count in counts.items() if name.startswith("Sum ")}
    conv, pool, product = "< Conv3x3", "< AveragePool3s", "> Mul"
    assert of_sums == {
        conv: 4,
        pool: 2,
        product: 2,
        f"{conv} {conv}": 2,
        f"{pool} {conv}": 4,
        f"{conv} {product}": 4,
        f"{pool} {product}": 2,
    }


@pytest.mark.parametrize("name", ["nasbench101", "nasbench201", "darts", "mnasnet"])
def test_walks_are_all_paths(name: str) -> None:
    space, rng = get_space(name), np.random.default_rng(0)
    for _ in range(3):
        for of_body in read_written_out(to_measured_text(space, space.sample(rng))):
            assert walks(of_body) == enumerated(of_body)


@pytest.mark.parametrize("name", space_names())
def test_a_text_counts_what_its_graph_does(name: str) -> None:
    """Input and output are operators in texts alone, and paths begin at constants there as well."""
    space, rng = get_space(name), np.random.default_rng(2)
    for architecture in [space.sample(rng) for _ in range(3)]:
        of_graph = graph_features(to_canonical_graph(to_graph(space, architecture)))
        of_text = nodes(to_onnx_text(space, architecture))
        assert within(walks(of_text)) == named(of_graph, WALK)
        assert within(neighbours(of_text)) == named(of_graph, BESIDE)
        rows = Counter(operator.spelled for operator in of_text.operators)  # whose attributes are spelled otherwise
        assert sorted(rows.values()) == sorted(named(of_graph, ROW).values())
        *by_paths, depth, _ = paths(of_text)
        assert depth == of_graph["depth"] + 1
        if all(of_text.sources[1:]):
            expected = [of_graph[of] for of in ("paths", "path mean", "path variance", "path minimum")]
            assert by_paths == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["nasbench101", "nasbench201", "darts", "nasbench_macro"])
def test_places_are_where_strides_lead(name: str) -> None:
    space, rng = get_space(name), np.random.default_rng(2)
    architecture = space.sample(rng)
    of_graph = named(graph_features(to_canonical_graph(to_graph(space, architecture))), COUNT)
    of_text = Counter(places(nodes(to_onnx_text(space, architecture))))
    by_size = {place: count for place, count in of_graph.items() if " /" in place and not place.startswith("Global")}
    assert len(by_size) > 3
    assert {place: of_text[place] for place in by_size} == by_size


def test_places_go_back_where_sizes_grow() -> None:
    up = POOL.replace("AveragePool", "ConvTranspose")
    text = network(f"v1 = {POOL} (v0)", f"v2 = {POOL} (v1)", f"v3 = {up} (v2)", "v9 = Relu (v3)")
    assert [name.split(" /")[1] for name in places(nodes(text))] == ["2", "4", "2", "2"]


def within(counts: Counter[str]) -> dict[str, int]:
    """Those that name neither the input nor the output."""
    return {name: count for name, count in counts.items() if not {"input", "output"} & set(name.split())}


def named(features: Mapping[str, float], kind: str) -> dict[str, float]:
    return {name.removeprefix(kind): count for name, count in features.items() if name.startswith(kind)}


@pytest.mark.parametrize("name", space_names())
def test_every_space_has_numbers_that_tell_its_networks_apart(name: str) -> None:
    texts = drawn_texts(name, 8, np.random.default_rng(1))
    counts = text_counts(texts)
    assert counts.shape == (len(texts), NUM_COUNTS)
    assert np.isfinite(counts).all()
    assert len(np.unique(counts, axis=0)) == len(texts)
    np.testing.assert_array_equal(text_counts(texts[::-1]), counts[::-1])


def test_other_texts_have_none() -> None:
    assert text_counts([]).shape == (0, NUM_COUNTS)
    assert not text_counts(["def f(x): return x", "Conv3\nPool\n", "<\n   ir_version: 13,\n"]).any()


def test_counts_and_sizes_of_texts_read_once_are_the_same() -> None:
    rng = np.random.default_rng(0)
    texts = ["no network", *drawn_texts("nasbench201", 3, rng), *drawn_texts("mnasnet", 2, rng)]
    counts, sizes = counts_and_sizes(texts)
    np.testing.assert_array_equal(counts, text_counts(texts))
    np.testing.assert_array_equal(sizes, log_sizes(texts))
    assert (sizes[0] == 0).all()
    assert (sizes[1:] > 0).all()


def test_what_differs_in_attributes_alone_differs_in_rows_and_sizes() -> None:
    wide = network(f"v9 = {CONV} (v0)")
    narrow = wide.replace("[8, 8, 3, 3]", "[4, 8, 3, 3]")
    one, other = text_counts([wide, narrow])
    assert (one[:NUM_STRUCTURES] == other[:NUM_STRUCTURES]).all()
    assert (one[NUM_STRUCTURES:-NUM_SIZES] != other[NUM_STRUCTURES:-NUM_SIZES]).any()
    np.testing.assert_allclose(np.expm1([one[-1], other[-1]]), [8 * 8 * 9, 4 * 8 * 9])


def test_structures_and_rows_are_signed_logarithms_of_counts() -> None:
    text = network(f"v1 = {CONV} (v0)", f"v2 = {CONV} (v1)", "v9 = Tanh (v2)")
    graph = nodes(text)
    counts = text_counts([text])[0]
    structures, rows = np.split(counts[: NUM_STRUCTURES + NUM_ROWS], [NUM_STRUCTURES])
    of_structures = walks(graph) + neighbours(graph)
    for columns, expected in ((structures, list(of_structures.values())), (rows, [2, 1])):
        np.testing.assert_allclose(np.sort(abs(columns[columns != 0])), np.log1p(np.sort(expected)))
    assert structures.min() < 0 < structures.max()


def test_operators_and_their_weights_are_counted_at_their_places() -> None:
    counts = text_counts([network(f"v1 = {CONV} (v0)", f"v2 = {POOL} (v1)", f"v9 = {CONV} (v2)")])[0]
    of_weights = slice(AT_PLACES.stop, AT_PLACES.stop + NUM_PLACES)
    operators, weights = (np.expm1(columns[columns != 0]) for columns in (counts[AT_PLACES], counts[of_weights]))
    np.testing.assert_allclose(operators, [1, 1, 1])
    np.testing.assert_allclose(weights, [8 * 8 * 9] * 2)


def test_sizes_are_of_all_paths() -> None:
    text = network(f"v1 = {CONV} (v0)", f"v2 = {CONV} (v1)", f"v3 = {CONV} (v2)", "v4 = Relu (v1)", "v9 = Sum (v3, v4)")
    logarithm, mean, variance, minimum, depth, operators = paths(nodes(text))
    assert (np.exp(logarithm), mean, variance, minimum, depth, operators) == pytest.approx((2, 2, 1, 1, 5, 7))


CALL = "block.B0 <a0: ints = [4, 2, 3, 3], a1: ints = [3, 3]>"
CELL = function("B0 <a0,a1>(v0) => (v9)", "v1 = nn.Conv <weight_shape: ints = @a0> (v0)", "v9 = Relu (v1)")


@pytest.mark.parametrize("times", [1, 8])
def test_blocks_count_as_what_they_are_wherever_they_are_called(times: int) -> None:
    names = ["v0", *(f"c{index}" for index in range(1, times)), "v9"]
    flat = [
        line
        for index, (before, after) in enumerate(pairwise(names))
        for line in (f"r{index} = nn.Conv <weight_shape: ints = [4, 2, 3, 3]> ({before})", f"{after} = Relu (r{index})")
    ]
    with_blocks, without = text_counts([network(*called(times, CALL)) + CELL, network(*flat)])
    assert without.any()
    np.testing.assert_array_equal(with_blocks, without)


def test_calls_give_weights_where_a_network_is_too_long_to_write_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inlining, "MAX_LINES", 7)
    cell = function("B0 <a0,a1>(v0) => (v9)", "v9 = Relu (v0)")
    text = network(*called(8, CALL)) + cell
    assert np.expm1(text_counts([text])[0, -1]) == pytest.approx(8 * 4 * 2 * 9)


def test_sums_of_sums_and_many_kinds_stay_within_bounds() -> None:
    doubled = [f"v{index + 1} = Sum (v{index}, v{index})" for index in range(1, 2000)]
    counts = text_counts(
        [network(f"v1 = {CONV} (v0)", *doubled, f"v9999 = {CONV} (v2000)", outputs="float[1,8] v9999")]
    )
    assert np.isfinite(counts).all()
    kinds = [f"v{index + 1} = Sum (k{index}, v{index})" for index in range(1, 200)]
    made = [f"k{index} = Kind{index} (v{index})" for index in range(1, 200)]
    lines = [line for pair in zip(made, kinds, strict=True) for line in pair]
    many = network("v1 = Start (v0)", *lines, outputs="float[1,8] v200")
    assert len(walks(nodes(many))) == 0 < MOST_WALKS
    assert text_counts([many]).any()


@pytest.mark.parametrize("shape", ["8, " + "9" * 400, "9" * 5000, "", ",", "3, , 3", "-1, 8"])
def test_weights_of_any_spelling_are_counted_or_passed_over(shape: str) -> None:
    assert np.isfinite(text_counts([network(f"v9 = nn.Conv <weight_shape: ints = [{shape}]> (v0)")])).all()


def test_texts_with_values_that_nothing_makes_are_no_networks() -> None:
    text = network("v1 = Relu (unheard)", "v2 = Sum (v1, v3)", "v3 = Tanh (v2)", outputs="float[1,8] gone")
    executed = function("E0 (v0) => (v3)", "v1 = Relu (unheard)", "v2 = Tanh (v1)", "v3 = Sum (v2, v0)")
    with_block = network("v9 = Relu (v0)") + executed
    assert not text_counts([text, with_block]).any()
    _, block = read_written_out(with_block.replace("unheard", "v0"))
    assert block.sources == [[], [0], [1], [2, 0], [3]]


def test_a_network_without_operators_has_paths_alone() -> None:
    counts = text_counts([network(outputs="float[1,8] v0")])[0]
    assert not counts[NUM_STRUCTURES:-NUM_SIZES].any()
    np.testing.assert_allclose(np.expm1(counts[-NUM_SIZES:][[4, 5]]), [1, 2])  # depth, and input with output


@pytest.mark.parametrize(("factor", "label"), [("0", "Zero"), ("0.5", "Scale"), ("1", "Scale")])
def test_a_scale_by_zero_is_another_operator(factor: str, label: str) -> None:
    assert nodes(network(f"v9 = nn.Scale <factor: float = {factor}> (v0)")).labels[1] == label


@pytest.mark.parametrize(("strides", "label"), [("1, 1", "Conv4x4"), ("10, 10", "Conv4x4s"), ("1, 2", "Conv4x4s")])
def test_strides_of_one_are_none(strides: str, label: str) -> None:
    text = network(f"v9 = nn.Conv <strides: ints = [{strides}], weight_shape: ints = [8, 3, 4, 4]> (v0)")
    assert nodes(text).labels[1] == label
