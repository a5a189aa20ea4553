"""Sums as multisets of terms: one way to write them, however they were nested and shared."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from converters.canonical import canonicalise
from converters.graph import Graph, Node, Shape

Terms = Counter[str]  # a sum as a multiset of values that are no sums

MAX_TIMES = 1 << 12  # that a sum holds a value: NAS-Bench-201 comes to 4 ** 5, and 128 layers of x + x beyond floats


def flatten_sums(graph: Graph) -> Graph:
    """Nested sums become sums of terms; a sum that contains another live one reads that instead of its terms.

    However additions were nested and shared before, the same sums come out. ``x + x`` becomes ``nn.Scale`` by 2:
    skips that add up through a network double a value again and again. A sum that holds a value more than MAX_TIMES
    is written as it stands, and others take it for a value like any other.

    Expects a graph without dead nodes, sums of one operand and values that are made twice.
    """
    terms: dict[str, Terms] = {}
    large: dict[str, Terms] = {}  # sums that others take for a value like any other
    for node in graph.nodes:
        if node.op_type == "Sum":
            total = expand(node.inputs, terms)
            is_large = max(total.values(), default=0) > MAX_TIMES
            (large if is_large else terms)[node.outputs[0]] = Counter(node.inputs) if is_large else total
    read = {x for node in graph.nodes if node.op_type != "Sum" for x in node.inputs}.union(graph.outputs)
    read.update(large, *large.values())
    sums = {x: total for x, total in (terms | large).items() if x in read}
    shapes = dict(graph.shapes)
    flat = _with_sums(graph, sums, shapes)
    if not _common_parts(sums):
        return flat
    return _with_sums(graph, _share_common_parts(sums, flat, shapes), shapes)


def expand(operands: Sequence[str], terms: Mapping[str, Terms]) -> Terms:
    """The terms of a sum; ``terms`` holds those of its operands that are sums themselves."""
    total: Terms = Counter()
    for x in operands:
        if x in terms:
            total.update(terms[x])
        else:
            total[x] += 1
    return total


def _share_common_parts(sums: Mapping[str, Terms], flat: Graph, shapes: dict[str, Shape]) -> dict[str, Terms]:
    """Largest part first; among equals the canonical order of the flat graph decides, which knows no names."""
    values = [*flat.inputs, *(x for node in canonicalise(flat).nodes for x in node.outputs)]
    rank = {x: position for position, x in enumerate(values)}
    by_term: dict[str, list[str]] = defaultdict(list)  # every sum at one of its terms
    for x, total in sums.items():
        by_term[next(iter(total))].append(x)
    shared = {x: _contained_sums(total, sums, by_term, rank) for x, total in sums.items()}
    terms = dict(sums)
    names = {frozenset(total.items()): x for x, total in sums.items()}
    while parts := _common_parts(shared):
        part = min(parts, key=lambda part: (-part.total(), sorted([(rank[x], n) for x, n in part.items()])))
        total = expand([*part.elements()], terms)
        name = names.setdefault(frozenset(total.items()), "+".join(sorted(part.elements())))
        terms[name] = total
        rank.setdefault(name, len(rank))
        shapes[name] = shapes[next(iter(part))]
        shared = {x: total if x == name else _replace_part(total, part, name) for x, total in shared.items()}
        shared[name] = part
    return shared


def _contained_sums(
    total: Terms, sums: Mapping[str, Terms], by_term: Mapping[str, Sequence[str]], rank: Mapping[str, int]
) -> Terms:
    """Operands of one sum: the live sums whose multiples cover most of it, then the terms left over."""
    smaller = [x for term in total for x in by_term.get(term, ()) if sums[x] < total]
    covered = {x: _times(sums[x], total) * sums[x].total() for x in smaller}
    operands: Terms = Counter()
    for x in sorted(covered, key=lambda x: (-covered[x], -sums[x].total(), rank[x])):
        if times := _times(sums[x], total):
            total = total - _scaled(sums[x], times)
            operands[x] = times
    return operands + total


def _common_parts(sums: Mapping[str, Terms]) -> list[Terms]:
    """The multisets of at least two operands that two sums have in common."""
    readers: dict[str, list[str]] = defaultdict(list)
    for x, total in sums.items():
        for operand in total:
            readers[operand].append(x)
    pairs = {pair for readers_of_one in readers.values() for pair in combinations(readers_of_one, 2)}
    parts = [sums[first] & sums[second] for first, second in pairs]
    return [part for part in parts if part.total() > 1]


def _replace_part(total: Terms, part: Terms, name: str) -> Terms:
    """``total`` with ``part`` as one operand wherever it is contained."""
    times = _times(part, total)
    return total - _scaled(part, times) + Counter({name: times}) if times else total


def _times(part: Terms, total: Terms) -> int:
    """How many times ``total`` contains ``part``."""
    return min(total[x] // count for x, count in part.items())


def _scaled(part: Terms, times: int) -> Terms:
    return Counter({x: count * times for x, count in part.items()})


def _with_sums(graph: Graph, sums: Mapping[str, Terms], shapes: dict[str, Shape]) -> Graph:
    """``graph`` with these sums in place of its own, each where it was, so that few have to wait for their operands."""
    written = {node.outputs[0]: node for node in _sum_nodes(sums, shapes)}
    old = [written.pop(node.outputs[0], None) if node.op_type == "Sum" else node for node in graph.nodes]
    nodes = _topological([*written.values(), *(node for node in old if node)], graph.inputs)
    return replace(graph, nodes=tuple(nodes), shapes=shapes)


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


def _topological(nodes: Iterable[Node], inputs: Sequence[str]) -> list[Node]:
    """Nodes in an order in which every value is made before it is read."""
    known = {"", *inputs}
    ordered: list[Node] = []
    waiting: dict[str, list[Node]] = defaultdict(list)  # by a value that they lack
    for node in nodes:
        ready = [node]
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
