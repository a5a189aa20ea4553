"""Parse canonical ONNX text into bodies of lines: the graph, then each function (block)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nasrlm.text.remembered import remembered

START = "<\n   ir_version: "
CALL = "block."

# All of these take linear time on any text, since a server reads texts from anybody.
_GRAPH = re.compile(r"network \((?P<inputs>[^()]*)\) => \((?P<outputs>[^()]*)\) \{")
_FUNCTION = re.compile(r"(?P<name>\S+) (?:<[^>]*>)?\((?P<inputs>[^()]*)\) => \((?P<outputs>[^()]*)\)")
_NODE = re.compile(r"   (?P<outputs>[^=]+) = (?P<op_type>\S+) (?:<(?P<attributes>.*)> )?\((?P<inputs>[^()]*)\)")
_PREAMBLE = re.compile(r"[<>]?|   ?(?:ir_version|opset_import|domain): .*")
_KIND = re.compile(r": (?:ints?|floats?|strings?|tensor) = ")
_REFERENCE = re.compile(r"@(a\d+)")
_ARGUMENT = re.compile(r"(a\d+)=(\[[^\[\]]*\]|[^,]+)")
_TYPED = re.compile(r"(?:^|(?<=, ))([^\s,\[]+\[[^\[\]]*\]) (\S+?)(?:, |$)")

Arguments = tuple[tuple[str, str], ...]  # pairs of parameter and value of a call


class OtherTextError(ValueError):
    """Text that is not in canonical form."""


class Line(NamedTuple):
    """A node; ``attributes`` have the form ``name=value,…``, in functions with references ``@a0`` to parameters."""

    outputs: Sequence[str]
    op_type: str
    attributes: str
    inputs: Sequence[str]

    @property
    def operator(self) -> str:
        """Its operator type and attributes."""
        return f"{self.op_type} {self.attributes}".rstrip()

    @property
    def callee(self) -> str:
        """The name of the block it calls; "" if it is no call."""
        return self.op_type.removeprefix(CALL) if self.op_type.startswith(CALL) else ""

    def arguments(self) -> Arguments:
        """Read the arguments of a call from its attributes.

        Raises:
            OtherTextError: they have another form.
        """
        return _arguments(self.attributes)

    def with_values(self, given: Arguments) -> Line:
        """Replace references to these parameters by their values; other references stay."""
        if "@" not in self.attributes:
            return self
        return Line(self.outputs, self.op_type, _with_values(self.attributes, given), self.inputs)


class Body(NamedTuple):
    """The graph or a function; the header is ``network`` with the input types, or the function's name."""

    header: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    lines: Sequence[Line]


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
    return Line(_names(match["outputs"]), match["op_type"], attributes, _names(match["inputs"]))


@remembered
def _arguments(attributes: str) -> Arguments:
    arguments = dict(_ARGUMENT.findall(attributes))
    if ",".join(f"{name}={value}" for name, value in arguments.items()) != attributes:
        raise OtherTextError
    return tuple(arguments.items())


@remembered
def _with_values(attributes: str, given: Arguments) -> str:
    values = dict(given)
    return _REFERENCE.sub(lambda match: values.get(match[1], match[0]), attributes)


def _names(listed: str) -> tuple[str, ...]:
    return tuple(listed.split(", ")) if listed else ()
