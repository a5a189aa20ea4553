"""One node order and one operand order for isomorphic graphs, whatever their names and order were.

A network is cut into segments at the values through which everything passes, and each segment is ordered by
itself: operators rank first by height (longest path from the segment's entry), then by name, attributes and the
ranks of their operands. Where two operands of a commutative operator tie, what reads them decides (colour
refinement); operands that tie even then are taken to be interchangeable. Ranks are local, so the repetitions of a
block come out in the same order, and equal segments are ordered once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from converters.graph import Attributes, Graph, Node
from converters.segments import constants_late, split_at_borders

COMMUTATIVE = frozenset({"Sum", "Add", "Mul", "Max", "Min", "Mean"})
Operand = tuple[int, int]  # vertex, output index


class Vertex(NamedTuple):
    """A node of a segment without names: vertices before it are its operands; the first ones are the entries."""

    op_type: str
    attributes: Attributes
    operands: tuple[Operand, ...]


class Order(NamedTuple):
    """Vertices in canonical order, and for each vertex its operands in canonical order (positions)."""

    vertices: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]


def canonicalise(graph: Graph) -> Graph:
    """The same graph, depth-first from the outputs, the deepest operand first; commuting operands in canonical order.

    Expects a graph without dead nodes. Isomorphic graphs give equal nodes up to value names.
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
    made = {x for node in segment for x in node.outputs}
    read = dict.fromkeys([x for node in segment for x in node.inputs])
    entries = [x for x in graph_inputs if x in read]
    entries += [x for x in read if x not in made and x not in graph_inputs]
    if "" in entries:  # what is left out comes last, wherever it was met
        entries.remove("")
        entries.append("")
    place: dict[str, Operand] = {x: (index, 0) for index, x in enumerate(entries)}
    vertices: list[Vertex] = []
    for index, node in enumerate(segment, start=len(entries)):
        vertices.append(Vertex(node.op_type, node.attributes, tuple([place[x] for x in node.inputs])))
        place.update({x: (index, output) for output, x in enumerate(node.outputs)})
    roots = [place[x][0] for x in (exits or segment[-1].outputs) if x in place]
    order = canonical_order(tuple(vertices), len(entries), tuple(roots))
    ordered: list[Node] = []
    for vertex in order.vertices:
        node = segment[vertex - len(entries)]
        if node.op_type in COMMUTATIVE:
            positions = order.operands[vertex - len(entries)]
            node = node._replace(inputs=tuple([node.inputs[position] for position in positions]))
        ordered.append(node)
    return ordered


@lru_cache(maxsize=1 << 9)  # at most 60 MB: the cells of a NASNet-like network are one segment of 0.1 MB
def canonical_order(vertices: tuple[Vertex, ...], num_entries: int, roots: tuple[int, ...]) -> Order:
    """Order a segment; isomorphic segments give the same sequence of operators and operands."""
    colours = _Colours(vertices, num_entries, roots)
    colours.break_ties()
    operands = tuple([colours.operand_order(vertex) for vertex in vertices])
    visited = set(range(num_entries))
    order: list[int] = []
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        vertex, done = stack.pop()
        if done:
            order.append(vertex)
        elif vertex not in visited:
            visited.add(vertex)
            stack.append((vertex, True))
            reads = vertices[vertex - num_entries].operands
            sources = [reads[position][0] for position in reversed(operands[vertex - num_entries])]
            sources.sort(key=colours.height.__getitem__)
            stack += [(source, False) for source in sources]
    return Order(tuple(order), operands)


class _Colours:
    """One integer a vertex; equal where nothing so far tells two vertices apart, ordered like their keys.

    A colour is the number of vertices with smaller ones, so a class that splits leaves all others as they are.
    """

    def __init__(self, vertices: Sequence[Vertex], num_entries: int, roots: Sequence[int]) -> None:
        self.vertices = vertices
        self.num_entries = num_entries
        self.total = num_entries + len(vertices)
        self.readers: list[list[tuple[int, int]]] = [[] for _ in range(self.total)]  # reader, slot
        self.height = height = [0] * self.total
        for index, vertex in enumerate(vertices, start=num_entries):
            height[index] = 1 + max([height[source] for source, _ in vertex.operands], default=0)
            for slot, (source, output) in enumerate(vertex.operands):
                commutes = vertex.op_type in COMMUTATIVE
                self.readers[source].append((index, -1 - output if commutes else slot))
        for position, root in enumerate(roots):
            self.readers[root].append((root, len(roots) + position))
        commuting = [vertex.operands for vertex in vertices if vertex.op_type in COMMUTATIVE]
        self.choices = [{source for source, _ in operands} for operands in commuting]  # to be put in order
        self.colour = list(range(self.total))
        self.members = [[vertex] for vertex in range(self.total)]  # of the class of every colour in use
        colour = num_entries
        for _, level in groupby(sorted(range(num_entries, self.total), key=height.__getitem__), height.__getitem__):
            groups = _grouped(list(level), self._seen_from_below)
            self._paint(groups, colour)
            colour += sum(map(len, groups))

    def break_ties(self) -> None:
        """Refine until no two different operands of a commutative operator have the same colour."""
        changed: Sequence[int] = range(self.total)
        while self._tied():
            self._refine(changed)
            if tied := self._tied():
                colour, chosen = min((self.colour[vertex], vertex) for vertex in tied)
                others = [vertex for vertex in self.members[colour] if vertex != chosen]
                changed = self._paint([[chosen], others], colour)

    def operand_order(self, vertex: Vertex) -> tuple[int, ...]:
        """Positions of the operands in canonical order."""
        positions = range(len(vertex.operands))
        if len(positions) < 2 or vertex.op_type not in COMMUTATIVE:
            return tuple(positions)
        return tuple(sorted(positions, key=lambda p: (self.colour[vertex.operands[p][0]], vertex.operands[p][1])))

    def _tied(self) -> list[int]:
        tied: list[int] = []
        for sources in self.choices:
            colours = Counter([self.colour[source] for source in sources])
            if len(colours) < len(sources):
                tied.extend(source for source in sources if colours[self.colour[source]] > 1)
        return tied

    def _refine(self, changed: Sequence[int]) -> None:
        """Split classes by what their members read and are read by, until nothing splits; ``changed`` are new."""
        while changed:
            touched = {self.colour[neighbour] for vertex in changed for neighbour in self._neighbours(vertex)}
            several = [colour for colour in touched if len(self.members[colour]) > 1]
            splits = [(_grouped(self.members[colour], self._seen_from_around), colour) for colour in several]
            changed = [vertex for groups, colour in splits for vertex in self._paint(groups, colour)]

    def _paint(self, groups: Sequence[list[int]], colour: int) -> list[int]:
        """Make every group a class, from ``colour`` on; the vertices behind the first group."""
        for group in groups:
            self.members[colour] = group
            for vertex in group:
                self.colour[vertex] = colour
            colour += len(group)
        return [vertex for group in groups[1:] for vertex in group]

    def _neighbours(self, index: int) -> Iterator[int]:
        if index >= self.num_entries:
            yield from [source for source, _ in self.vertices[index - self.num_entries].operands]
        yield from [reader for reader, _ in self.readers[index]]

    def _seen_from_below(self, index: int) -> tuple[object, ...]:
        vertex = self.vertices[index - self.num_entries]
        return (vertex.op_type, vertex.attributes, self._reads(vertex))

    def _seen_from_around(self, index: int) -> tuple[object, ...]:
        readers = sorted([(self.colour[reader], slot) for reader, slot in self.readers[index]])
        return (self._reads(self.vertices[index - self.num_entries]), tuple(readers))

    def _reads(self, vertex: Vertex) -> tuple[Operand, ...]:
        reads = [(self.colour[source], output) for source, output in vertex.operands]
        if vertex.op_type in COMMUTATIVE:
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
