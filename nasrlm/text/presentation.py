"""Rewrite an ONNX text for the encoder: the same network in a form that a small model learns quickly.

Canonical text names every value and refers to it by name. Here the operators of a body are in postfix order instead:
operands stand right before the operator that reads them. There are two forms of networks:

- With blocks: the graph, then every block with the arguments of its first call. In a short body, a value that is read
  twice is written out twice. In blocks as executed (E0, E1, …), where every operator takes its time once, each value is
  written once.
- Flat: one list of all operators, each value written once.

``nasrlm.text.network`` decides which of them a network gets.

Runs of equal lines are replaced by one line with their number, and the preamble is left out. Other text, including
ONNX that is not canonical, is not changed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby

from nasrlm.text.bodies import is_executed
from nasrlm.text.inlining import NumberedBody
from nasrlm.text.network import Network, read_network

MAX_TREE_LINES = 64  # in a body with more, shared values are written once and then referred to by number
MAX_REPEATED_LINES = 2  # shared values of up to so many lines are written out again even there


def present(text: str) -> str:
    """Return canonical ONNX text in postfix form, other text unchanged. Cost: about 0.1 ms, 1 ms if flat."""
    network = read_network(text)
    return "\n".join(_presented_network(network)) + "\n" if network else text


def _presented_network(network: Network) -> list[str]:
    if network.is_flat:
        flat = network.bodies[0]
        return [flat.header, *_counted(_by_distance(_postfix(flat, once=True)))]
    return [row for body in network.bodies for row in _presented(body)]


@lru_cache(maxsize=1024)  # a space's texts share most bodies
def _presented(body: NumberedBody) -> Sequence[str]:
    """Return the lines of a body."""
    return (body.header, *_counted(_postfix(body, once=is_executed(body.header))))


def _by_distance(rows: Sequence[str]) -> Iterator[str]:
    """Refer to a repeated value by the number of values named since, so that equal layers have equal lines."""
    named: dict[str, int] = {}
    for row in rows:
        word, _, name = row.partition(" ")
        if word == "as":
            named[name] = len(named)
            yield word
        elif word == "again":
            yield f"{word} {len(named) - 1 - named[name]}"
        else:
            yield row


def _counted(rows: Iterable[str]) -> Iterator[str]:
    """Yield each run of equal lines as one line with their number."""
    for row, run in groupby(rows):
        count = len(list(run))
        yield f"{count} x {row}" if count > 1 else row


def _postfix(body: NumberedBody, *, once: bool) -> list[str]:
    """Return the lines of a body, with each value written ``once`` or, if that is short, wherever it is read.

    A single input that is read once is left out; an operator with several operands is followed by their number.
    """
    makers, length = body.makers, _tree_lengths(body)
    read = [x for operands in body.operands for x in operands]
    times_read = Counter(x for x in read if x < 0)
    uses = Counter([makers[x] for x in chain(body.outputs, read) if x >= 0])
    whole_tree = not once and sum(length[makers[x]] if x >= 0 else 1 for x in body.outputs) <= MAX_TREE_LINES
    names: dict[int, int] = {}
    rows: list[str] = []
    stack: list[str | int] = [*reversed(body.outputs)]  # finished rows, and values
    while stack:
        x = stack.pop()
        if isinstance(x, str):
            rows.append(x)
            continue
        if x < 0:
            if len(body.inputs) > 1 or times_read[x] > 1:
                rows.append(body.inputs[~x])
            continue
        number = makers[x]
        if index := x - bisect_left(makers, number):
            stack.append(f"output {index}")
        if number in names:
            stack.append(f"again {names[number]}")
            continue
        operands = body.operands[number]
        if uses[number] > 1 and length[number] > MAX_REPEATED_LINES and not whole_tree:
            names[number] = len(names)
            stack.append(f"as {names[number]}")
        count = f" {len(operands)}" if len(operands) > 1 else ""
        stack.append(body.operators[number].spelled + count)
        stack += reversed(operands)
    return rows


def _tree_lengths(body: NumberedBody) -> list[int]:
    """Return the number of lines of every operator if nothing were shared."""
    length: list[int] = []
    for operands in body.operands:
        length.append(1 + sum([length[body.makers[x]] if x >= 0 else 1 for x in operands]))
    return length
