"""Canonical keys of dataflow graphs: strings that are equal for isomorphic graphs and only for these.

A graph consists of terms and values. A term is an operation that reads one value, and a value is a sum of terms. Sums
are multisets, since ``x + x`` is not ``x``; they are flat and unordered, and the empty sum is the constant zero.

    graph = Dataflow()
    x = graph.fresh("input")
    y = graph.fresh("conv", x)                 # has weights: differs from any other conv of x
    z = graph.shared("pool", add(x, y))        # has no weights: another pool of this value is the same term
    graph.key(add(y, z, z))                    # 'input();conv(0);pool(0+1)>1+2+2'

The key lists the live terms, each with the positions of the terms that it reads, then the output. It contains the whole
graph and is no hash, so different graphs cannot collide.

Source:
    Colour refinement with individualisation: McKay & Piperno 2014, "Practical graph isomorphism, II".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

Value = tuple[int, ...]  # positions of terms, ascending, each repeated as often as the sum contains the term
Term = tuple[str, Value]
Colours = list[int]  # a colour for every term; colours are 0, 1, ... without gaps

ZERO: Value = ()
PUNCTUATION = frozenset("();+>\n")


def add(*values: Value) -> Value:
    """Return the flattened sum of values."""
    return tuple(sorted(term for value in values for term in value))


class Dataflow:
    """A dataflow graph under construction."""

    def __init__(self) -> None:
        self._terms: list[Term] = []
        self._known: dict[Term, Value] = {}

    def fresh(self, label: str, operand: Value = ZERO) -> Value:
        """Add a term that differs from all others: an input, or an operation with weights of its own."""
        self._terms.append((label, operand))
        return (len(self._terms) - 1,)

    def shared(self, label: str, operand: Value) -> Value:
        """Return the term of an operation without weights, which is the same for equal operands."""
        if (label, operand) not in self._known:
            self._known[label, operand] = self.fresh(label, operand)
        return self._known[label, operand]

    def key(self, output: Value) -> str:
        """Return the canonical key of what ``output`` depends on."""
        return canonical_key(self._terms, output)


def canonical_key(terms: Sequence[Term], output: Value) -> str:
    """Return the key of the graph that computes ``output``, without terms that it does not depend on.

    Args:
        terms: (label, operand) of every term, in topological order.
        output: positions of the terms whose sum is the output.

    Returns:
        ``label(operand);label(operand);...>output``, positions joined by ``+``.

    Cost:
        Tens of microseconds for 7 terms. Time is polynomial for any number of identical branches, but not for graphs
        designed to defeat colour refinement; therefore this is meant for cells of up to about 20 terms.
    """
    graph = _live_graph(terms, output)
    bad = sorted(label for label in set(graph.labels) if PUNCTUATION.intersection(label))
    assert not bad, f"labels are written into the key, so none of {sorted(PUNCTUATION)} may be in {bad}"
    return _smallest_spelling(graph, _first_colours(graph))


@dataclass(frozen=True)
class _Graph:
    labels: list[str]
    operands: list[Value]
    users: list[list[int]]  # for each term, the terms that read it, as often as they do
    output: Value


def _live_graph(terms: Sequence[Term], output: Value) -> _Graph:
    live = set(output)
    for position in range(len(terms) - 1, -1, -1):
        if position in live:
            live.update(terms[position][1])
    renumbered = {old: new for new, old in enumerate(sorted(live))}
    operands = [tuple(renumbered[term] for term in terms[old][1]) for old in renumbered]
    users: list[list[int]] = [[] for _ in operands]
    for user, operand in enumerate(operands):
        for term in operand:
            users[term].append(user)
    return _Graph([terms[old][0] for old in renumbered], operands, users, tuple(renumbered[t] for t in output))


def _first_colours(graph: _Graph) -> Colours:
    """Return colours ordered by height first, so that in the final order operands come before their readers."""
    heights: list[int] = []
    for operand in graph.operands:
        heights.append(1 + max((heights[term] for term in operand), default=-1))
    used = [graph.output.count(term) for term in range(len(heights))]
    return _ranks(list(zip(heights, graph.labels, used, strict=True)))


def _ranks(signatures: Sequence[Any]) -> Colours:
    rank = {signature: index for index, signature in enumerate(sorted(set(signatures)))}
    return [rank[signature] for signature in signatures]


def _refined(graph: _Graph, colours: Colours) -> Colours:
    """Split classes of equal colour by the colours of operands and users until nothing changes, keeping their order."""
    classes = 0
    while classes < len(set(colours)) < len(colours):
        classes = len(set(colours))
        colours = _ranks([_signature(graph, colours, term) for term in range(len(colours))])
    return colours


def _signature(graph: _Graph, colours: Colours, term: int) -> Hashable:
    below = sorted([colours[operand] for operand in graph.operands[term]])
    above = sorted([colours[user] for user in graph.users[term]])
    return colours[term], tuple(below), tuple(above)


def _first_tie(colours: Colours) -> list[int]:
    """Return the members of the first class with more than one; empty if there is none."""
    tied = [colour for colour in colours if colours.count(colour) > 1]
    return [term for term, colour in enumerate(colours) if tied and colour == min(tied)]


def _individualised(graph: _Graph, colours: Colours, member: int) -> Colours:
    split = [2 * colour + (term != member) for term, colour in enumerate(colours)]
    return _refined(graph, _ranks(split))


def _smallest_spelling(graph: _Graph, colours: Colours) -> str:
    """Return the smallest key over all ways to break the ties that refinement leaves.

    If the probes of two members give the same key, an automorphism that keeps all colours exchanges them. The second
    then gives no other keys and is not searched: n identical branches take n^2 probes, not n! leaves.
    """
    colours = _refined(graph, colours)
    tied = _first_tie(colours)
    if not tied:
        return _spelling(graph, colours)
    branches: dict[str, Colours] = {}
    for member in tied:
        branch = _individualised(graph, colours, member)
        branches.setdefault(_probe(graph, branch), branch)
    return min(_smallest_spelling(graph, branch) for branch in branches.values())


def _probe(graph: _Graph, colours: Colours) -> str:
    """Return the key at one leaf of the search, where the first member of every tie is chosen."""
    while tied := _first_tie(colours):
        colours = _individualised(graph, colours, tied[0])
    return _spelling(graph, colours)


def _spelling(graph: _Graph, colours: Colours) -> str:
    """Return the key of the graph with its terms in the order of their colours, which are all different."""
    parts = [""] * len(colours)
    for label, operand, colour in zip(graph.labels, graph.operands, colours, strict=True):
        parts[colour] = f"{label}({_joined(operand, colours)})"
    return f"{';'.join(parts)}>{_joined(graph.output, colours)}"


def _joined(value: Value, colours: Colours) -> str:
    return "+".join(map(str, sorted([colours[term] for term in value])))
