"""Parse canonical ONNX text into bodies of lines: the graph, then each function (block)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nasrlm.text.operators import Operator, OtherTextError, operator_of
from nasrlm.text.remembered import remembered

START = "<\n   ir_version: "

# All of these take linear time on any text, since a server reads texts from anybody.
_GRAPH = re.compile(r"network \((?P<inputs>[^()]*)\) => \((?P<outputs>[^()]*)\) \{")
_FUNCTION = re.compile(r"(?P<name>\S+) (?:<[^>]*>)?\((?P<inputs>[^()]*)\) => \((?P<outputs>[^()]*)\)")
_NODE = re.compile(r"   (?P<outputs>[^=]+) = (?P<op_type>\S+) (?:<(?P<attributes>.*)> )?\((?P<inputs>[^()]*)\)")
_PREAMBLE = re.compile(r"[<>]?|   ?(?:ir_version|opset_import|domain): .*")
_KIND = re.compile(r": (?:ints?|floats?|strings?|tensor) = ")
_EXECUTED = re.compile(r"E\d+")
_TYPED = re.compile(r"(?:^|(?<=, ))([^\s,\[]+\[[^\[\]]*\]) (\S+?)(?:, |$)")


class Line(NamedTuple):
    """A node: an operator with the names of the values that it produces and reads."""

    outputs: Sequence[str]
    operator: Operator
    inputs: Sequence[str]


class Body(NamedTuple):
    """The graph or a function; the header is ``network`` with the input types, or the function's name."""

    header: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    lines: Sequence[Line]


def is_executed(header: str) -> bool:
    """Return whether a header is that of an executed block."""
    return _EXECUTED.fullmatch(header) is not None


def read_bodies(text: str) -> Iterator[Body]:
    """Yield the graph, then each function.

    Raises:
        OtherTextError: the text is not in canonical form.
    """
    rows = iter(text.split("\n"))
    for row in rows:
        if match := _GRAPH.fullmatch(row):
            inputs, outputs = _typed(match["inputs"]), _typed(match["outputs"])
            header = " ".join(["network", *[kind for kind, _ in inputs]])
            yield Body(header, tuple(x for _, x in inputs), tuple(x for _, x in outputs), tuple(_lines(rows)))
        elif (match := _FUNCTION.fullmatch(row)) and next(rows, None) == "{":
            yield Body(match["name"], _names(match["inputs"]), _names(match["outputs"]), tuple(_lines(rows)))
        elif not _PREAMBLE.fullmatch(row):
            raise OtherTextError


def _typed(listed: str) -> list[tuple[str, str]]:
    """Parse a list of values into pairs of type and name."""
    found: list[tuple[str, str]] = _TYPED.findall(listed)
    if ", ".join(f"{kind} {x}" for kind, x in found) != listed:
        raise OtherTextError
    return found


def _lines(rows: Iterator[str]) -> Iterator[Line]:
    for row in rows:
        if row == "}":
            return
        yield _line(row)
    raise OtherTextError


@remembered  # many texts share rows: takes about 8 MB, saves two thirds of the time
def _line(row: str) -> Line:
    match = _NODE.fullmatch(row)
    if match is None:
        raise OtherTextError
    attributes = _KIND.sub("=", match["attributes"] or "").replace(", ", ",")
    return Line(_names(match["outputs"]), operator_of(f"{match['op_type']} {attributes}"), _names(match["inputs"]))


def _names(listed: str) -> tuple[str, ...]:
    return tuple(listed.split(", ")) if listed else ()
