"""Sorts the nodes of a model topologically, which ONNX demands and runtimes do themselves."""

from __future__ import annotations

from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from onnx import GraphProto


def sort_nodes(graph: GraphProto) -> None:
    """Put every node behind those that it reads, in place; a graph in order or with a cycle is left as it is."""
    makers = {x: index for index, node in enumerate(graph.node) for x in node.output if x}
    read = {index: {makers[x] for x in node.input if x in makers} for index, node in enumerate(graph.node)}
    if all(max(before, default=-1) < index for index, before in read.items()):
        return
    with suppress(CycleError):
        nodes = [graph.node[index] for index in TopologicalSorter(read).static_order()]
        del graph.node[:]
        graph.node.extend(nodes)
