"""Cuts a network into segments at borders that few values cross."""

from __future__ import annotations

from collections.abc import Sequence

from converters.graph import Node


def split_at_borders(
    nodes: Sequence[Node], inputs: Sequence[str], outputs: Sequence[str], max_crossing: int = 1
) -> list[tuple[Node, ...]]:
    """Cut a topological order wherever at most ``max_crossing`` values made before the cut are read after it.

    Constants could be made anywhere, so they are moved to just before the first node that reads them, with no cut in
    between. If a constant is read again later, it crosses the cuts in between like any other value. With
    ``max_crossing=1`` the cuts are the same for every topological order of a graph without dead nodes; the order of
    the nodes between cuts may differ.

    Returns:
        Consecutive segments that together hold all nodes.
    """
    constants = constant_values(nodes, inputs)
    nodes = _late(nodes, constants)  # a network that ignores its input is one segment
    last_read = last_readers(nodes, outputs)
    ends = [0] * (len(nodes) + 1)  # for each position, the number of crossing values whose last reader is there
    crossing = 0
    for x in inputs:
        if x in last_read:
            crossing += 1
            ends[last_read[x]] += 1
    segments: list[tuple[Node, ...]] = []
    start = 0
    for position, node in enumerate(nodes):
        crossing -= ends[position]
        made = node.outputs
        for x in made:
            if x in last_read:
                crossing += 1
                ends[last_read[x]] += 1
        if crossing <= max_crossing and made[0] not in constants:
            segments.append(tuple(nodes[start : position + 1]))
            start = position + 1
    if start < len(nodes):
        segments.append(tuple(nodes[start:]))
    return segments


def last_readers(nodes: Sequence[Node], outputs: Sequence[str]) -> dict[str, int]:
    """Return for each value the position of the last node that reads it; that of outputs is behind all nodes."""
    readers = {x: position for position, node in enumerate(nodes) for x in node.inputs}
    return readers | dict.fromkeys(outputs, len(nodes))


def constants_late(nodes: Sequence[Node], inputs: Sequence[str]) -> Sequence[Node]:
    """Move constants, and nodes that read only constants, to just before the first other node that reads them."""
    return _late(nodes, constant_values(nodes, inputs))


def constant_values(nodes: Sequence[Node], inputs: Sequence[str]) -> set[str]:
    """Return the values that depend on no input."""
    if all(map(any, [node.inputs for node in nodes])):
        return set()  # every node reads something, so all depend on an input; the loop below takes three times as long
    varying = set(inputs)
    constants: set[str] = set()
    for node in nodes:
        (constants if varying.isdisjoint(node.inputs) else varying).update(node.outputs)
    return constants


def _late(nodes: Sequence[Node], constants: set[str]) -> Sequence[Node]:
    if not constants:
        return nodes
    waiting = {x: node for node in nodes for x in node.outputs if x in constants}
    ordered: list[Node] = []
    for reader in nodes:
        stack = [reader] if reader.outputs[0] not in constants else []
        while stack:
            node = stack[-1]
            first = next((x for x in node.inputs if x in waiting), None)
            if first is not None:
                stack.append(waiting[first])
                continue
            stack.pop()
            ordered.append(node)
            for x in node.outputs:
                waiting.pop(x, None)
    return ordered + list(dict.fromkeys(waiting.values()))
