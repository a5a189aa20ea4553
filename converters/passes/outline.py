"""Outlining: repeated blocks become functions, and attributes that differ between repetitions become their parameters.

The graph is cut into segments where few values cross. Among all runs of consecutive segments that occur more than
once, the one that saves the most lines of text becomes a function. This repeats until no function saves any; a later
function may call an earlier one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, chain
from typing import NamedTuple

from converters.graph import CALL, Attributes, AttributeValue, Function, Graph, Node, Reference, kind_of
from converters.passes.segments import last_readers, split_at_borders

DEFINITION_COST = 3  # lines of a function besides nodes and brackets: domain, operator sets, signature
MAX_CROSSING = 2  # cells of NASNet-like spaces read the two cells before them

Form = tuple[object, ...]  # the structure of a sequence of nodes without value names; equal for equal blocks
Run = tuple[int, int]  # consecutive segments: index of the first, index of the last + 1


class Segment(NamedTuple):
    """The nodes between two borders.

    ``stop`` is the position of the end border, ``symbol`` a number that segments of equal form share. Positions are
    those of the nodes before any block was moved into a function; a call takes the position of its block.
    """

    nodes: tuple[Node, ...]
    stop: int
    symbol: int


class Block(NamedTuple):
    """A run of segments with its nodes, its form, and the values that it reads and makes for others."""

    run: Run
    stop: int
    nodes: tuple[Node, ...]
    form: Form
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def outline(graph: Graph) -> Graph:
    """Move repeated blocks into functions as long as the text gets shorter; inlining them gives ``graph`` again.

    Expects nodes in the order of ``canonicalise``, so that repetitions have equal forms. Nodes that depend on operators
    of other domains stay in the main graph: the types of their values are unknown, which the checker does not accept
    in functions.
    """
    nodes: Sequence[Node] = graph.nodes
    untyped = _untyped_values(graph)
    functions: dict[str, Function] = {}
    for max_crossing in range(1, MAX_CROSSING + 1):
        last_reader = last_readers(nodes, graph.outputs)
        segments = _segments(split_at_borders(nodes, graph.inputs, graph.outputs, max_crossing), last_reader, untyped)
        while occurrences := _best_repetition(segments, last_reader):
            name = f"T{len(functions)}"
            functions[name], calls = _extract(name, occurrences)
            for block, call in zip(reversed(occurrences), reversed(calls), strict=True):
                first, last = block.run
                segments[first:last] = [Segment((call,), block.stop, -len(functions))]
        nodes = [node for segment in segments for node in segment.nodes]
    return _name_functions(replace(graph, nodes=tuple(nodes)), functions)


def _untyped_values(graph: Graph) -> set[str]:
    """Return the outputs of operators of other domains and all values that depend on them."""
    others = tuple([f"{domain}." for domain in graph.domains])
    untyped: set[str] = set()
    for node in graph.nodes if others else ():
        if node.op_type.startswith(others) or not untyped.isdisjoint(node.inputs):
            untyped.update(node.outputs)
    return untyped


def _segments(split: Sequence[tuple[Node, ...]], last_reader: dict[str, int], untyped: set[str]) -> list[Segment]:
    """Return the segments with their symbols, which stay valid when a call replaces some of the segments."""
    operators = [tuple([node.op_type for node in nodes]) for nodes in split]
    times = Counter(operators)  # the form is needed only for operator sequences that repeat
    numbers: dict[Form, int] = {}
    segments: list[Segment] = []
    for nodes, stop, spelled in zip(split, accumulate(map(len, split)), operators, strict=True):
        form = _form(nodes, stop, last_reader)[0] if times[spelled] > 1 else spelled
        if untyped and any(not untyped.isdisjoint(node.outputs) for node in nodes):
            form = (stop,)  # unique, so it never repeats
        segments.append(Segment(nodes, stop, numbers.setdefault(form, len(numbers))))
    return segments


def _best_repetition(segments: Sequence[Segment], last_reader: dict[str, int]) -> list[Block]:
    """Return the equal, non-overlapping blocks that save the most lines as one function; empty if none save any."""
    borders = [0, *accumulate([len(segment.nodes) for segment in segments])]
    candidates: list[tuple[int, int, list[Run]]] = []  # lines saved, negative; index in the order found; runs
    for index, runs in enumerate(_repeated_runs([segment.symbol for segment in segments])):
        first, last = runs[0]
        saved = _saved(len(runs), borders[last] - borders[first])
        if saved > 0:
            candidates.append((-saved, index, runs))
    best: list[Block] = []
    best_rank = (0, -1)  # lines saved, negative, and index of the candidate: of equal ones the first wins
    for negative, index, runs in sorted(candidates):
        if (negative, index) >= best_rank:
            break
        # If two values cross a border, equal segments may still be connected differently, and then save less.
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
    """Return the lines saved by one function for ``times`` blocks of ``length`` nodes each."""
    return (times - 1) * length - times - DEFINITION_COST


def _repeated_runs(symbols: Sequence[int]) -> Iterator[list[Run]]:
    """Yield groups of equal, non-overlapping runs of symbols: runs of length 1, then 2, as long as any repeat."""
    groups = [list(range(len(symbols)))]  # starts of equal runs, which may overlap; at first runs of length 0
    length = 0
    while groups:
        length += 1
        longer = [group for starts in groups for group in _continued(starts, symbols, length - 1)]
        groups = sorted([starts for starts in longer if starts[-1] - starts[0] >= length])  # in others all runs overlap
        for starts in groups:
            yield _apart(starts, length)


def _continued(starts: Sequence[int], symbols: Sequence[int], offset: int) -> list[list[int]]:
    """Split a group of equal runs by the symbol that follows them; groups of one are dropped."""
    found: dict[int, list[int]] = {}
    for start in starts:
        if start + offset < len(symbols):
            found.setdefault(symbols[start + offset], []).append(start)
    return [group for group in found.values() if len(group) > 1]


def _apart(starts: Sequence[int], length: int) -> list[Run]:
    """Return non-overlapping runs, chosen greedily from the first start."""
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
    """Return the form of nodes that end at ``stop``, the values that they read, and those that they make for others."""
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
    """Return the function for equal blocks, and the call that replaces each of them."""
    first = occurrences[0]
    varying: dict[tuple[str, tuple[AttributeValue, ...]], str] = {}  # the key has the kind because 1 == 1.0
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
    """Name functions B0, B1, … in the order in which their calls occur in the text."""
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
