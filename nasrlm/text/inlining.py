"""Inline blocks: write a network as one list of operators, with every call replaced by the block's lines and values.

A cell is a block that a network calls many times with few different arguments. Written once, it keeps texts of cell
spaces short, so networks with a cell are not inlined. Networks that are chains of different layers have blocks too,
where a few layers happen to occur twice. There a block would only be one more name to learn.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from nasrlm.text.bodies import Body
from nasrlm.text.operators import Arguments, Operator, OtherTextError

MIN_CALLS = 6  # calls of a cell; NAS-Bench-101 has nine, NAS-Bench-201 fifteen
MIN_CALLS_ALIKE = 1.75  # mean number of calls of a cell with the same arguments; 9 / 5 and 15 / 3 in these spaces
MAX_LINES = 4096  # of an inlined network
MAX_DEPTH = 64  # of nested blocks


@dataclass(frozen=True, eq=False)  # compared by identity, which is quicker than comparing operators
class NumberedBody:
    """A body whose values are numbers instead of names: 0, 1, … are what its operators produce, -1, -2, … its inputs.

    Attributes:
        header: that of the body.
        inputs: names of the inputs.
        operators: V operators, in an order in which each comes after those that it reads.
        makers: for each value 0, 1, …, the number of the operator that produces it.
        operands: for each operator, the values that it reads.
        outputs: the values that the body returns.
    """

    header: str
    inputs: Sequence[str]
    operators: Sequence[Operator]
    makers: Sequence[int]
    operands: Sequence[Sequence[int]]
    outputs: Sequence[int]


def inlined(bodies: Sequence[Body], *, cells: bool = False) -> NumberedBody | None:
    """Return the graph with every block written out where it is called.

    Args:
        bodies: the graph, then its blocks.
        cells: also write out networks with a cell.

    Returns:
        None if it would have more than ``MAX_LINES`` operators, or if it has a cell and ``cells`` is False.

    Raises:
        OtherTextError: blocks call each other in a circle, or a value or argument is missing.
    """
    functions = {body.header: body for body in bodies[1:]}
    try:
        if not _is_short(bodies) or (not cells and _has_cell(bodies[0], functions)):
            return None
        return _Writer(functions).write(bodies[0], ())
    except (KeyError, ValueError) as e:  # an undefined name, more names than values, or circular calls
        raise OtherTextError from e


def numbered(body: Body, operators: Sequence[Operator]) -> NumberedBody:
    """Return a body with its calls as they are, given its operators with values instead of parameters.

    Raises:
        OtherTextError: the body reads or returns a value that it does not produce, or produces one twice.
    """
    values = {x: ~number for number, x in enumerate(body.inputs)}
    makers: list[int] = []
    operands: list[Sequence[int]] = []
    try:
        for number, line in enumerate(body.lines):
            operands.append([values[x] for x in line.inputs])
            for x in line.outputs:
                if values.setdefault(x, len(makers)) != len(makers):
                    raise OtherTextError
                makers.append(number)
        outputs = [values[x] for x in body.outputs]
    except KeyError as e:
        raise OtherTextError from e
    return NumberedBody(body.header, body.inputs, operators, makers, operands, outputs)


def _is_short(bodies: Sequence[Body]) -> bool:
    """Return whether the inlined network has at most MAX_LINES, and blocks are nested at most MAX_DEPTH deep."""
    by_header = {body.header: body for body in bodies}
    callees = {body.header: {line.operator.callee for line in body.lines} & by_header.keys() for body in bodies}
    sizes: dict[str, int] = {}
    depths: dict[str, int] = {}
    for header in TopologicalSorter(callees).static_order():
        sizes[header] = sum(max(1, sizes.get(line.operator.callee, 1)) for line in by_header[header].lines)
        depths[header] = 1 + max((depths[callee] for callee in callees[header]), default=0)
    return sizes[bodies[0].header] <= MAX_LINES and depths[bodies[0].header] <= MAX_DEPTH


def _has_cell(graph: Body, functions: Mapping[str, Body]) -> bool:
    """Return whether a block is called often, mostly with the same arguments; nested calls count too."""
    calls: dict[str, Counter[Arguments]] = defaultdict(Counter)
    waiting: list[tuple[Body, Arguments]] = [(graph, ())]
    while waiting:
        body, given = waiting.pop()
        for line in body.lines:
            if (callee := line.operator.callee) in functions:
                arguments = line.operator.with_values(given).arguments
                calls[callee][arguments] += 1
                waiting.append((functions[callee], arguments))
    return any(alike.total() >= MIN_CALLS and alike.total() >= MIN_CALLS_ALIKE * len(alike) for alike in calls.values())


class _Writer:
    """Writes out blocks, each once for the same arguments."""

    def __init__(self, functions: Mapping[str, Body]) -> None:
        self._functions = functions
        self._blocks: dict[tuple[str, Arguments], NumberedBody] = {}

    def write(self, body: Body, given: Arguments) -> NumberedBody:
        """Write out the blocks of a body, given its arguments."""
        values = {x: ~number for number, x in enumerate(body.inputs)}
        operators: list[Operator] = []
        makers: list[int] = []
        operands: list[Sequence[int]] = []
        for line in body.lines:
            operator = line.operator.with_values(given)
            read, number, value = [values[x] for x in line.inputs], len(operators), len(makers)
            if (callee := operator.callee) in self._functions:
                block = self._block(callee, operator.arguments, len(read))
                operators += block.operators
                makers += [number + maker for maker in block.makers]
                operands += [[value + x if x >= 0 else read[~x] for x in inner] for inner in block.operands]
                outputs = [value + x if x >= 0 else read[~x] for x in block.outputs]
            else:
                operators.append(operator)
                makers += [number] * len(line.outputs)
                operands.append(read)
                outputs = list(range(value, len(makers)))
            for x, output in zip(line.outputs, outputs, strict=True):
                if values.setdefault(x, output) != output:
                    raise OtherTextError
        outputs = [values[x] for x in body.outputs]
        return NumberedBody(body.header, body.inputs, operators, makers, operands, outputs)

    def _block(self, name: str, given: Arguments, num_inputs: int) -> NumberedBody:
        """Return a block with its blocks written out."""
        body = self._functions[name]
        if len(body.inputs) != num_inputs:
            raise OtherTextError
        if (name, given) not in self._blocks:
            self._blocks[name, given] = self.write(body, given)
        return self._blocks[name, given]
