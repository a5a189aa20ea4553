"""Convert architectures to the graphs of their cells, for figures."""

import json
import textwrap
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from nasrlm.arrays import FloatArray
from spaces import SearchSpace
from spaces.cells import Cell as TwoInputCell
from spaces.cells import CellNetwork
from spaces.inception import InceptionNetwork
from spaces.inception_blocks import BlockPath as InceptionBlocks
from spaces.nasbench101 import Module
from spaces.nasbench201 import EDGES, Cell
from spaces.two_path import TwoPathNetwork
from spaces.two_path_blocks import BlockPath as TwoPathBlocks

BEND = 0.32  # height of an edge for each node that it passes
POINTS = 41  # of an edge's curve; odd, so that one is the middle
LINE_WIDTH = 13  # characters per line on a node
MOST_LINES = 9


@dataclass(frozen=True)
class CellGraph:
    """A graph of values or operations.

    Attributes:
        title: name of the cell; "" if there is only one.
        nodes: text on each node, in topological order.
        edges: (source, target, label) of each edge.
    """

    title: str
    nodes: tuple[str, ...]
    edges: tuple[tuple[int, int, str], ...]

    def curve(self, edge: int) -> FloatArray:
        """Return the (POINTS, 2) curve of an edge; nodes are in a row, edges from even nodes above, others below.

        A second edge between the same nodes is on the other side of the first.
        """
        source, target, _ = self.edges[edge]
        before = [ends for *ends, _ in self.edges[:edge]].count([source, target])
        side = 1 if (source + before) % 2 == 0 else -1
        t = np.linspace(0, 1, POINTS)
        height = side * BEND * (target - source - 1 + before) * 4 * t * (1 - t)
        return np.stack([source + (target - source) * t, height], axis=1)


def cell_graphs(space: SearchSpace[Hashable], notation: str) -> list[CellGraph]:
    """Return the cells of an architecture; in a space without cells, one graph of its parts as they are connected."""
    architecture = space.parse(notation)
    if isinstance(architecture, Cell):
        edges = zip(EDGES, architecture.operations, strict=True)
        shown = tuple((source, target, name) for (source, target), name in edges if name != "none")
        return [CellGraph("", ("input", "1", "2", "output"), shown)]
    if isinstance(architecture, Module):
        plain = tuple((source, target, "") for source, target in architecture.edges)
        return [CellGraph("", ("input", *architecture.operations, "output"), plain)]
    if isinstance(architecture, CellNetwork):
        return [_two_input("normal", architecture.normal), _two_input("reduction", architecture.reduce)]
    if isinstance(architecture, TwoPathNetwork):
        return [_joined([([_blocks(path) for path in architecture.paths], "output")])]
    if isinstance(architecture, InceptionNetwork):
        stages = [([[_words_of_path(path)] for path in s.paths], f"{s.num_blocks} times") for s in architecture.stages]
        return [_joined([*stages, ([[]], "output")])]
    return [_joined([([_parts(notation)], "output")])]


def _joined(stages: Sequence[tuple[Sequence[Sequence[str]], str]]) -> CellGraph:
    """Return the graph of stages: parallel paths of parts, and the node at which they end."""
    nodes, edges = ["input"], []
    for paths, end in stages:
        start, lasts = len(nodes) - 1, []
        for path in paths:
            last = start
            for part in path:
                edges.append((last, len(nodes), ""))
                last = len(nodes)
                nodes.append(_in_lines(part))
            lasts.append(last)
        edges += [(last, len(nodes), "") for last in lasts]
        nodes.append(end)
    return CellGraph("", tuple(nodes), tuple(edges))


def _blocks(path: TwoPathBlocks) -> list[str]:
    strides = [", stride\xa02" if block in path.reductions else "" for block in range(len(path.blocks))]
    return [_names(block) + stride for block, stride in zip(path.blocks, strides, strict=True)]


def _words_of_path(path: InceptionBlocks) -> str:
    return f"{_names(path.operations)}, {path.internal}\xa0to\xa0{path.out}"


def _names(operations: Sequence[str]) -> str:
    """Return operations with spaces where a line may break: the longest names are wider than a node."""
    return " ".join(name.replace("_", " ").replace("-", " ", 1) for name in operations)


def _two_input(title: str, cell: TwoInputCell) -> CellGraph:
    states = len(cell.nodes) + 2
    names = ("k-2", "k-1", *map(str, range(2, states)), "output")
    edges = [(source, target, name) for target, inputs in enumerate(cell.nodes, start=2) for name, source in inputs]
    joined = [(state, states, "") for state in cell.concat]
    return CellGraph(title, names, (*edges, *joined))


def _parts(notation: str) -> Sequence[str]:
    """Return the texts on the parts of a notation."""
    if notation.isdecimal():  # not JSON if the first digit is 0
        return list(notation)
    try:
        parts = json.loads(notation)
    except ValueError:
        return [notation]
    if isinstance(parts, dict):
        return [f"{name} {_words(value)}" for name, value in parts.items()]
    return [_words(part) for part in parts] if isinstance(parts, list) else [notation]


def _words(value: object) -> str:
    """Return a JSON value without punctuation."""
    if isinstance(value, dict):
        return ", ".join(f"{name}\xa0{_words(x)}" for name, x in value.items())  # never broken into lines
    return " ".join(map(_words, value)) if isinstance(value, list) else str(value)


def _in_lines(words: str) -> str:
    """Break a text into lines, and cut it, so that it fits a node."""
    return "\n".join(textwrap.wrap(words, LINE_WIDTH, max_lines=MOST_LINES, placeholder=" …"))
