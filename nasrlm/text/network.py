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

from nasrlm.text.bodies import START, Arguments, Body, Line, OtherTextError, read_bodies
from nasrlm.text.inlining import inlined

AS_EXECUTED = "executed "  # prefix of the names of operators in executed blocks, which are counted separately
_EXECUTED = re.compile(r"E\d+")
_FIRST_EXECUTED = "\nE0 "  # start of the first executed block in a text
_LINE_ENDS = re.compile(r"[ \t\r]+$", re.MULTILINE)


@dataclass(frozen=True, eq=False)  # compared by identity, which is quicker than comparing lines
class CalledBody:
    """A body whose parameters are replaced by the attributes of its first call.

    Attributes:
        body: the body after the replacement; its own calls have values of arguments without names of parameters.
        calls: the blocks that it calls, with their arguments.
    """

    body: Body
    calls: Sequence[tuple[str, Arguments]] = ()

    @property
    def is_executed(self) -> bool:
        """Whether it is an executed block, in which every operator takes time."""
        return is_executed(self.body)


class Network(NamedTuple):
    """The bodies of a network, the graph first; the only one if every block is written out (``is_flat``)."""

    bodies: Sequence[CalledBody]
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
        if not any(map(is_executed, bodies)) and (flat := inlined(bodies)):
            return Network([CalledBody(flat)], is_flat=True)
        return Network(_as_called(bodies), is_flat=False)
    except OtherTextError:
        return None


def read_written_out(text: str) -> Sequence[CalledBody]:
    """Read the network of a text as one body, followed by its executed blocks; empty if it is not canonical ONNX.

    If this body would be too long, blocks are not written out: each occurs once, as from ``read_network``.
    """
    try:
        bodies = read_canonical(text)
        flat = inlined(bodies, cells=True) if bodies else None
        if flat is None:
            return _as_called(bodies)
        return [CalledBody(flat), *(_called(body, ()) for body in bodies if is_executed(body))]
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


def is_executed(body: Body) -> bool:
    """Return whether a body is an executed block."""
    return _EXECUTED.fullmatch(body.header) is not None


def _as_called(bodies: Sequence[Body]) -> list[CalledBody]:
    arguments_of: dict[str, Arguments] = {}
    found: list[CalledBody] = []
    for body in bodies:
        found.append(_called(body, arguments_of.get(body.header, ())))
        for name, arguments in found[-1].calls:
            arguments_of.setdefault(name, arguments)
    return found


@lru_cache(maxsize=1024)  # a space's texts share most bodies
def _called(body: Body, given: Arguments) -> CalledBody:
    """Replace the parameters of a body by the arguments of its first call.

    A parameter stays if the call gives the same value to another one, so that the result shows which of them it is.
    """
    count = Counter(value for _, value in given)
    given = tuple((name, value) for name, value in given if count[value] == 1)
    calls: list[tuple[str, Arguments]] = []
    lines: list[Line] = []
    for line in body.lines:
        line = line.with_values(given)
        if line.callee:
            arguments = line.arguments()
            calls.append((line.callee, arguments))
            line = line._replace(attributes=",".join(value for _, value in arguments))
        lines.append(line)
    return CalledBody(body._replace(lines=tuple(lines)), calls)
