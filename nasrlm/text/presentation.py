"""How the encoder sees an ONNX text: the same network, written so that a small model learns it quickly.

Canonical text names every value and refers to it by name. Here a body is written as its operators in postfix
order instead: operands stand right before the operator that reads them. Two kinds of networks are written apart:

- With a cell, a block that is called again and again as it stands: the graph and every block, each as it is called
  first. A value that is read twice is written out twice as long as the body is short. Blocks as executed (E0, E1, …),
  where every operator costs its time once, write each value once.
- Without a cell: one list of all operators, each value once.

Runs of equal lines are counted and the preamble is left out. Other text, ONNX that is not canonical included, passes
unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby

from nasrlm.text.bodies import Body, OtherTextError
from nasrlm.text.network import CalledBody, Network, read_network

MAX_TREE_LINES = 64  # a body of more has its shared values written once and referred to by name
MAX_REPEATED_LINES = 2  # of a value that is written out again even there


def present(text: str) -> str:
    """Canonical ONNX text in postfix form; any other text as it is. Cost: about 0.2 ms, 1 ms without a cell."""
    network = read_network(text)
    try:
        lines = _presented_network(network) if network else []
    except OtherTextError:
        return text
    return "\n".join(lines) + "\n" if lines else text


def _presented_network(network: Network) -> list[str]:
    if network.has_cell:
        return [row for called in network.bodies for row in _presented(called)]
    flat = network.bodies[0].body
    return [flat.header, *_counted(_by_distance(_postfix(flat, once=True)))]


@lru_cache(maxsize=1024)  # a space's texts share most bodies
def _presented(called: CalledBody) -> Sequence[str]:
    """The rows of a body."""
    return (called.body.header, *_counted(_postfix(called.body, once=called.is_executed)))


def _by_distance(rows: Sequence[str]) -> Iterator[str]:
    """Values that are read again are told by how many were named since, so that equal layers are equal rows."""
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
    """Runs of equal rows as one row with their number."""
    for row, run in groupby(rows):
        count = len(list(run))
        yield f"{count} x {row}" if count > 1 else row


def _postfix(body: Body, *, once: bool) -> list[str]:
    """Rows of a body, each value ``once`` or, if that is short, wherever it is read.

    Its only input goes unnamed where it is read once; operators of many operands say how many.
    """
    length = _tree_lengths(body)
    maker = {x: (number, index) for number, line in enumerate(body.lines) for index, x in enumerate(line.outputs)}
    reads = Counter(x for line in body.lines for x in line.inputs)
    uses = Counter(maker[x][0] for x in chain(body.outputs, *[line.inputs for line in body.lines]) if x in maker)
    whole_tree = sum(length[x] for x in body.outputs) <= MAX_TREE_LINES and not once
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


def _tree_lengths(body: Body) -> dict[str, int]:
    """Rows of every value if nothing were shared; a body must make what it reads and returns, each value once."""
    length = dict.fromkeys(body.inputs, 1)
    try:
        for line in body.lines:
            total = 1
            for x in line.inputs:
                total += length[x]
            for x in line.outputs:
                if x in length:
                    raise OtherTextError
                length[x] = total
        if not length.keys() >= set(body.outputs):
            raise OtherTextError
    except KeyError as e:
        raise OtherTextError from e
    return length
