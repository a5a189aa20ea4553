"""Canonical ONNX text as bodies of lines: the graph, then each function."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nasrlm.text.remembered import remembered

START = "<\n   ir_version: "
CALL = "block."

# None of these takes longer than a text's length times a constant, whatever the text: a server reads anybody's.
_GRAPH = re.compile(r"network \((?P<inputs>[^()]*)\) => \((?P<outputs>[^()]*)\) \{")
_FUNCTION = re.compile(r"(?P<name>\S+) (?:<[^>]*>)?\((?P<inputs>[^()]*)\) => \((?P<outputs>[^()]*)\)")
_NODE = re.compile(r"   (?P<outputs>[^=]+) = (?P<op_type>\S+) (?:<(?P<attributes>.*)> )?\((?P<inputs>[^()]*)\)")
_PREAMBLE = re.compile(r"[<>]?|   ?(?:ir_version|opset_import|domain): .*")
_KIND = re.compile(r": (?:ints?|floats?|strings?|tensor) = ")
_REFERENCE = re.compile(r"@(a\d+)")
_ARGUMENT = re.compile(r"(a\d+)=(\[[^\[\]]*\]|[^,]+)")
_TYPED = re.compile(r"(?:^|(?<=, ))([^\s,\[]+\[[^\[\]]*\]) (\S+?)(?:, |$)")

Arguments = tuple[tuple[str, str], ...]  # of a call: parameter and value


class OtherTextError(ValueError):
    """Text that is not in canonical form."""


class Line(NamedTuple):
    """A node; ``attributes`` are spelled ``name=value,…``, in functions with references ``@a0`` to their parameters."""

    outputs: Sequence[str]
    op_type: str
    attributes: str
    inputs: Sequence[str]

    @property
    def operator(self) -> str:
        """What it computes, as one word and its attributes."""
        return f"{self.op_type} {self.attributes}".rstrip()

    @property
    def callee(self) -> str:
        """The block it calls; "" if it is none."""
        return self.op_type.removeprefix(CALL) if self.op_type.startswith(CALL) else ""

    def arguments(self) -> Arguments:
        """Arguments of a call, read from its attributes.

        Raises:
            OtherTextError: they are spelled otherwise.
        """
        return _arguments(self.attributes)

    def with_values(self, given: Arguments) -> Line:
        """The same with values for references to these parameters; another reference stays."""
        if "@" not in self.attributes:
            return self
        return Line(self.outputs, self.op_type, _with_values(self.attributes, given), self.inputs)


class Body(NamedTuple):
    """The graph, whose header is ``network`` and the types of its inputs, or a function under its name."""

    header: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    lines: Sequence[Line]


def read_bodies(text: str) -> Iterator[Body]:
    """The graph, then each function.

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
    """Values with their types before them."""
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


@remembered  # the same rows come in many texts: about 8 MB, a third of the time
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
