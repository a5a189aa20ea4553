"""Canonicalisation: isomorphic graphs get the same order of nodes and operands, whatever their names and order were.

A network is cut into segments at the values through which everything passes, and each segment is ordered on its own.
Operators are ranked by height (longest path from the entries of the segment), then by name, attributes and the ranks
of their operands. If two operands of a commutative operator tie, their readers decide (colour refinement). If they
still tie, it is tried how the classes of equal colour would split if one of them had a colour of its own, and the
splits decide; operands that lead to equal splits are taken to be interchangeable. Ranks are local to a segment, so the
repetitions of a block get the same order, and equal segments are ordered only once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

from converters.graph import Attributes, Graph, Node
from converters.passes.segments import constants_late, split_at_borders

COMMUTATIVE = frozenset({"Sum", "Add", "Mul", "Max", "Min", "Mean"})
Operand = tuple[int, int]  # vertex, output index
# A node of a segment without names: operator, attributes and operands, which are earlier vertices. Entries, which are
# the values that a segment reads from outside, come first.
Vertex = tuple[str, Attributes, tuple[Operand, ...]]
ENTRY: Vertex = ("", (), ())
Splits = list[tuple[int, ...]]
MOST_TRIED = 64  # size of a class of equal colour up to which its vertices are tried
MOST_TRIES = 256  # tries in a segment, which may have many such classes


class Order(NamedTuple):
    """Vertices in canonical order, and for each vertex its operands in canonical order (positions)."""

    vertices: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]


def canonicalise(graph: Graph) -> Graph:
    """Return the graph in canonical order: depth-first from the outputs, deepest operand first.

    Operands of commutative operators are put in canonical order too. Expects a graph without dead nodes. Isomorphic
    graphs give equal nodes up to value names, except where colours cannot distinguish operands.
    """
    nodes: list[Node] = []
    segments = split_at_borders(graph.nodes, graph.inputs, graph.outputs)
    for index, segment in enumerate(segments):
        exits = graph.outputs if index == len(segments) - 1 else None
        nodes.extend(_order_segment(segment, graph.inputs, exits))
    return replace(graph, nodes=tuple(constants_late(nodes, graph.inputs)))


def _order_segment(segment: Sequence[Node], graph_inputs: Sequence[str], exits: Sequence[str] | None) -> Sequence[Node]:
    if len(segment) == 1 and segment[0].op_type not in COMMUTATIVE:
        return segment
    entries = _entries(segment, graph_inputs)
    place: dict[str, Operand] = {x: (index, 0) for index, x in enumerate(entries)}
    vertices = [ENTRY] * len(entries)
    for index, (op_type, inputs, outputs, attributes, _) in enumerate(segment, start=len(entries)):
        vertices.append((op_type, attributes, tuple([place[x] for x in inputs])))
        for output, x in enumerate(outputs):
            place[x] = (index, output)
    roots = [place[x][0] for x in (exits or segment[-1].outputs) if x in place]
    order = canonical_order(tuple(vertices), len(entries), tuple(roots))
    ordered: list[Node] = []
    for vertex in order.vertices:
        node = segment[vertex - len(entries)]
        if node.op_type in COMMUTATIVE:
            inputs = tuple([node.inputs[position] for position in order.operands[vertex]])
            node = node if inputs == node.inputs else node._replace(inputs=inputs)
        ordered.append(node)
    return ordered


def _entries(segment: Sequence[Node], graph_inputs: Sequence[str]) -> list[str]:
    """Return the values that a segment reads from outside: the graph's inputs first, and "" for omitted inputs last."""
    read = dict.fromkeys(chain.from_iterable([node.inputs for node in segment]))
    for node in segment:
        for x in node.outputs:
            read.pop(x, None)
    if len(read) == 1:
        return list(read)
    entries = [x for x in graph_inputs if x in read]
    entries += [x for x in read if x and x not in graph_inputs]
    return [*entries, ""] if "" in read else entries


@lru_cache(maxsize=1 << 9)  # at most 60 MB: the cells of a NASNet-like network are one segment of 0.1 MB
def canonical_order(vertices: tuple[Vertex, ...], num_entries: int, roots: tuple[int, ...]) -> Order:
    """Return the canonical order of a segment; isomorphic segments give the same sequence of operators and operands."""
    colours = _Colours(vertices, num_entries, roots)
    colours.break_ties()
    height = colours.height
    operands = tuple([colours.operand_order(vertex) for vertex in vertices])
    visited = set(range(num_entries))
    order: list[int] = []
    stack = list(reversed(roots))
    while stack:
        vertex = stack.pop()
        if vertex < 0:  # all operands of ~vertex are in the order
            order.append(~vertex)
        elif vertex not in visited:
            visited.add(vertex)
            stack.append(~vertex)
            reads = vertices[vertex][2]
            if len(reads) == 1:
                stack.append(reads[0][0])
            else:
                sources = [reads[position][0] for position in reversed(operands[vertex])]
                stack += sorted(sources, key=height.__getitem__)
    return Order(tuple(order), operands)


class _Colours:
    """A colour (integer) for each vertex: equal for vertices not distinguished yet, and ordered like their keys.

    The vertices of equal colour are a class. A colour is the number of vertices of smaller colour, so splitting a
    class does not change the colours of the others.
    """

    def __init__(self, vertices: Sequence[Vertex], num_entries: int, roots: Sequence[int]) -> None:
        self.vertices = vertices
        self.roots = roots
        self.height = height = [0] * num_entries
        levels: list[list[int]] = [[]]  # vertices by height, without entries
        choices: list[set[int]] = []  # operand sets of the commutative operators
        for index, (op_type, _, operands) in enumerate(vertices[num_entries:], start=num_entries):
            below = max([height[source] for source, _ in operands], default=0)
            height.append(below + 1)
            if below + 1 == len(levels):
                levels.append([])
            levels[below + 1].append(index)
            if op_type in COMMUTATIVE:
                choices.append({source for source, _ in operands})
        self.choices = choices
        self.interchangeable: set[int] = set()  # vertices that need not be tried
        self.tries = 0
        self.colour = list(range(len(height)))
        colour = num_entries
        for level in levels:
            for group in self._split_level(level):
                for index in group:
                    self.colour[index] = colour
                colour += len(group)

    def break_ties(self) -> None:
        """Refine until no two different operands of a commutative operator have the same colour."""
        if self._tied():
            self._refine(set(self.colour))
        while tied := self._tied():
            colour = min([self.colour[vertex] for vertex in tied])
            self._refine(self._set_apart(self._first_of(self.members[colour])))

    def _first_of(self, tied: Sequence[int]) -> int:
        """Return the vertex of a class that gets a colour of its own first, independently of the vertices' order.

        Every vertex is tried, and the one whose splits of classes compare smallest is chosen. If all split alike, they
        are taken to be interchangeable, so any may be chosen; if moreover no try separates the remaining vertices of
        the class, those are not tried again. Nothing is tried in a class of more than ``MOST_TRIED`` vertices, or
        after ``MOST_TRIES`` tries in the segment.
        """
        chosen, left = min(tied), set(tied)
        if left <= self.interchangeable or len(left) > MOST_TRIED or self.tries + len(left) > MOST_TRIES:
            return chosen
        self.tries += len(left)
        colour, members = self.colour, self.members
        splits: dict[int, Splits] = {}
        for vertex in sorted(tied, reverse=True):
            self.colour, self.members = list(colour), list(members)
            splits[vertex] = self._refine(self._set_apart(vertex))
        others = len({self.colour[vertex] for vertex in tied}) - 1  # number of classes, without the last vertex tried
        self.colour, self.members = colour, members
        if all(each == splits[chosen] for each in splits.values()):
            self.interchangeable = left if others == 1 else set()
            return chosen
        return min(splits, key=lambda vertex: (splits[vertex], vertex))

    def _set_apart(self, vertex: int) -> set[int]:
        """Give a vertex a colour of its own, the others of its class the next; return the colours around those."""
        colour = self.colour[vertex]
        others = [other for other in self.members[colour] if other != vertex]
        return self._colours_around(self._paint([[vertex], others], colour))

    def operand_order(self, vertex: Vertex) -> tuple[int, ...]:
        """Return the positions of a vertex's operands in canonical order."""
        op_type, _, operands = vertex
        positions = range(len(operands))
        if len(positions) < 2 or op_type not in COMMUTATIVE:
            return tuple(positions)
        keys = [(self.colour[source], output) for source, output in operands]
        return tuple(sorted(positions, key=keys.__getitem__))

    def _split_level(self, level: list[int]) -> list[list[int]]:
        """Group vertices of one height by operator, attributes and operands."""
        groups = _grouped(level, self._operator)
        return groups if len(groups) == len(level) else _grouped(level, self._seen_from_below)

    def _tied(self) -> list[int]:
        tied: list[int] = []
        for sources in self.choices:
            colours = [self.colour[source] for source in sources]
            if len(set(colours)) < len(sources):
                times = Counter(colours)
                tied.extend([source for source in sources if times[self.colour[source]] > 1])
        return tied

    @cached_property  # few segments have ties, and only these need it
    def members(self) -> list[list[int]]:
        """The vertices of each colour."""
        members: list[list[int]] = [[] for _ in self.colour]
        for index, colour in enumerate(self.colour):
            members[colour].append(index)
        return members

    @cached_property
    def readers(self) -> list[list[tuple[int, int]]]:
        """For every vertex the vertices that read it, each with the input slot."""
        readers: list[list[tuple[int, int]]] = [[] for _ in self.colour]
        for index, (op_type, _, operands) in enumerate(self.vertices):
            commutes = op_type in COMMUTATIVE
            for slot, (source, output) in enumerate(operands):
                readers[source].append((index, -1 - output if commutes else slot))
        for position, root in enumerate(self.roots):
            readers[root].append((root, len(self.roots) + position))
        return readers

    def _refine(self, touched: Iterable[int]) -> Splits:
        """Split the classes of these colours by the operands and readers of their members until nothing splits.

        Returns:
            The colour of every class that was split and the sizes of its parts, round by round.
        """
        found: Splits = []
        while touched:
            several = [colour for colour in sorted(touched) if len(self.members[colour]) > 1]
            splits = [(_grouped(self.members[colour], self._seen_from_around), colour) for colour in several]
            touched = self._colours_around([x for groups, colour in splits for x in self._paint(groups, colour)])
            found += [(colour, *map(len, groups)) for groups, colour in splits if len(groups) > 1]
        return found

    def _paint(self, groups: Sequence[list[int]], colour: int) -> list[int]:
        """Make every group a class, with colours from ``colour`` on; return the vertices whose colour changed."""
        for group in groups:
            self.members[colour] = group
            for vertex in group:
                self.colour[vertex] = colour
            colour += len(group)
        return [vertex for group in groups[1:] for vertex in group]

    def _colours_around(self, vertices: Sequence[int]) -> set[int]:
        """Return the colours of the operands and readers of these vertices."""
        neighbours = {reader for vertex in vertices for reader, _ in self.readers[vertex]}
        neighbours.update([source for vertex in vertices for source, _ in self.vertices[vertex][2]])
        return {self.colour[neighbour] for neighbour in neighbours}

    def _operator(self, index: int) -> tuple[object, ...]:
        return self.vertices[index][:2]

    def _seen_from_below(self, index: int) -> tuple[object, ...]:
        return (*self.vertices[index][:2], self._reads(index))

    def _seen_from_around(self, index: int) -> tuple[object, ...]:
        readers = sorted([(self.colour[reader], slot) for reader, slot in self.readers[index]])
        return (self._reads(index), tuple(readers))

    def _reads(self, index: int) -> tuple[Operand, ...]:
        op_type, _, operands = self.vertices[index]
        reads = [(self.colour[source], output) for source, output in operands]
        if op_type in COMMUTATIVE:
            reads.sort()
        return tuple(reads)


def _grouped(vertices: list[int], key: Callable[[int], tuple[object, ...]]) -> list[list[int]]:
    """Group vertices by key, in the order of the keys."""
    if len(vertices) == 1:
        return [vertices]
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for vertex in vertices:
        groups[key(vertex)].append(vertex)
    try:
        ordered = sorted(groups)
    except TypeError:  # an attribute of a user's operator may be a number in one node and a string in another
        ordered = sorted(groups, key=repr)
    return [groups[found] for found in ordered]
