"""The network of a canonical ONNX text, in the two forms that are read of it.

- ``read_network`` is for the encoder: of a network with a cell the graph and each block once, with the attributes of
  its first call; of any other a single body, every block written out where it is called (``nasrlm.text.inlining``).
- ``read_written_out`` is for counts (``nasrlm.text.counts``): always written out.

The text of a network as it was measured ends with blocks E0, E1, …: its cells with all operations that were executed,
also those without effect, which canonical text leaves out.
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

AS_EXECUTED = "executed "  # before the names of operators in blocks as measured, which count apart
_EXECUTED = re.compile(r"E\d+")
_LINE_ENDS = re.compile(r"[ \t\r]+$", re.MULTILINE)


@dataclass(frozen=True, eq=False)  # told apart by identity, which is quicker than to compare lines
class CalledBody:
    """A body in which the attributes that its first call gives stand in place of the parameters.

    Attributes:
        body: so written; its own calls spell the values of their arguments without the parameters' names.
        calls: blocks that it calls, with their arguments.
    """

    body: Body
    calls: Sequence[tuple[str, Arguments]] = ()

    @property
    def is_executed(self) -> bool:
        """Whether it is a block as it was measured, where every operator costs its time."""
        return is_executed(self.body)


class Network(NamedTuple):
    """Bodies, the graph first; where ``has_cell`` is false there is no other."""

    bodies: Sequence[CalledBody]
    has_cell: bool


def read_network(text: str) -> Network | None:
    """The network of a text; None where that is not canonical ONNX.

    What editors and networks add to lines is no matter: a byte order mark, carriage returns, spaces at the end.
    """
    try:
        bodies = read_canonical(text)
        if not bodies:
            return None
        if not any(map(is_executed, bodies)) and (flat := inlined(bodies)):
            return Network([CalledBody(flat)], has_cell=False)
        return Network(_as_called(bodies), has_cell=True)
    except OtherTextError:
        return None


def read_written_out(text: str) -> Sequence[CalledBody]:
    """The network of a text as one body, then its blocks as executed; empty where it is not canonical ONNX.

    If it would be too long, its blocks are not written out: each stands once, as ``read_network`` gives it.
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
    """The bodies of a text; none where it does not begin as canonical ONNX.

    Raises:
        OtherTextError: it goes on otherwise.
    """
    canonical = (_LINE_ENDS.sub("", text) if "\r" in text or " \n" in text else text).lstrip("\ufeff \n")
    return list(read_bodies(canonical)) if canonical.startswith(START) else []


def up_to_executed(text: str) -> str:
    """What all spellings of a network have in common of its canonical text: all but the blocks as measured."""
    return text.partition("\nE0 ")[0]


def has_executed_blocks(text: str) -> bool:
    """Return whether a text is a measured one, which ends with executed blocks."""
    return "\nE0 " in text


def is_executed(body: Body) -> bool:
    """Whether it is a block as it was measured."""
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
    """Put the attributes that a body's first call gives in place of its parameters.

    A value that the call gives to several parameters is not put there: it could not be told which of them it is.
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
