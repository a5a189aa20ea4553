"""Rewrites sums as multisets of terms, so that they have one form however they were nested and shared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, combinations

from converters.graph import Graph, Node, Shape
from converters.passes.canonical import canonicalise

Terms = dict[str, int]  # a sum as a multiset: the values that it adds, which are no sums themselves, and how often

# How often a sum may contain a value: NAS-Bench-201 reaches 4 ** 5, and 128 layers of x + x would overflow floats.
MAX_TIMES = 1 << 12


def flatten_sums(graph: Graph) -> Graph:
    """Flatten nested sums to sums of terms; a sum that contains another live sum reads it instead of its terms.

    The result does not depend on how additions were nested and shared before. ``x + x`` becomes ``nn.Scale`` by 2:
    skip connections that add up through a network double a value repeatedly. A sum that would contain a value more
    than MAX_TIMES times is kept as written, and other sums treat it as a term.

    Expects a graph without dead nodes, sums of one operand and duplicate values.
    """
    terms: dict[str, Terms] = {}
    large: dict[str, Terms] = {}  # sums that other sums treat as a term
    read = set(graph.outputs)  # values that something other than a sum reads
    for op_type, inputs, outputs, _, _ in graph.nodes:
        if op_type == "Sum":
            total = expand(inputs, terms)
            if max(total.values(), default=0) > MAX_TIMES:
                large[outputs[0]] = expand(inputs, {})
            else:
                terms[outputs[0]] = total
        else:
            read.update(inputs)
    read.update(large, *large.values())
    sums = {x: total for x, total in (terms | large).items() if x in read}
    shapes = dict(graph.shapes)
    if any(_common_parts(sums)):
        sums = _share_common_parts(graph, sums, shapes)
    return _with_sums(graph, sums, shapes)


def expand(operands: Sequence[str], terms: Mapping[str, Terms]) -> Terms:
    """Return the terms of a sum; ``terms`` has the terms of those operands that are sums themselves."""
    total: Terms = {}
    for x in operands:
        if x not in terms:
            total[x] = total.get(x, 0) + 1
        elif not total:
            total = terms[x].copy()
        else:
            for term, count in terms[x].items():
                total[term] = total.get(term, 0) + count
    return total


class _Ranks:
    """Positions of values in the canonical order of the graph with flat sums, which is independent of value names.

    Values that are added later come last. The order is computed only when needed: it costs as much as the rest of this
    module together, and few networks have sums that cannot be ordered without it.
    """

    def __init__(self, graph: Graph, sums: Mapping[str, Terms]) -> None:
        self._graph = graph
        self._sums = sums
        self._new: list[str] = []

    def add(self, x: str) -> None:
        """Give ``x`` the next position, unless it has one."""
        self._new.append(x)
        if "_known" in vars(self):
            self._known.setdefault(x, len(self._known))

    def __getitem__(self, x: str) -> int:
        return self._known[x]

    @cached_property
    def _known(self) -> dict[str, int]:
        flat = canonicalise(_with_sums(self._graph, self._sums, dict(self._graph.shapes)))
        values = [*flat.inputs, *[x for node in flat.nodes for x in node.outputs], *self._new]
        return {x: position for position, x in enumerate(dict.fromkeys(values))}


def _share_common_parts(graph: Graph, sums: Mapping[str, Terms], shapes: dict[str, Shape]) -> dict[str, Terms]:
    """Make the common parts of sums into sums of their own, the largest part first.

    Among parts of equal size the canonical order of the flat graph decides.
    """
    rank = _Ranks(graph, sums)
    by_term: dict[str, list[str]] = defaultdict(list)  # every sum, listed under its first term
    for x, total in sums.items():
        by_term[next(iter(total))].append(x)
    shared = {x: _contained_sums(total, sums, by_term, rank) for x, total in sums.items()}
    terms = dict(sums)
    names = {frozenset(total.items()): x for x, total in sums.items()}
    while parts := list(_common_parts(shared)):
        part = _first_of_largest(parts, rank)
        operands = _elements(part)
        total = expand(operands, terms)
        name = names.setdefault(frozenset(total.items()), "+".join(sorted(operands)))
        terms[name] = total
        rank.add(name)
        shapes[name] = shapes[operands[0]]
        shared = {x: total if x == name else _replace_part(total, part, name) for x, total in shared.items()}
        shared[name] = part
    return shared


def _contained_sums(
    total: Terms, sums: Mapping[str, Terms], by_term: Mapping[str, Sequence[str]], rank: _Ranks
) -> Terms:
    """Return the operands of a sum: the live sums whose multiples cover most of it, then the remaining terms."""
    others = [x for term in total for x in by_term.get(term, ()) if sums[x] != total]
    contained = {x: times for x in others if (times := _times(sums[x], total))}
    sizes = {x: sum(sums[x].values()) for x in contained}
    most_covered = {x: (-times * sizes[x], -sizes[x]) for x, times in contained.items()}
    smaller = list(contained)
    if len(set(most_covered.values())) < len(smaller):
        smaller.sort(key=rank.__getitem__)
    smaller.sort(key=most_covered.__getitem__)
    operands: Terms = {}
    for x in smaller:
        if times := _times(sums[x], total):
            total = _without(total, sums[x], times)
            operands[x] = times
    return _joined(operands, total)


def _common_parts(sums: Mapping[str, Terms]) -> Iterator[Terms]:
    """Yield the multisets of at least two operands that two sums have in common."""
    readers: dict[str, list[str]] = defaultdict(list)
    for x, total in sums.items():
        for operand in total:
            readers[operand].append(x)
    seen: set[tuple[str, str]] = set()
    for pair in chain.from_iterable(combinations(readers_of_one, 2) for readers_of_one in readers.values()):
        if pair not in seen:
            seen.add(pair)
            part = _intersection(sums[pair[0]], sums[pair[1]])
            if len(part) > 1 or sum(part.values()) > 1:
                yield part


def _first_of_largest(parts: Sequence[Terms], rank: _Ranks) -> Terms:
    sizes = [sum(part.values()) for part in parts]
    largest = [part for part, size in zip(parts, sizes, strict=True) if size == max(sizes)]
    if all(part == largest[0] for part in largest):
        return largest[0]
    return min(largest, key=lambda part: sorted([(rank[x], count) for x, count in part.items()]))


def _replace_part(total: Terms, part: Terms, name: str) -> Terms:
    """Return ``total`` with each occurrence of ``part`` replaced by the operand ``name``."""
    times = _times(part, total)
    return _joined(_without(total, part, times), {name: times}) if times else total


def _times(part: Terms, total: Terms) -> int:
    """Return how many times ``total`` contains ``part``."""
    if not part.keys() <= total.keys():  # fast: stops at the first missing key
        return 0
    return min([total[x] // count for x, count in part.items()])


def _intersection(first: Terms, second: Terms) -> Terms:
    return {x: min(count, second[x]) for x, count in first.items() if x in second}


def _without(total: Terms, part: Terms, times: int) -> Terms:
    """Return ``total`` minus ``times`` times ``part``, which it must contain."""
    return {x: left for x, count in total.items() if (left := count - times * part.get(x, 0))}


def _joined(first: Terms, second: Terms) -> Terms:
    return first | {x: first.get(x, 0) + count for x, count in second.items()}


def _elements(total: Terms) -> list[str]:
    """Return the operands as a list, each as often as the sum contains it."""
    return [x for x, count in total.items() for _ in range(count)]


def _with_sums(graph: Graph, sums: Mapping[str, Terms], shapes: dict[str, Shape]) -> Graph:
    """Replace the sums of a graph; sums that it had before keep their place, which makes the topological sort cheap."""
    written = {node.outputs[0]: node for node in _sum_nodes(sums, shapes)}
    old = [written.pop(node.outputs[0], None) if node.op_type == "Sum" else node for node in graph.nodes]
    nodes = _topological([*written.values(), *(node for node in old if node)], graph.inputs)
    return replace(graph, nodes=tuple(nodes), shapes=shapes)


def _sum_nodes(sums: Mapping[str, Terms], shapes: dict[str, Shape]) -> list[Node]:
    """Return a ``Sum`` of distinct operands for every sum, and ``nn.Scale`` for operands that occur more than once."""
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


def _topological(nodes: Iterable[Node], inputs: Sequence[str]) -> list[Node]:
    """Return nodes in an order in which every value is made before it is read."""
    known = {"", *inputs}
    ordered: list[Node] = []
    waiting: dict[str, list[Node]] = defaultdict(list)  # nodes by an operand that is not made yet
    for first in nodes:
        ready = [first]
        while ready:
            node = ready.pop()
            if not known.issuperset(node.inputs):
                waiting[next(x for x in node.inputs if x not in known)].append(node)
                continue
            known.update(node.outputs)
            ordered.append(node)
            if waiting:
                ready += [reader for x in node.outputs for reader in waiting.pop(x, ())]
    assert not waiting, f"values that no node makes: {', '.join(waiting)}"
    return ordered
