"""Inline blocks: write a network as one list of operators, with every call replaced by the block's lines and values.

A cell is a block that a network calls many times with few different arguments. Written once, it keeps texts of cell
spaces short, so networks with a cell are not inlined. Networks that are chains of different layers have blocks too,
where a few layers happen to occur twice. There a block would only be one more name to learn.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

from nasrlm.text.bodies import Arguments, Body, Line, OtherTextError

MIN_CALLS = 6  # calls of a cell; NAS-Bench-101 has nine, NAS-Bench-201 fifteen
MIN_CALLS_ALIKE = 1.75  # mean number of calls of a cell with the same arguments; 9 / 5 and 15 / 3 in these spaces
MAX_LINES = 4096  # of an inlined network
MAX_DEPTH = 64  # of nested blocks


def inlined(bodies: Sequence[Body], *, cells: bool = False) -> Body | None:
    """Write out every block where it is called.

    Args:
        bodies: the graph, then its blocks.
        cells: also write out networks with a cell.

    Returns:
        The graph as a single body. None if it would have more than ``MAX_LINES`` lines, or if it has a cell and
        ``cells`` is False.

    Raises:
        OtherTextError: blocks call each other in a circle, or a value or argument is missing.
    """
    graph = bodies[0]
    functions = {body.header: body for body in bodies[1:]}
    try:
        if not _is_short(bodies) or (not cells and _has_cell(graph, functions)):
            return None
        expansion = _Expansion(functions)
        outputs = expansion.add(graph, (), graph.inputs)
    except (KeyError, ValueError) as e:  # an undefined name, more names than values, or circular calls
        raise OtherTextError from e
    return Body(graph.header, graph.inputs, outputs, expansion.lines)


def _is_short(bodies: Sequence[Body]) -> bool:
    """Return whether the inlined network has at most MAX_LINES, and blocks are nested at most MAX_DEPTH deep."""
    by_header = {body.header: body for body in bodies}
    callees = {body.header: {line.callee for line in body.lines} & by_header.keys() for body in bodies}
    sizes: dict[str, int] = {}
    depths: dict[str, int] = {}
    for header in TopologicalSorter(callees).static_order():
        sizes[header] = sum(max(1, sizes.get(line.callee, 1)) for line in by_header[header].lines)
        depths[header] = 1 + max((depths[callee] for callee in callees[header]), default=0)
    return sizes[bodies[0].header] <= MAX_LINES and depths[bodies[0].header] <= MAX_DEPTH


def _has_cell(graph: Body, functions: Mapping[str, Body]) -> bool:
    """Return whether a block is called often, mostly with the same arguments; nested calls count too."""
    calls: dict[str, Counter[Arguments]] = defaultdict(Counter)
    waiting: list[tuple[Body, Arguments]] = [(graph, ())]
    while waiting:
        body, given = waiting.pop()
        for line in body.lines:
            if (callee := line.callee) in functions:
                arguments = line.with_values(given).arguments()
                calls[callee][arguments] += 1
                waiting.append((functions[callee], arguments))
    return any(alike.total() >= MIN_CALLS and alike.total() >= MIN_CALLS_ALIKE * len(alike) for alike in calls.values())


class _Expansion:
    """Writer of inlined bodies, with a unique name for each value."""

    def __init__(self, functions: Mapping[str, Body]) -> None:
        self._functions, self._count = functions, 0
        self.lines: list[Line] = []

    def add(self, body: Body, given: Arguments, inputs: Sequence[str]) -> list[str]:
        """Add the lines of a body, given its arguments and the names of its inputs; return its outputs' names."""
        names = dict(zip(body.inputs, inputs, strict=True))
        for line in body.lines:
            line = line.with_values(given)
            operands = [names[x] for x in line.inputs]
            if (callee := line.callee) in self._functions:
                outputs = self.add(self._functions[callee], line.arguments(), operands)
            else:
                outputs = [f"w{self._count + index}" for index in range(len(line.outputs))]
                self._count += len(outputs)
                self.lines.append(Line(outputs, line.op_type, line.attributes, operands))
            for x, name in zip(line.outputs, outputs, strict=True):
                if names.setdefault(x, name) is not name:
                    raise OtherTextError
        return [names[x] for x in body.outputs]
