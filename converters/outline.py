"""Repeated blocks become functions; what differs between the repetitions becomes their attributes.

A graph is cut where the fewest values cross. Of all runs of segments that occur more than once, the one that saves
most nodes becomes a function, and so on until nothing is saved; a later function may call an earlier one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from converters.graph import Attributes, AttributeValue, Function, Graph, Node, Reference, kind_of
from converters.segments import split_at_borders

DEFINITION_COST = 3  # lines that a function costs beside its nodes: domain, signature, end
MAX_CROSSING = 2  # cells of NASNet-like spaces read the two cells before them

Form = tuple[object, ...]


class Block(NamedTuple):
    """Nodes ``start:stop`` of a graph, and what they look like from outside, names aside."""

    start: int
    stop: int
    form: Form
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def outline(graph: Graph) -> Graph:
    """Move repeated blocks into functions as long as the text gets shorter; inlining them gives ``graph`` back.

    Expects the order of ``canonicalise``, so that repetitions look alike.
    """
    nodes = list(graph.nodes)
    functions: dict[str, Function] = {}
    for max_crossing in range(1, MAX_CROSSING + 1):
        while occurrences := _best_repetition(nodes, graph, max_crossing):
            name = f"T{len(functions)}"
            functions[name], calls = _extract(name, nodes, occurrences)
            for block, call in zip(reversed(occurrences), reversed(calls), strict=True):
                nodes[block.start : block.stop] = [call]
    return _name_functions(replace(graph, nodes=tuple(nodes)), functions)


def _best_repetition(nodes: Sequence[Node], graph: Graph, max_crossing: int) -> list[Block]:
    """Non-overlapping equal blocks that save most lines as one function; empty if none saves any."""
    segments = split_at_borders(nodes, graph.inputs, graph.outputs, max_crossing)
    borders = [0, *accumulate(len(segment) for segment in segments)]
    last_reader = _last_readers(nodes, graph.outputs)
    operators = [tuple([node.op_type for node in segment]) for segment in segments]
    times = Counter(operators)  # the form of what occurs once need not be known
    forms = [
        _block(nodes, start, stop, last_reader).form if times[spelled] > 1 else spelled
        for (start, stop), spelled in zip(pairwise(borders), operators, strict=True)
    ]
    candidates = [[(borders[first], borders[last]) for first, last in runs] for runs in _repeated_runs(forms)]
    best: list[Block] = []
    place = -1  # of the best among the candidates: of those that save equally, the first counts
    for index, spans in sorted(enumerate(candidates), key=lambda candidate: _saving(candidate[1]), reverse=True):
        if (_saving(spans), place) <= (_saving(best), index):
            break
        # With two values crossing, equal segments can still be wired up differently, and save less.
        blocks: dict[Form, list[Block]] = defaultdict(list)
        for start, stop in spans:
            block = _block(nodes, start, stop, last_reader)
            blocks[block.form].append(block)
        alike = max(blocks.values(), key=_saving)
        if (_saving(alike), place) > (_saving(best), index):
            best, place = alike, index
    return best


def _saving(blocks: Sequence[tuple[int, int] | Block]) -> int:
    """Lines saved by one function for all blocks."""
    if not blocks:
        return 0
    length = blocks[0][1] - blocks[0][0]
    return (len(blocks) - 1) * length - len(blocks) - DEFINITION_COST


def _repeated_runs(forms: Sequence[Form]) -> Iterator[list[tuple[int, int]]]:
    """Groups of equal, non-overlapping runs ``first:last`` of forms: of one form, then two, while they repeat."""
    numbers: dict[Form, int] = {}
    symbols = [numbers.setdefault(form, len(numbers)) for form in forms]
    groups = [list(range(len(symbols)))]  # where equal runs start, overlapping or not; at first those of no form
    for length in range(1, len(symbols) // 2 + 1):
        groups = sorted(group for starts in groups for group in _continued(starts, symbols, length - 1))
        repeated = [runs for starts in groups if len(runs := _apart(starts, length)) > 1]
        if not repeated:
            return
        yield from repeated


def _continued(starts: Sequence[int], symbols: Sequence[int], offset: int) -> list[list[int]]:
    """Of equal runs, those that go on with the same symbol as another."""
    found: dict[int, list[int]] = defaultdict(list)
    for start in starts:
        if start + offset < len(symbols):
            found[symbols[start + offset]].append(start)
    return [group for group in found.values() if len(group) > 1]


def _apart(starts: Sequence[int], length: int) -> list[tuple[int, int]]:
    """Runs that do not overlap, from the first on."""
    runs: list[tuple[int, int]] = []
    for start in starts:
        if not runs or runs[-1][1] <= start:
            runs.append((start, start + length))
    return runs


def _last_readers(nodes: Sequence[Node], outputs: Sequence[str]) -> dict[str, int]:
    readers = {x: position for position, node in enumerate(nodes) for x in node.inputs}
    return readers | dict.fromkeys(outputs, len(nodes))


def _block(nodes: Sequence[Node], start: int, stop: int, last_reader: dict[str, int]) -> Block:
    inside: dict[str, int] = {}
    outside: dict[str, int] = {}
    leaving: list[str] = []
    form: list[object] = []
    for op_type, inputs, outputs, attributes, _ in nodes[start:stop]:
        operands = [
            inside[x] if x in inside else -1 - outside.setdefault(x, len(outside)) if x else None for x in inputs
        ]
        leaves = tuple([last_reader.get(x, -1) >= stop for x in outputs])
        form.append((op_type, _names_and_types(attributes), *operands, leaves))
        for x, leaf in zip(outputs, leaves, strict=True):
            inside[x] = len(inside)
            if leaf:
                leaving.append(x)
    return Block(start, stop, tuple(form), tuple(outside), tuple(leaving))


@lru_cache(maxsize=1 << 14)
def _names_and_types(attributes: Attributes) -> tuple[tuple[str, type], ...]:
    return tuple([(name, type(value)) for name, value in attributes])


def _extract(name: str, nodes: Sequence[Node], occurrences: Sequence[Block]) -> tuple[Function, list[Node]]:
    """The function for equal blocks, and the call that replaces each of them."""
    first = occurrences[0]
    varying: dict[tuple[str, tuple[AttributeValue, ...]], str] = {}  # by kind: 1 and 1.0 are equal as keys
    body: list[Node] = []
    for offset, node in enumerate(nodes[first.start : first.stop]):
        attributes: list[tuple[str, AttributeValue]] = []
        for index, (attribute, value) in enumerate(node.attributes):
            values = tuple([nodes[block.start + offset].attributes[index][1] for block in occurrences])
            if any(other != value for other in values):
                parameter = varying.setdefault((kind_of(value), values), f"a{len(varying)}")
                attributes.append((attribute, Reference(parameter, kind_of(value))))
            else:
                attributes.append((attribute, value))
        body.append(node._replace(attributes=tuple(attributes)))
    calls = [
        Node(f"block.{name}", block.inputs, block.outputs, _call_attributes(varying, index))
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
            if node.op_type.startswith("block."):
                name = node.op_type.removeprefix("block.")
                node = node._replace(op_type=f"block.{names.setdefault(name, f'B{len(names)}')}")
            result.append(node)
        return tuple(result)

    nodes = renamed(graph.nodes)
    ordered: list[Function] = []
    while len(ordered) < len(names):
        old = list(names)[len(ordered)]
        ordered.append(functions[old]._replace(name=names[old], nodes=renamed(functions[old].nodes)))
    return replace(graph, nodes=nodes, functions=tuple(ordered))
