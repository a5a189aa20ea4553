"""Sums as multisets of terms: one way to write them, however they were nested and shared."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from zlib import crc32

from converters.graph import Graph, Node, Shape

Terms = Counter[str]  # a sum as a multiset of values that are no sums


def flatten_sums(graph: Graph) -> Graph:
    """Nested sums become sums of terms; a sum that contains another live one reads that instead of its terms.

    However additions were nested and shared before, the same sums come out. ``x + x`` becomes ``nn.Scale`` by 2:
    skips that add up through a network double a value again and again.

    Expects a graph without dead nodes.
    """
    terms: dict[str, Terms] = {}
    for node in graph.nodes:
        if node.op_type == "Sum":
            terms[node.outputs[0]] = expand(node.inputs, terms)
    read = {x for node in graph.nodes if node.op_type != "Sum" for x in node.inputs}.union(graph.outputs)
    live = [x for x in terms if x in read]
    fingerprint = _Fingerprints(graph, terms)
    operands = {x: _factor(x, live, terms, fingerprint) for x in live}
    shapes = dict(graph.shapes)
    while shared := _largest_shared_part(operands, fingerprint):
        x = "+".join(sorted(shared.elements()))
        shapes[x] = shapes[next(iter(shared))]
        fingerprint.add_sum(x, shared)
        operands = {y: _replace_part(total, shared, x) for y, total in operands.items()}
        operands[x] = shared
    others = [node for node in graph.nodes if node.op_type != "Sum"]
    nodes = _topological(others + _sum_nodes(operands, shapes), graph.inputs)
    return Graph(graph.inputs, graph.outputs, tuple(nodes), shapes)


def _sum_nodes(sums: Mapping[str, Terms], shapes: dict[str, Shape]) -> list[Node]:
    """``Sum`` of different operands for every sum, ``nn.Scale`` for what a sum holds more than once."""
    scaled: dict[tuple[str, int], str] = {}
    for x, total in sums.items():
        if len(total) == 1:
            scaled[next(iter(total.items()))] = x
    nodes: list[Node] = []
    for x, total in sums.items():
        if len(total) > 1:
            operands = [
                term if count == 1 else scaled.setdefault((term, count), f"{count}*{term}")
                for term, count in total.items()
            ]
            nodes.append(Node("Sum", tuple(operands), (x,)))
    for (term, count), x in scaled.items():
        shapes[x] = shapes[term]
        nodes.append(Node("nn.Scale", (term,), (x,), (("factor", float(count)),)))
    return nodes


def _replace_part(total: Terms, part: Terms, name: str) -> Terms:
    """``total`` with ``part`` as one operand wherever it is contained."""
    times = _times(part, total)
    return total - _scaled(part, times) + Counter({name: times}) if times else total


def expand(operands: Sequence[str], terms: Mapping[str, Terms]) -> Terms:
    """The terms of a sum; ``terms`` holds those of its operands that are sums themselves."""
    total: Terms = Counter()
    for x in operands:
        if x in terms:
            total.update(terms[x])
        else:
            total[x] += 1
    return total


def _factor(value: str, live: Sequence[str], terms: Mapping[str, Terms], fingerprint: _Fingerprints) -> Terms:
    """Operands of one sum: the live sums whose multiples cover most of it, then the terms left over."""
    rest = terms[value].copy()
    parts = {x: _scaled(terms[x], _times(terms[x], rest)) for x in live if terms[x] < rest}
    operands: Terms = Counter()
    for part in _largest_first(parts, fingerprint):
        if times := _times(terms[part], rest):
            rest -= _scaled(terms[part], times)
            operands[part] = times
    return operands + rest


def _times(part: Terms, total: Terms) -> int:
    """How many times ``total`` contains ``part``."""
    return min(total[x] // count for x, count in part.items())


def _scaled(part: Terms, times: int) -> Terms:
    return Counter({x: count * times for x, count in part.items()})


def _largest_shared_part(sums: Mapping[str, Terms], fingerprint: _Fingerprints) -> Terms | None:
    """The largest multiset of at least two operands that two sums have in common."""
    readers: dict[str, list[str]] = defaultdict(list)
    for x, total in sums.items():
        for operand in total:
            readers[operand].append(x)
    pairs = {pair for readers_of_one in readers.values() for pair in combinations(readers_of_one, 2)}
    shared = {"+".join(pair): sums[pair[0]] & sums[pair[1]] for pair in pairs}
    shared = {name: part for name, part in shared.items() if part.total() > 1}
    if not shared:
        return None
    return shared[_largest_first(shared, fingerprint)[0]]


def _largest_first(sums: Mapping[str, Terms], fingerprint: _Fingerprints) -> list[str]:
    sizes = {x: total.total() for x, total in sums.items()}
    if len(set(sizes.values())) == len(sizes):
        return sorted(sums, key=lambda x: -sizes[x])
    return sorted(sums, key=lambda x: (-sizes[x], fingerprint.of_sum(sums[x])))


class _Fingerprints:
    """A number for every value that depends only on what it computes, not on names or order; made when asked."""

    def __init__(self, graph: Graph, terms: Mapping[str, Terms]) -> None:
        self._graph, self._terms = graph, terms
        self._known: dict[str, int] = {}

    def of_sum(self, total: Terms) -> int:
        """The fingerprint of a sum of known values."""
        if not self._known:
            self._known = {x: index for index, x in enumerate(self._graph.inputs)}
            for node in self._graph.nodes:
                self._add(node)
        return hash(tuple(sorted([(self._known[x], count) for x, count in total.items()])))

    def add_sum(self, value: str, total: Terms) -> None:
        """Make a new sum known."""
        self._known[value] = self.of_sum(total)

    def _add(self, node: Node) -> None:
        if node.op_type == "Sum":
            self.add_sum(node.outputs[0], self._terms[node.outputs[0]])
            return
        label = crc32(f"{node.op_type}{node.attributes}".encode())
        operands = [self._known[x] for x in node.inputs]
        for index, output in enumerate(node.outputs):
            self._known[output] = hash((label, index, *operands))


def _topological(nodes: Iterable[Node], inputs: Sequence[str]) -> list[Node]:
    """Nodes in an order in which every value is made before it is read."""
    known = set(inputs)
    ordered: list[Node] = []
    waiting = list(nodes)
    while waiting:
        late: list[Node] = []
        for node in waiting:
            if known.issuperset(node.inputs):
                known.update(node.outputs)
                ordered.append(node)
            else:
                late.append(node)
        waiting = late
    return ordered
