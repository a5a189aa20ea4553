"""The text does not depend on the names, the node order or the operand order of the graph it is made of."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from converters.convert import to_canonical_graph, to_graph
from converters.graph import Graph
from converters.passes.canonical import canonicalise
from converters.passes.outline import outline
from converters.passes.segments import split_at_borders
from converters.text import write
from spaces.nasbench201 import NASBench201
from tests.converters.graphs import conv, graph, node, random_graphs, scramble


def to_text(faithful: Graph) -> str:
    return write(outline(to_canonical_graph(faithful)))


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 5**6 - 1), st.randoms(use_true_random=False))
def test_spelling_of_nasbench201_networks_does_not_matter(index, random):
    space = NASBench201()
    faithful = to_graph(space, space.from_official_index(index))
    assert to_text(scramble(faithful, random)) == to_text(faithful)


def spellings(faithful: Graph) -> list[Graph]:
    return [scramble(faithful, Random(seed)) for seed in range(20)]


@pytest.mark.parametrize("own_terms", [False, True], ids=["one holds the others", "none holds another"])
def test_readers_decide_between_sums_of_alike_terms(own_terms):
    """a + b and b + c both lie in a + b + c and look alike from below; one is read by Relu, one by Sigmoid."""
    convolutions = [conv("x", y, y) for y in "abc"] + [conv("x", y, y) for y in "klm" if own_terms]
    own = [f" {y}" if own_terms else "" for y in "klm"]
    sums = [node("Sum", f"{terms}{y}", z) for terms, y, z in zip(("a b", "b c", "a b c"), own, "stu", strict=True)]
    readers = [node("Relu", "s", "p"), node("Sigmoid", "t", "q"), node("Concat", "p q u", "r", axis=0)]
    assert len({to_text(g) for g in spellings(graph(*convolutions, *sums, *readers, outputs="r"))}) == 1


def cycles_of_products(*lengths: int) -> Graph:
    """Convolutions of one input, each multiplied with the next along cycles, and the products added up."""
    names, products = iter(f"c{number}" for number in range(sum(lengths))), []
    for length in lengths:
        cycle = [next(names) for _ in range(length)]
        products += [(first, then) for first, then in zip(cycle, [*cycle[1:], cycle[0]], strict=True)]
    layers = [conv("x", y, y) for pair in products for y in pair[:1]]
    edges = [node("Mul", " ".join(pair), f"m{number}") for number, pair in enumerate(products)]
    total = node("Sum", " ".join(f"m{number}" for number in range(len(edges))), "s")
    return graph(*layers, *edges, total, outputs="s")


@pytest.mark.parametrize("lengths", [(6, 3, 3), (3, 4, 5), (4, 4), (8,), (3, 3, 3, 5)], ids=str)
def test_branches_that_colours_do_not_tell_apart_have_one_order(lengths):
    """Every convolution is read by two products, and every product reads two convolutions, whatever the cycles."""
    assert len({to_text(g) for g in spellings(cycles_of_products(*lengths))}) == 1
    others = cycles_of_products(sum(lengths)), cycles_of_products(3, sum(lengths) - 3)
    texts = {lengths: to_text(cycles_of_products(*lengths)), **{(0, x): to_text(g) for x, g in enumerate(others)}}
    expected = {tuple(sorted(x)) for x in (lengths, (sum(lengths),), (3, sum(lengths) - 3))}
    assert len(set(texts.values())) == len(expected)


def test_operators_are_ordered_by_sorted_operands():
    """Read as they stand, Max(b, a) comes after Max(a, c); sorted, it comes before."""
    values = [node(op_type, "x", y) for op_type, y in (("Relu", "a"), ("Sigmoid", "b"), ("Tanh", "c"))]
    faithful = graph(*values, node("Max", "a b", "p"), node("Max", "a c", "q"), node("Sum", "p q", "r"), outputs="r")
    assert len({write(canonicalise(g)) for g in spellings(faithful)}) == 1


def test_a_constant_read_in_two_places_ties_them_together():
    """Of two equal constants that one sum reads, the one that is read again later comes first or last, always."""
    texts = set()
    for again in "ab":
        constants = [node("nn.Zeros", "", f"{y}0", shape=(1, 2, 4, 4)) for y in "ab"]
        layers = [node("nn.ConvBias", f"{y}0", y, weights=y, weight_shape=(2, 2, 1, 1)) for y in "ab"]
        rest = [node("Sum", "x a b", "s"), node("Relu", "s", "t"), node("Sum", f"t {again}", "u")]
        texts.add(to_text(graph(*constants, *layers, *rest, outputs="u")))
    assert len(texts) == 1


def test_operands_are_ordered_by_what_they_are():
    reads = ("a x", "x a")
    ordered = {canonicalise(graph(node("Relu", "x", "a"), node("Sum", read, "b"), outputs="b")).nodes for read in reads}
    assert len(ordered) == 1


def test_operands_of_other_operators_stay_where_they_are():
    reads = ("a x", "x a")
    texts = {to_text(graph(node("Relu", "x", "a"), node("Sub", read, "b"), outputs="b")) for read in reads}
    assert len(texts) == 2


def test_a_constant_made_early_hides_no_border():
    made = [node("nn.Zeros", "", "z", shape=(1, 2, 4, 4)), node("Sigmoid", "z", "c")]
    chain = [node("Relu", "x", "a"), node("Tanh", "a", "b"), node("Sum", "b c", "d")]
    for nodes in ([*made, *chain], [*chain[:2], *made, chain[2]]):
        segments = split_at_borders(nodes, ["x"], ["d"])
        assert [[n.op_type for n in segment] for segment in segments] == [
            ["Relu"],
            ["Tanh"],
            ["nn.Zeros", "Sigmoid", "Sum"],
        ]


@settings(max_examples=100, deadline=None)
@given(random_graphs(max_nodes=16))
def test_segments_hold_every_node_once(faithful):
    live = to_canonical_graph(faithful)
    segments = split_at_borders(live.nodes, live.inputs, live.outputs)
    assert sorted(n for segment in segments for n in segment) == sorted(live.nodes)
    assert all(segments)


@settings(max_examples=100, deadline=None)
@given(random_graphs(max_nodes=16))
def test_one_value_crosses_a_border(faithful):
    live = to_canonical_graph(faithful)
    segments = split_at_borders(live.nodes, live.inputs, live.outputs)
    for border in range(1, len(segments)):
        before = {x for segment in segments[:border] for n in segment for x in n.outputs} | {*live.inputs}
        after = {x for segment in segments[border:] for n in segment for x in n.inputs} | {*live.outputs}
        assert len(before & after) == 1


@pytest.mark.parametrize("num_nodes", [0, 1])
def test_almost_nothing_is_canonical_too(num_nodes):
    tiny = graph(*[node("Relu", "x", "a")][:num_nodes], outputs="a" if num_nodes else "x")
    assert canonicalise(tiny) == tiny
