"""One string per dataflow graph, the same for all its isomorphic copies.

A graph is made of terms. A term is an operation reading one value, and a value is a sum of terms: a multiset,
since ``x + x`` is not ``x``. Sums are flat and their order means nothing; the empty sum is the constant zero.

    graph = Dataflow()
    x = graph.fresh("input")
    y = graph.fresh("conv", x)                 # has weights: never the same as another conv of x
    z = graph.shared("pool", add(x, y))        # has none: pooling that value once more gives this very term
    graph.key(add(y, z, z))                    # 'input();conv(0);pool(0+1)>1+2+2'

The key lists the live terms, each with the positions of the terms it reads, then the output. It is the graph
itself and no hash, so unequal graphs cannot collide.

Source:
    Colour refinement with individualisation: McKay & Piperno 2014, "Practical graph isomorphism, II".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

Value = tuple[int, ...]  # positions of terms, ascending, repeated by multiplicity
Term = tuple[str, Value]
Colours = list[int]  # of every term, 0, 1, ... without gaps

ZERO: Value = ()
PUNCTUATION = frozenset("();+>\n")


def add(*values: Value) -> Value:
    """Their sum, flattened."""
    return tuple(sorted(term for value in values for term in value))


class Dataflow:
    """A graph under construction."""

    def __init__(self) -> None:
        self._terms: list[Term] = []
        self._known: dict[Term, Value] = {}

    def fresh(self, label: str, operand: Value = ZERO) -> Value:
        """A term unlike all others: an input, or an operation with weights of its own."""
        self._terms.append((label, operand))
        return (len(self._terms) - 1,)

    def shared(self, label: str, operand: Value = ZERO) -> Value:
        """The term of an operation without weights: one for all who apply it to an equal value."""
        if (label, operand) not in self._known:
            self._known[label, operand] = self.fresh(label, operand)
        return self._known[label, operand]

    def key(self, output: Value) -> str:
        """The canonical key of what reaches ``output``."""
        return canonical_key(self._terms, output)


def canonical_key(terms: Sequence[Term], output: Value) -> str:
    """The key of the graph that computes ``output``; terms that do not reach it are left out.

    Args:
        terms: (label, operand) of every term, operands before those who read them.
        output: positions of the terms summed in the result.

    Returns:
        ``label(operand);label(operand);...>output``, positions joined by ``+``.

    Cost:
        Tens of microseconds at 7 terms. Alike branches, however many, stay polynomial; graphs built to defeat
        colour refinement do not, which is why this is for cells of up to about 20 terms.
    """
    graph = _live_graph(terms, output)
    bad = sorted(label for label in set(graph.labels) if PUNCTUATION.intersection(label))
    assert not bad, f"labels are written into the key, so none of {sorted(PUNCTUATION)} may be in {bad}"
    return _smallest_spelling(graph, _first_colours(graph))


@dataclass(frozen=True)
class _Graph:
    labels: list[str]
    operands: list[Value]
    users: list[list[int]]  # every user as often as it reads the term
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
    """Height first, so that in the final order operands stand before those who read them."""
    heights: list[int] = []
    for operand in graph.operands:
        heights.append(1 + max((heights[term] for term in operand), default=-1))
    used = [graph.output.count(term) for term in range(len(heights))]
    return _ranks(list(zip(heights, graph.labels, used, strict=True)))


def _ranks(signatures: Sequence[Any]) -> Colours:
    rank = {signature: index for index, signature in enumerate(sorted(set(signatures)))}
    return [rank[signature] for signature in signatures]


def _refined(graph: _Graph, colours: Colours) -> Colours:
    """Split classes by the colours above and below until nothing changes; the order of classes is kept."""
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
    """The members of the lowest class with several, or none."""
    tied = [colour for colour in colours if colours.count(colour) > 1]
    return [term for term, colour in enumerate(colours) if tied and colour == min(tied)]


def _individualised(graph: _Graph, colours: Colours, member: int) -> Colours:
    split = [2 * colour + (term != member) for term, colour in enumerate(colours)]
    return _refined(graph, _ranks(split))


def _smallest_spelling(graph: _Graph, colours: Colours) -> str:
    """The smallest spelling over every way to break the ties that refinement leaves.

    Two members whose probes spell the same are exchanged by an automorphism that keeps all colours, so
    the second gives no other spellings and is not searched: n alike branches take n^2 probes, not n! leaves.
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
    """One leaf below these colours: the first member of every tie."""
    while tied := _first_tie(colours):
        colours = _individualised(graph, colours, tied[0])
    return _spelling(graph, colours)


def _spelling(graph: _Graph, colours: Colours) -> str:
    """The graph with its terms in the order of their colours, all different."""
    parts = [""] * len(colours)
    for label, operand, colour in zip(graph.labels, graph.operands, colours, strict=True):
        parts[colour] = f"{label}({_joined(operand, colours)})"
    return f"{';'.join(parts)}>{_joined(graph.output, colours)}"


def _joined(value: Value, colours: Colours) -> str:
    return "+".join(map(str, sorted([colours[term] for term in value])))
