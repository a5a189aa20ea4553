"""Networks as one list of operators: every call of a block is replaced by the block's lines, with the call's values.

A block that a network repeats as it stands is a cell: written once, it is what makes texts of cell spaces short, so
such networks are left as they are. Networks that are chains of different layers have blocks too, wherever a few layers
happen to come twice. There a block would only be one more name to learn for what operators say as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

from nasrlm.text.bodies import Arguments, Body, Line, OtherTextError

MIN_CALLS = 6  # of a cell: NAS-Bench-101 has nine, NAS-Bench-201 fifteen
MIN_CALLS_ALIKE = 1.75  # of a cell with the same values, in the mean: 9 / 5 and 15 / 3 in these spaces
MAX_LINES = 4096  # of a list
MAX_DEPTH = 64  # of blocks in blocks


def inlined(bodies: Sequence[Body], *, cells: bool = False) -> Body | None:
    """Write out every block where it is called.

    Args:
        bodies: the graph, then its blocks.
        cells: write out the blocks of a network with a cell too.

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
    except (KeyError, ValueError) as e:  # a name that nothing has, more names than values, blocks that call each other
        raise OtherTextError from e
    return Body(graph.header, graph.inputs, outputs, expansion.lines)


def _is_short(bodies: Sequence[Body]) -> bool:
    """Whether all bodies written out are at most MAX_LINES, nested at most MAX_DEPTH deep."""
    by_header = {body.header: body for body in bodies}
    callees = {body.header: {line.callee for line in body.lines} & by_header.keys() for body in bodies}
    sizes: dict[str, int] = {}
    depths: dict[str, int] = {}
    for header in TopologicalSorter(callees).static_order():
        sizes[header] = sum(max(1, sizes.get(line.callee, 1)) for line in by_header[header].lines)
        depths[header] = 1 + max((depths[callee] for callee in callees[header]), default=0)
    return sizes[bodies[0].header] <= MAX_LINES and depths[bodies[0].header] <= MAX_DEPTH


def _has_cell(graph: Body, functions: Mapping[str, Body]) -> bool:
    """Whether a block is called often and alike; the calls of all calls count."""
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
    """Writes bodies out, each value under a name of its own."""

    def __init__(self, functions: Mapping[str, Body]) -> None:
        self._functions, self._count = functions, 0
        self.lines: list[Line] = []

    def add(self, body: Body, given: Arguments, inputs: Sequence[str]) -> list[str]:
        """Add the lines of a body, given its attributes and the names of its inputs; return those of its outputs."""
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
