"""One node order and one operand order for isomorphic graphs, whatever their names and order were.

A network is cut into segments at the values through which everything passes, and each segment is ordered by
itself: operators rank first by height (longest path from the segment's entry), then by name, attributes and the
ranks of their operands. Where two operands of a commutative operator tie, what reads them decides (colour
refinement); of those that tie even then, the one whose setting apart tells the others apart first comes first, and what
ties after that is taken to be interchangeable. Ranks are local, so the repetitions of a
block come out in the same order, and equal segments are ordered once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from converters.graph import Attributes, Graph, Node
from converters.passes.segments import constants_late, split_at_borders

COMMUTATIVE = frozenset({"Sum", "Add", "Mul", "Max", "Min", "Mean"})
Operand = tuple[int, int]  # vertex, output index
# A node of a segment without names: operator, attributes and operands, which are vertices before it. The first
# vertices are the entries.
Vertex = tuple[str, Attributes, tuple[Operand, ...]]


Splits = list[tuple[int, ...]]
MOST_TRIED = 64  # vertices that colours do not tell apart
MOST_TRIES = 256  # in a segment, which may have many such


class Order(NamedTuple):
    """Vertices in canonical order, and for each vertex its operands in canonical order (positions)."""

    vertices: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]


def canonicalise(graph: Graph) -> Graph:
    """The same graph, depth-first from the outputs, the deepest operand first; commuting operands in canonical order.

    Expects a graph without dead nodes. Isomorphic graphs give equal nodes up to value names, as far as colours tell
    their operands apart.
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
    vertices: list[Vertex] = []
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
            inputs = tuple([node.inputs[position] for position in order.operands[vertex - len(entries)]])
            node = node if inputs == node.inputs else node._replace(inputs=inputs)
        ordered.append(node)
    return ordered


def _entries(segment: Sequence[Node], graph_inputs: Sequence[str]) -> list[str]:
    """Values that come from outside, inputs of the graph first; what is left out last, wherever it was met."""
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
    """Order a segment; isomorphic segments give the same sequence of operators and operands."""
    colours = _Colours(vertices, num_entries, roots)
    colours.break_ties()
    height = colours.height
    operands = tuple([colours.operand_order(vertex) for vertex in vertices])
    visited = set(range(num_entries))
    order: list[int] = []
    stack = list(reversed(roots))
    while stack:
        vertex = stack.pop()
        if vertex < 0:  # everything that ~vertex reads is in the order
            order.append(~vertex)
        elif vertex not in visited:
            visited.add(vertex)
            stack.append(~vertex)
            reads = vertices[vertex - num_entries][2]
            if len(reads) == 1:
                stack.append(reads[0][0])
            else:
                sources = [reads[position][0] for position in reversed(operands[vertex - num_entries])]
                stack += sorted(sources, key=height.__getitem__)
    return Order(tuple(order), operands)


class _Colours:
    """One integer a vertex; equal where nothing so far tells two vertices apart, ordered like their keys.

    A colour is the number of vertices with smaller ones, so a class that splits leaves all others as they are.
    """

    def __init__(self, vertices: Sequence[Vertex], num_entries: int, roots: Sequence[int]) -> None:
        self.vertices = vertices
        self.num_entries = num_entries
        self.roots = roots
        self.height = height = [0] * num_entries
        levels: list[list[int]] = [[]]  # vertices by height, entries left out
        choices: list[set[int]] = []  # operands to be put in order
        for index, (op_type, _, operands) in enumerate(vertices, start=num_entries):
            below = max([height[source] for source, _ in operands], default=0)
            height.append(below + 1)
            if below + 1 == len(levels):
                levels.append([])
            levels[below + 1].append(index)
            if op_type in COMMUTATIVE:
                choices.append({source for source, _ in operands})
        self.choices = choices
        self.colour = list(range(len(height)))
        colour = num_entries
        for level in levels:
            for group in self._told_apart(level):
                for index in group:
                    self.colour[index] = colour
                colour += len(group)

    def break_ties(self) -> None:
        """Refine until no two different operands of a commutative operator have the same colour."""
        if not self._tied():
            return
        self.readers = self._find_readers()
        self.interchangeable: set[int] = set()
        self.tries = 0
        self.members: list[list[int]] = [[] for _ in self.colour]  # of the class of every colour in use
        for index, colour in enumerate(self.colour):
            self.members[colour].append(index)
        touched: Iterable[int] = set(self.colour)
        while self._tied():
            self._refine(touched)
            if tied := self._tied():
                colour = min([self.colour[vertex] for vertex in tied])
                touched = self._set_apart(self._first_of(self.members[colour]))

    def _first_of(self, tied: Sequence[int]) -> int:
        """Of a class the vertex whose setting apart comes first by how it splits classes, whatever the vertices' order.

        Where all split them alike, they are taken to be interchangeable, and so are those that are left of them where
        setting one apart does not tell any two others apart; and more than ``MOST_TRIED``,
        or all where a segment has had ``MOST_TRIES``.
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
        others = len({self.colour[vertex] for vertex in tied}) - 1  # classes of them, beside the last set apart
        self.colour, self.members = colour, members
        if all(each == splits[chosen] for each in splits.values()):
            self.interchangeable = left if others == 1 else set()
            return chosen
        return min(splits, key=lambda vertex: (splits[vertex], vertex))

    def _set_apart(self, vertex: int) -> set[int]:
        """Give a vertex the colour of its class, and the others of it the next; what colours are around these."""
        colour = self.colour[vertex]
        others = [other for other in self.members[colour] if other != vertex]
        return self._colours_around(self._paint([[vertex], others], colour))

    def operand_order(self, vertex: Vertex) -> tuple[int, ...]:
        """Positions of the operands in canonical order."""
        op_type, _, operands = vertex
        positions = range(len(operands))
        if len(positions) < 2 or op_type not in COMMUTATIVE:
            return tuple(positions)
        keys = [(self.colour[source], output) for source, output in operands]
        return tuple(sorted(positions, key=keys.__getitem__))

    def _told_apart(self, level: list[int]) -> list[list[int]]:
        """Vertices of one height by what they are and read."""
        if len(level) < 2:
            return [level] if level else []
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

    def _find_readers(self) -> list[list[tuple[int, int]]]:
        """List for every vertex who reads it, each as reader and slot."""
        readers: list[list[tuple[int, int]]] = [[] for _ in self.colour]
        for index, (op_type, _, operands) in enumerate(self.vertices, start=self.num_entries):
            commutes = op_type in COMMUTATIVE
            for slot, (source, output) in enumerate(operands):
                readers[source].append((index, -1 - output if commutes else slot))
        for position, root in enumerate(self.roots):
            readers[root].append((root, len(self.roots) + position))
        return readers

    def _refine(self, touched: Iterable[int]) -> Splits:
        """Split the classes of these colours by what their members read and are read by, until nothing splits.

        Returns:
            The colour of every class that was split and the sizes of its parts, round by round.
        """
        told: Splits = []
        while touched:
            several = [colour for colour in sorted(touched) if len(self.members[colour]) > 1]
            splits = [(_grouped(self.members[colour], self._seen_from_around), colour) for colour in several]
            touched = self._colours_around([x for groups, colour in splits for x in self._paint(groups, colour)])
            told += [(colour, *map(len, groups)) for groups, colour in splits if len(groups) > 1]
        return told

    def _paint(self, groups: Sequence[list[int]], colour: int) -> list[int]:
        """Make every group a class, from ``colour`` on; the vertices behind the first group."""
        for group in groups:
            self.members[colour] = group
            for vertex in group:
                self.colour[vertex] = colour
            colour += len(group)
        return [vertex for group in groups[1:] for vertex in group]

    def _colours_around(self, vertices: Sequence[int]) -> set[int]:
        """The colours of what these vertices read and are read by."""
        neighbours = {reader for vertex in vertices for reader, _ in self.readers[vertex]}
        for vertex in vertices:
            if vertex >= self.num_entries:
                neighbours.update([source for source, _ in self._operands(vertex)])
        return {self.colour[neighbour] for neighbour in neighbours}

    def _operator(self, index: int) -> tuple[object, ...]:
        return self.vertices[index - self.num_entries][:2]

    def _seen_from_below(self, index: int) -> tuple[object, ...]:
        vertex = self.vertices[index - self.num_entries]
        return (*vertex[:2], self._reads(vertex))

    def _seen_from_around(self, index: int) -> tuple[object, ...]:
        readers = sorted([(self.colour[reader], slot) for reader, slot in self.readers[index]])
        return (self._reads(self.vertices[index - self.num_entries]), tuple(readers))

    def _operands(self, index: int) -> tuple[Operand, ...]:
        return self.vertices[index - self.num_entries][2] if index >= self.num_entries else ()

    def _reads(self, vertex: Vertex) -> tuple[Operand, ...]:
        op_type, _, operands = vertex
        reads = [(self.colour[source], output) for source, output in operands]
        if op_type in COMMUTATIVE:
            reads.sort()
        return tuple(reads)


def _grouped(vertices: list[int], key: Callable[[int], tuple[object, ...]]) -> list[list[int]]:
    """Vertices of equal keys together, in the order of their keys."""
    if len(vertices) == 1:
        return [vertices]
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for vertex in vertices:
        groups[key(vertex)].append(vertex)
    try:
        ordered = sorted(groups)
    except TypeError:  # somebody's own operator may take a number here and a text there
        ordered = sorted(groups, key=repr)
    return [groups[found] for found in ordered]
