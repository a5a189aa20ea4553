"""Count the rows of a canonical ONNX text; a row is an operator with its attributes and its place in the network.

The place is the factor by which the operator's output is smaller than the network's input, such as the 4 in
``Conv weight_shape=[…] /4``.

A block is counted at every call, with the arguments of the call, but it is not written out: the texts of a space share
most calls, and the counts of each call are cached.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

from nasrlm.text.bodies import Body, is_executed
from nasrlm.text.inlining import MAX_DEPTH, MAX_LINES
from nasrlm.text.network import AS_EXECUTED, read_canonical
from nasrlm.text.operator_graph import num_pixels
from nasrlm.text.operators import LARGEST, Arguments, OtherTextError
from nasrlm.text.remembered import remembered

WHOLE, OTHER = range(2)  # numbers of two extra rows: every text has the first once, a text that is no network both


class RowCounts(NamedTuple):
    """The rows of a text, and the size of its input.

    Attributes:
        by_row: number of occurrences, by number of the row.
        num_pixels: of the input image; 1 if there is none.
    """

    by_row: Mapping[int, float]
    num_pixels: float = 1.0


def row_counts(text: str) -> RowCounts:
    """Count the rows of a canonical ONNX text; other text has only ``WHOLE`` and ``OTHER``.

    The number of a row is a hash of its name, such as ``Conv weight_shape=[…] /4``. Rows of blocks as executed have no
    place, since it is not known. One more row stands for the types of the network's inputs and whether there are such
    blocks.

    Cost: a tenth to a quarter of a millisecond.
    """
    try:
        bodies = read_canonical(text)
        if not bodies:
            return _OF_OTHERS
        graph, *functions = bodies
        executed = [body for body in functions if is_executed(body.header)]
        block = _block_of(graph, {body.header: body for body in functions}, {})
        counts = _counted(block, (), (1.0,) * len(graph.inputs)).rows
    except OtherTextError:
        return _OF_OTHERS
    total = defaultdict[int, float](float, counts)
    for row, count in [x for body in executed for x in _counted_executed(body)]:
        total[row] += count
    kind = _number(f"{graph.header}{' executed' * bool(executed)}")
    return RowCounts(total | {WHOLE: 1, kind: 1}, num_pixels(graph.header))


_OF_OTHERS = RowCounts({WHOLE: 1, OTHER: 1})


@dataclass(frozen=True, eq=False)  # compared by identity, which is quicker than comparing lines
class _Block:
    """A body with the blocks that it calls.

    Raises:
        OtherTextError: blocks are nested too deep.
    """

    body: Body
    callees: Mapping[str, _Block]

    def __post_init__(self) -> None:
        if self.depth > MAX_DEPTH:
            raise OtherTextError

    @cached_property
    def depth(self) -> int:
        """Number of levels of nested blocks, including this one."""
        return 1 + max((callee.depth for callee in self.callees.values()), default=0)


_Items = tuple[tuple[int, float], ...]  # counts; immutable, since they are cached


class _Counted(NamedTuple):
    """Counts of a block for given arguments and sizes of its inputs.

    Attributes:
        rows: counts of rows.
        sizes: factors by which its outputs are smaller than the network's input.
        lines: number of lines that were processed; those of equal calls once.
    """

    rows: _Items
    sizes: tuple[float, ...]
    lines: int


def _block_of(body: Body, functions: Mapping[str, Body], known: dict[str, _Block], depth: int = 0) -> _Block:
    """Return a body of a text with the blocks that it calls; equal blocks of several texts are one object.

    ``known`` are the blocks of the text that were found before, and gets those that are found.

    Raises:
        OtherTextError: blocks call each other in a circle, or are nested too deep.
    """
    if depth > MAX_DEPTH:
        raise OtherTextError
    callees = sorted({line.operator.callee for line in body.lines} & functions.keys())
    for name in callees:
        if name not in known:
            known[name] = _block_of(functions[name], functions, known, depth + 1)
    called = tuple((name, known[name]) for name in callees)
    return _block(body, called) if depth else _Block(body, dict(called))  # texts do not share their graphs


@lru_cache(maxsize=1024)  # small, since a server reads texts from anybody, whose blocks may be long
def _block(body: Body, callees: tuple[tuple[str, _Block], ...]) -> _Block:
    return _Block(body, dict(callees))


def _counted(block: _Block, given: Arguments, sizes: Sequence[float]) -> _Counted:
    """Count the rows of a block, processing up to MAX_LINES lines.

    Without this limit, nested blocks that each call the next twice with different arguments would take hours.
    """
    body, counts = block.body, defaultdict[int, float](float)
    looked_at, calls = len(body.lines), set[tuple[object, ...]]()
    try:
        smaller = dict(zip(body.inputs, sizes, strict=True))
        for line in body.lines:
            operator = line.operator.with_values(given)
            before = [smaller[x] for x in line.inputs]
            if callee := block.callees.get(operator.callee):
                call = callee, operator.arguments, tuple(before)
                inner, after, lines = _counted_again(*call)
                looked_at += lines * (call not in calls)
                calls.add(call)
                if looked_at > MAX_LINES:
                    raise OtherTextError
                for row, count in inner:
                    counts[row] = min(counts[row] + count, LARGEST)
            else:
                size = operator.times_smaller(max(before, default=1.0))
                after = (size,) * len(line.outputs)
                counts[_number(f"{operator.spelled} /{size:g}")] += 1
            for x, size in zip(line.outputs, after, strict=True):
                if x in smaller:
                    raise OtherTextError
                smaller[x] = size
        return _Counted(tuple(counts.items()), tuple(smaller[x] for x in body.outputs), looked_at)
    except (KeyError, ValueError) as e:  # an undefined name, or more names than values
        raise OtherTextError from e


_counted_again = lru_cache(maxsize=4096)(_counted)


@lru_cache(maxsize=1024)
def _counted_executed(body: Body) -> _Items:
    return tuple(Counter(_number(f"{AS_EXECUTED}{line.operator.spelled}") for line in body.lines).items())


@partial(remembered, size=65_536)
def _number(name: str) -> int:
    return zlib.crc32(name.encode())
