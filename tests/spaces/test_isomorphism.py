"""Keys of small graphs against trying all permutations, and graphs that defeat colour refinement."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaces import isomorphism
from spaces.isomorphism import ZERO, Dataflow, Term, Value, add, canonical_key

Graph = tuple[list[Term], Value]


@st.composite
def graphs(draw, most: int = 6) -> Graph:
    terms: list[Term] = []
    for position in range(draw(st.integers(1, most))):
        operand = draw(st.lists(st.integers(0, position - 1), max_size=3)) if position else []
        terms.append((draw(st.sampled_from("ab")), tuple(sorted(operand))))
    return terms, tuple(sorted(draw(st.lists(st.integers(0, len(terms) - 1), max_size=3))))


def renumbered(graph: Graph, priorities: list[int]) -> Graph:
    """An isomorphic copy: operands still first, otherwise in the order of ``priorities``."""
    terms, output = graph
    position: dict[int, int] = {}
    while len(position) < len(terms):
        ready = [t for t in range(len(terms)) if t not in position and all(o in position for o in terms[t][1])]
        position[min(ready, key=lambda term: priorities[term])] = len(position)
    moved = [(terms[old][0], tuple(sorted(position[o] for o in terms[old][1]))) for old in position]
    return moved, tuple(sorted(position[o] for o in output))


def live(graph: Graph) -> Graph:
    terms, output = graph
    reached: set[int] = set()
    pending = list(output)
    while pending:
        term = pending.pop()
        if term not in reached:
            reached.add(term)
            pending.extend(terms[term][1])
    kept = sorted(reached)
    moved = [(terms[t][0], tuple(kept.index(o) for o in terms[t][1])) for t in kept]
    return moved, tuple(kept.index(o) for o in output)


def are_isomorphic(first: Graph, second: Graph) -> bool:
    """The definition: some renaming of the live terms of one gives the other."""
    (terms, output), (others, other_output) = live(first), live(second)
    if len(terms) != len(others):
        return False
    for image in itertools.permutations(range(len(terms))):
        same_terms = all(
            others[image[t]] == (label, tuple(sorted(image[o] for o in operand)))
            for t, (label, operand) in enumerate(terms)
        )
        if same_terms and other_output == tuple(sorted(image[o] for o in output)):
            return True
    return False


@given(graphs(most=9), st.permutations(range(9)))
def test_copies_have_equal_keys(graph, priorities):
    assert canonical_key(*graph) == canonical_key(*renumbered(graph, priorities))


@settings(max_examples=300)
@given(graphs(most=4), graphs(most=4))
def test_equal_keys_mean_isomorphic(first, second):
    assert (canonical_key(*first) == canonical_key(*second)) == are_isomorphic(first, second)


@given(graphs(most=5), st.data())
def test_rewiring_one_operand_changes_the_key_unless_isomorphic(graph, data):
    terms, output = graph
    position = data.draw(st.integers(0, len(terms) - 1))
    operand = data.draw(st.lists(st.integers(0, position - 1), max_size=3)) if position else []
    other = list(terms)
    other[position] = (terms[position][0], tuple(sorted(operand)))
    assert (canonical_key(*graph) == canonical_key(other, output)) == are_isomorphic(graph, (other, output))


def ring(*lengths: int) -> Graph:
    """Rings in which neighbouring terms are read together: alike for every single term."""
    dataflow, output = Dataflow(), ZERO
    for length in lengths:
        nodes = [dataflow.fresh("node") for _ in range(length)]
        edges = [dataflow.fresh("edge", add(nodes[i - 1], nodes[i])) for i in range(length)]
        output = add(output, *edges)
    return dataflow._terms, output


def test_refinement_alone_would_not_do():
    assert canonical_key(*ring(6)) != canonical_key(*ring(3, 3))
    assert canonical_key(*ring(10)) != canonical_key(*ring(5, 5)) != canonical_key(*ring(4, 6))
    assert canonical_key(*ring(4, 6)) == canonical_key(*ring(6, 4))
    assert canonical_key(*renumbered(ring(3, 3), [7, 3, 11, 0, 5, 2, 9, 1, 10, 4, 8, 6])) == canonical_key(*ring(3, 3))


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_alike_branches_are_cheap(depth, monkeypatch):
    """20 terms in alike branches have up to 20! numberings."""
    spelled, spelling = [], isomorphism._spelling
    monkeypatch.setattr(isomorphism, "_spelling", lambda *given: spelled.append(given) or spelling(*given))
    dataflow, output = Dataflow(), ZERO
    for _ in range(20 // depth):
        value = ZERO
        for _ in range(depth):
            value = dataflow.fresh("conv", value)
        output = add(output, value)
    dataflow.key(output)
    assert 0 < len(spelled) <= 20**2


class TestDataflow:
    def test_spelling(self):
        graph = Dataflow()
        x = graph.fresh("input")
        y = graph.fresh("conv", x)
        z = graph.shared("pool", add(y, x))
        assert graph.key(add(y, z, z)) == "input();conv(0);pool(0+1)>1+2+2"
        assert graph.key(ZERO) == ">"

    def test_fresh_terms_differ_and_shared_ones_are_one(self):
        graph = Dataflow()
        x = graph.fresh("input")
        assert graph.fresh("conv", x) != graph.fresh("conv", x)
        assert graph.shared("pool", add(x, x)) == graph.shared("pool", add(x, x))
        assert graph.shared("pool", add(x, x)) != graph.shared("pool", x)
        assert graph.shared("pool", x) != graph.shared("max", x)

    def test_sums_are_multisets(self):
        assert add((2,), (0, 1), (0,)) == (0, 0, 1, 2)
        assert add() == add(ZERO, ZERO) == ZERO

    def test_labels_with_punctuation_are_refused(self):
        with pytest.raises(AssertionError, match=r"may be in \['conv\(3\)'\]"):
            canonical_key([("conv(3)", ())], (0,))
