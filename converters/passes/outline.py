"""Repeated blocks become functions; what differs between the repetitions becomes their attributes.

A graph is cut where the fewest values cross. Of all runs of segments that occur more than once, the one that saves
most nodes becomes a function, and so on until nothing is saved; a later function may call an earlier one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, chain
from typing import NamedTuple

from converters.graph import CALL, Attributes, AttributeValue, Function, Graph, Node, Reference, kind_of
from converters.passes.segments import split_at_borders

DEFINITION_COST = 3  # lines that a function costs beside its nodes: domain, signature, end
MAX_CROSSING = 2  # cells of NASNet-like spaces read the two cells before them

Form = tuple[object, ...]
Run = tuple[int, int]  # of segments: first, last + 1


class Segment(NamedTuple):
    """Nodes between two borders, the position of the second, and a number that segments of one form share.

    Positions are those of the nodes before any block moved into a function: a call takes its block's.
    """

    nodes: tuple[Node, ...]
    stop: int
    symbol: int


class Block(NamedTuple):
    """A run of segments: its nodes, and what they look like from outside, names aside."""

    run: Run
    stop: int
    nodes: tuple[Node, ...]
    form: Form
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def outline(graph: Graph) -> Graph:
    """Move repeated blocks into functions as long as the text gets shorter; inlining them gives ``graph`` back.

    Expects the order of ``canonicalise``, so that repetitions look alike. What operators of other domains make, and all
    that is made of it, stays outside: of no known type, it would not pass the checker as a function's.
    """
    nodes: Sequence[Node] = graph.nodes
    untyped = _untyped_values(graph)
    functions: dict[str, Function] = {}
    for max_crossing in range(1, MAX_CROSSING + 1):
        last_reader = _last_readers(nodes, graph.outputs)
        segments = _segments(split_at_borders(nodes, graph.inputs, graph.outputs, max_crossing), last_reader, untyped)
        while occurrences := _best_repetition(segments, last_reader):
            name = f"T{len(functions)}"
            functions[name], calls = _extract(name, occurrences)
            for block, call in zip(reversed(occurrences), reversed(calls), strict=True):
                first, last = block.run
                segments[first:last] = [Segment((call,), block.stop, -len(functions))]
        nodes = [node for segment in segments for node in segment.nodes]
    return _name_functions(replace(graph, nodes=tuple(nodes)), functions)


def _last_readers(nodes: Sequence[Node], outputs: Sequence[str]) -> dict[str, int]:
    readers = {x: position for position, node in enumerate(nodes) for x in node.inputs}
    return readers | dict.fromkeys(outputs, len(nodes))


def _untyped_values(graph: Graph) -> set[str]:
    """What operators of other domains make, and what is made of that."""
    others = tuple([f"{domain}." for domain in graph.domains])
    untyped: set[str] = set()
    for node in graph.nodes if others else ():
        if node.op_type.startswith(others) or not untyped.isdisjoint(node.inputs):
            untyped.update(node.outputs)
    return untyped


def _segments(split: Sequence[tuple[Node, ...]], last_reader: dict[str, int], untyped: set[str]) -> list[Segment]:
    """The segments of a graph, numbered; a call that takes the place of some changes nothing about the others."""
    operators = [tuple([node.op_type for node in nodes]) for nodes in split]
    times = Counter(operators)  # the form of what occurs once need not be known
    numbers: dict[Form, int] = {}
    segments: list[Segment] = []
    for nodes, stop, spelled in zip(split, accumulate(map(len, split)), operators, strict=True):
        form = _form(nodes, stop, last_reader)[0] if times[spelled] > 1 else spelled
        if untyped and any(not untyped.isdisjoint(node.outputs) for node in nodes):
            form = (stop,)  # as no other
        segments.append(Segment(nodes, stop, numbers.setdefault(form, len(numbers))))
    return segments


def _best_repetition(segments: Sequence[Segment], last_reader: dict[str, int]) -> list[Block]:
    """Non-overlapping equal blocks that save most lines as one function; empty if none saves any."""
    borders = [0, *accumulate([len(segment.nodes) for segment in segments])]
    candidates: list[tuple[int, int, list[Run]]] = []  # those that save most first, equals in the order found
    for index, runs in enumerate(_repeated_runs([segment.symbol for segment in segments])):
        first, last = runs[0]
        saved = _saved(len(runs), borders[last] - borders[first])
        if saved > 0:
            candidates.append((-saved, index, runs))
    best: list[Block] = []
    best_rank = (0, -1)  # what is saved, negative, and which candidate: of those that save equally, the first counts
    for negative, index, runs in sorted(candidates):
        if (negative, index) >= best_rank:
            break
        # With two values crossing, equal segments can still be wired up differently, and save less.
        blocks: dict[Form, list[Block]] = defaultdict(list)
        for run in runs:
            block = _block(segments, run, last_reader)
            blocks[block.form].append(block)
        alike = max(blocks.values(), key=len)
        rank = (-_saved(len(alike), len(alike[0].nodes)), index)
        if rank < best_rank:
            best, best_rank = alike, rank
    return best


def _saved(times: int, length: int) -> int:
    """Lines saved by one function for so many blocks of so many nodes."""
    return (times - 1) * length - times - DEFINITION_COST


def _repeated_runs(symbols: Sequence[int]) -> Iterator[list[Run]]:
    """Groups of equal, non-overlapping runs of symbols: of one symbol, then two, while they repeat."""
    groups = [list(range(len(symbols)))]  # where equal runs start, overlapping or not; at first those of no symbol
    length = 0
    while groups:
        length += 1
        longer = [group for starts in groups for group in _continued(starts, symbols, length - 1)]
        groups = sorted([starts for starts in longer if starts[-1] - starts[0] >= length])  # others overlap
        for starts in groups:
            yield _apart(starts, length)


def _continued(starts: Sequence[int], symbols: Sequence[int], offset: int) -> list[list[int]]:
    """Group equal runs by the symbol that follows them, without groups of one."""
    found: dict[int, list[int]] = {}
    for start in starts:
        if start + offset < len(symbols):
            found.setdefault(symbols[start + offset], []).append(start)
    return [group for group in found.values() if len(group) > 1]


def _apart(starts: Sequence[int], length: int) -> list[Run]:
    """Runs that do not overlap, from the first on."""
    runs: list[Run] = []
    end = 0
    for start in starts:
        if start >= end:
            end = start + length
            runs.append((start, end))
    return runs


def _block(segments: Sequence[Segment], run: Run, last_reader: dict[str, int]) -> Block:
    first, last = run
    nodes = tuple(chain.from_iterable([segment.nodes for segment in segments[first:last]]))
    stop = segments[last - 1].stop
    return Block(run, stop, nodes, *_form(nodes, stop, last_reader))


def _form(
    nodes: Sequence[Node], stop: int, last_reader: dict[str, int]
) -> tuple[Form, tuple[str, ...], tuple[str, ...]]:
    """What nodes up to position ``stop`` look like, the values that they read, and those that they make for others."""
    inside: dict[str, int] = {}
    outside: dict[str, int] = {}
    leaving: list[str] = []
    form: list[object] = []
    for op_type, inputs, outputs, attributes, _ in nodes:
        form += (op_type, len(outputs), _names_and_types(attributes))
        for x in inputs:
            if x in inside:
                form.append(inside[x])
            else:
                form.append(-1 - outside.setdefault(x, len(outside)) if x else None)
        for x in outputs:
            inside[x] = len(inside)
            leaves = last_reader.get(x, -1) >= stop
            form.append(leaves)
            if leaves:
                leaving.append(x)
    return tuple(form), tuple(outside), tuple(leaving)


@lru_cache(maxsize=1 << 14)
def _names_and_types(attributes: Attributes) -> tuple[tuple[str, type], ...]:
    return tuple([(name, type(value)) for name, value in attributes])


def _extract(name: str, occurrences: Sequence[Block]) -> tuple[Function, list[Node]]:
    """The function for equal blocks, and the call that replaces each of them."""
    first = occurrences[0]
    varying: dict[tuple[str, tuple[AttributeValue, ...]], str] = {}  # by kind: 1 and 1.0 are equal as keys
    body: list[Node] = []
    for node, *others in zip(*[block.nodes for block in occurrences], strict=True):
        if all(other.attributes == node.attributes for other in others):
            body.append(node)
            continue
        attributes: list[tuple[str, AttributeValue]] = []
        for index, (attribute, value) in enumerate(node.attributes):
            values = (value, *[other.attributes[index][1] for other in others])
            if any(other != value for other in values):
                parameter = varying.setdefault((kind_of(value), values), f"a{len(varying)}")
                attributes.append((attribute, Reference(parameter, kind_of(value))))
            else:
                attributes.append((attribute, value))
        body.append(node._replace(attributes=tuple(attributes)))
    calls = [
        Node(f"{CALL}{name}", block.inputs, block.outputs, _call_attributes(varying, index))
        for index, block in enumerate(occurrences)
    ]
    return Function(name, first.inputs, first.outputs, tuple(varying.values()), tuple(body)), calls


def _call_attributes(varying: dict[tuple[str, tuple[AttributeValue, ...]], str], index: int) -> Attributes:
    return tuple([(parameter, values[index]) for (_, values), parameter in varying.items()])


def _name_functions(graph: Graph, functions: dict[str, Function]) -> Graph:
    """Functions named B0, B1, … in the order in which reading the text meets their calls."""
    names: dict[str, str] = {}

    def renamed(nodes: Sequence[Node]) -> tuple[Node, ...]:
        result: list[Node] = []
        for node in nodes:
            if node.callee:
                node = node._replace(op_type=f"{CALL}{names.setdefault(node.callee, f'B{len(names)}')}")
            result.append(node)
        return tuple(result)

    nodes = renamed(graph.nodes)
    ordered: list[Function] = []
    while len(ordered) < len(names):
        old = list(names)[len(ordered)]
        ordered.append(functions[old]._replace(name=names[old], nodes=renamed(functions[old].nodes)))
    return replace(graph, nodes=nodes, functions=tuple(ordered))
