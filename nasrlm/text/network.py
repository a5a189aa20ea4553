"""Read the network of a canonical ONNX text, in one of two forms.

- ``read_network``, for the encoder. A network with a cell (a block that is called many times) is read as the graph and
  each of its blocks once, with the attributes of its first call, and so is one with executed blocks. Any other network
  is flat: a single body, in which every block is written out where it is called (``nasrlm.text.inlining``).
- ``read_written_out``, for counts (``nasrlm.text.counts``). Blocks are always written out.

Measured text ends with the executed blocks E0, E1, …: the cells with all operations that were executed, including those
without effect on the output, which canonical text leaves out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from nasrlm.text.bodies import START, Body, is_executed, read_bodies
from nasrlm.text.inlining import NumberedBody, inlined, numbered
from nasrlm.text.operator_graph import BodyGraph
from nasrlm.text.operators import Arguments, Operator, OtherTextError, operator_of

AS_EXECUTED = "executed "  # prefix of the names of operators in executed blocks, which are counted separately
_FIRST_EXECUTED = "\nE0 "  # start of the first executed block in a text
_LINE_ENDS = re.compile(r"[ \t\r]+$", re.MULTILINE)


@dataclass(frozen=True, eq=False)  # compared by identity, which is quicker than comparing lines
class _CalledBody:
    """A body whose parameters are replaced by the attributes of its first call.

    Attributes:
        written: the body after the replacement; its own calls have values of arguments without names of parameters.
        calls: the blocks that it calls, with their arguments.
    """

    written: NumberedBody
    calls: Sequence[tuple[str, Arguments]]


class Network(NamedTuple):
    """The bodies of a network, the graph first; the only one if every block is written out (``is_flat``)."""

    bodies: Sequence[NumberedBody]
    is_flat: bool


def read_network(text: str) -> Network | None:
    """Read the network of a text; None if the text is not canonical ONNX.

    Blocks are kept if the network has a cell or executed blocks, or if it would be too long with every block written
    out. What editors and file transfers add is ignored: a byte order mark, carriage returns, and blanks at the ends of
    lines.
    """
    try:
        bodies = read_canonical(text)
        if not bodies:
            return None
        if not any(is_executed(body.header) for body in bodies) and (flat := inlined(bodies)):
            return Network([flat], is_flat=True)
        return Network(_as_called(bodies), is_flat=False)
    except OtherTextError:
        return None


def read_written_out(text: str) -> Sequence[BodyGraph]:
    """Read the network of a text as one graph, followed by its executed blocks; empty if it is not canonical ONNX.

    If this graph would be too long, blocks are not written out: each occurs once, as from ``read_network``.
    """
    try:
        bodies = read_canonical(text)
        network = inlined(bodies, cells=True) if bodies else None
        if network is None:
            return [BodyGraph.of(body) for body in _as_called(bodies)]
        executed = [_executed_graph(body) for body in bodies if is_executed(body.header)]
        return [BodyGraph.of(network), *executed]
    except OtherTextError:
        return []


def read_canonical(text: str) -> list[Body]:
    """Read the bodies of a text; none if it does not begin like canonical ONNX.

    Raises:
        OtherTextError: it begins like canonical ONNX, but continues in another form.
    """
    has_blanks = "\r" in text or " \n" in text or "\t\n" in text or text.endswith((" ", "\t"))  # quickly seen
    canonical = (_LINE_ENDS.sub("", text) if has_blanks else text).lstrip("\ufeff \n")
    return list(read_bodies(canonical)) if canonical.startswith(START) else []


def up_to_executed(text: str) -> str:
    """Return a text without executed blocks: the part that is the same for all spellings of a network."""
    return text.partition(_FIRST_EXECUTED)[0]


def has_executed_blocks(text: str) -> bool:
    """Return whether a text is a measured one, which ends with executed blocks."""
    return _FIRST_EXECUTED in text


@lru_cache(maxsize=1024)  # a space's texts share most executed blocks
def _executed_graph(body: Body) -> BodyGraph:
    return BodyGraph.of(_called(body, ()).written)


def _as_called(bodies: Sequence[Body]) -> list[NumberedBody]:
    arguments_of: dict[str, Arguments] = {}
    found: list[NumberedBody] = []
    for body in bodies:
        called = _called(body, arguments_of.get(body.header, ()))
        for name, arguments in called.calls:
            arguments_of.setdefault(name, arguments)
        found.append(called.written)
    return found


@lru_cache(maxsize=1024)  # a space's texts share most bodies
def _called(body: Body, given: Arguments) -> _CalledBody:
    """Replace the parameters of a body by the arguments of its first call.

    A parameter stays if the call gives the same value to another one, so that the result shows which of them it is.
    """
    count = Counter(value for _, value in given)
    given = tuple((name, value) for name, value in given if count[value] == 1)
    calls: list[tuple[str, Arguments]] = []
    operators: list[Operator] = []
    for line in body.lines:
        operator = line.operator.with_values(given)
        if operator.callee:
            calls.append((operator.callee, operator.arguments))
            operator = operator_of(f"{operator.op_type} {','.join(value for _, value in operator.arguments)}")
        operators.append(operator)
    return _CalledBody(numbered(body, operators), calls)
