"""How the encoder sees an ONNX text: the same network, written so that a small model learns it quickly.

Canonical text names every value and refers to it by name. Here a body is written as its operators in postfix
order instead: operands stand right before the operator that reads them, and a value that is read twice is written
out twice as long as the body is short; blocks as executed (E0, E1, …), where every operator costs its time once,
write each value once. Bodies of blocks are written as they are called first. Runs of equal lines are counted and the
preamble is left out. Other text, ONNX that is not canonical included, passes unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby
from typing import NamedTuple

MAX_TREE_LINES = 64  # a body of more has its shared values written once and referred to by name
MAX_REPEATED_LINES = 2  # of a value that is written out again even there

_START = "<\n   ir_version: "
_GRAPH = re.compile(r"network \((?P<inputs>.*)\) => \((?P<outputs>.*)\) \{")
_FUNCTION = re.compile(r"(?P<name>\S+) (?:<[^>]*>)?\((?P<inputs>.*)\) => \((?P<outputs>.*)\)")
_NODE = re.compile(r"   (?P<outputs>[^=]+) = (?P<op_type>\S+) (?:<(?P<attributes>.*)> )?\((?P<inputs>.*)\)")
_PREAMBLE = re.compile(r"[<>]?|   ?(?:ir_version|opset_import|domain): .*")
_KIND = re.compile(r": (?:ints?|floats?|strings?|tensor) = ")
_REFERENCE = re.compile(r"@a\d+")
_ARGUMENT = re.compile(r"(a\d+)=(\[[^\]]*\]|[^,]+)")
_EXECUTED = re.compile(r"E\d+")
_TYPED = re.compile(r"([^\s,]+\[[^\]]*\]) (\S+?)(?:, |$)")


_Arguments = tuple[tuple[str, str], ...]  # of a call: parameter and value


class _OtherTextError(ValueError):
    """Text that is not in canonical form."""


class _Body(NamedTuple):
    header: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    lines: Sequence[_Line]


class _Line(NamedTuple):
    outputs: Sequence[str]
    op_type: str
    attributes: str
    inputs: Sequence[str]

    @property
    def operator(self) -> str:
        return f"{self.op_type} {self.attributes}".rstrip()


def present(text: str) -> str:
    """Canonical ONNX text in postfix form; any other text as it is. Cost: about 0.2 ms."""
    if not text.startswith(_START):
        return text
    lines: list[str] = []
    calls: dict[str, _Arguments] = {}
    try:
        for body in _bodies(text):
            rows, first_calls = _presented(body, calls.get(body.header, ()))
            lines += rows
            for name, arguments in first_calls:
                calls.setdefault(name, arguments)
    except _OtherTextError:
        return text
    return "\n".join(lines) + "\n" if lines else text


@lru_cache(maxsize=1024)  # a space's texts share most bodies
def _presented(body: _Body, given: _Arguments) -> tuple[Sequence[str], Sequence[tuple[str, _Arguments]]]:
    """The rows of a body whose block is first called so, and the arguments of its own calls."""
    calls: list[tuple[str, _Arguments]] = []
    rows = _counted(_postfix(_with_values(body, given, calls)))
    return (body.header, *rows), calls


def _with_values(body: _Body, given: _Arguments, calls: list[tuple[str, _Arguments]]) -> _Body:
    """A body as its block is called first, and values alone in its own calls, which are added to ``calls``.

    Values that the first call gives to several parameters stay parameters: which is which could not be told.
    """
    count = Counter(value for _, value in given)
    values = {f"@{name}": value for name, value in given if count[value] == 1}
    lines: list[_Line] = []
    for line in body.lines:
        is_call = line.op_type.startswith("block.")
        if not is_call and "@" not in line.attributes:
            lines.append(line)
            continue
        attributes = _REFERENCE.sub(lambda match: values.get(match[0], match[0]), line.attributes)
        if is_call:
            arguments = dict(_ARGUMENT.findall(attributes))
            if ",".join(f"{name}={value}" for name, value in arguments.items()) != attributes:
                raise _OtherTextError
            calls.append((line.op_type.removeprefix("block."), tuple(arguments.items())))
            attributes = ",".join(arguments.values())
        lines.append(line._replace(attributes=attributes))
    return body._replace(lines=lines)


def _counted(rows: Sequence[str]) -> Iterator[str]:
    """Runs of equal rows as one row with their number."""
    for row, run in groupby(rows):
        count = len(list(run))
        yield f"{count} x {row}" if count > 1 else row


def _bodies(text: str) -> Iterator[_Body]:
    """The graph, then each function."""
    rows = iter(text.split("\n"))
    for row in rows:
        if match := _GRAPH.fullmatch(row):
            inputs, outputs = _TYPED.findall(match["inputs"]), _TYPED.findall(match["outputs"])
            header = " ".join(["network", *[kind for kind, _ in inputs]])
            yield _Body(header, tuple(x for _, x in inputs), tuple(x for _, x in outputs), tuple(_lines(rows)))
        elif (match := _FUNCTION.fullmatch(row)) and next(rows, None) == "{":
            yield _Body(match["name"], _names(match["inputs"]), _names(match["outputs"]), tuple(_lines(rows)))
        elif not _PREAMBLE.fullmatch(row):
            raise _OtherTextError


def _lines(rows: Iterator[str]) -> Iterator[_Line]:
    for row in rows:
        if row == "}":
            return
        yield _line(row)
    raise _OtherTextError


@lru_cache(maxsize=16_384)  # the same rows come in many texts: about 8 MB, a third of the time
def _line(row: str) -> _Line:
    match = _NODE.fullmatch(row)
    if match is None:
        raise _OtherTextError
    attributes = _KIND.sub("=", match["attributes"] or "").replace(", ", ",")
    return _Line(_names(match["outputs"]), match["op_type"], attributes, _names(match["inputs"]))


def _names(listed: str) -> tuple[str, ...]:
    return tuple(listed.split(", ")) if listed else ()


def _postfix(body: _Body) -> list[str]:
    """Rows of a body. Its only input goes unnamed where it is read once; operators of many operands say how many."""
    length = _tree_lengths(body)
    maker = {x: (number, index) for number, line in enumerate(body.lines) for index, x in enumerate(line.outputs)}
    reads = Counter(x for line in body.lines for x in line.inputs)
    uses = Counter(maker[x][0] for x in chain(body.outputs, *[line.inputs for line in body.lines]) if x in maker)
    whole_tree = sum(length[x] for x in body.outputs) <= MAX_TREE_LINES and not _EXECUTED.fullmatch(body.header)
    names: dict[int, int] = {}
    rows: list[str] = []
    stack: list[tuple[bool, str]] = [(False, x) for x in reversed(body.outputs)]  # (is a finished row, text)
    while stack:
        finished, x = stack.pop()
        if finished:
            rows.append(x)
            continue
        if x in body.inputs:
            if len(body.inputs) > 1 or reads[x] > 1:
                rows.append(x)
            continue
        number, index = maker[x]
        if index > 0:
            stack.append((True, f"output {index}"))
        if number in names:
            stack.append((True, f"again {names[number]}"))
            continue
        line = body.lines[number]
        if uses[number] > 1 and length[x] > MAX_REPEATED_LINES and not whole_tree:
            names[number] = len(names)
            stack.append((True, f"as {names[number]}"))
        count = f" {len(line.inputs)}" if len(line.inputs) > 1 else ""
        stack.append((True, line.operator + count))
        stack += [(False, operand) for operand in reversed(line.inputs)]
    return rows


def _tree_lengths(body: _Body) -> dict[str, int]:
    """Rows of every value if nothing were shared; a body must make what it reads and returns, each value once."""
    length = dict.fromkeys(body.inputs, 1)
    for line in body.lines:
        if not length.keys() >= set(line.inputs) or not length.keys().isdisjoint(line.outputs):
            raise _OtherTextError
        length.update(dict.fromkeys(line.outputs, 1 + sum(length[x] for x in line.inputs)))
    if not length.keys() >= set(body.outputs):
        raise _OtherTextError
    return length
