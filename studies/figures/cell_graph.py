"""An architecture as the graph of its cell, to be drawn."""

import json
import textwrap
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from nasrlm.arrays import FloatArray
from spaces import SearchSpace
from spaces.cells import Cell as TwoInputCell
from spaces.cells import CellNetwork
from spaces.nasbench101 import Module
from spaces.nasbench201 import EDGES, Cell

BEND = 0.32  # of an edge that passes over a node, for every node
POINTS = 41  # of an edge's curve, one of them its middle
LINE_WIDTH = 13  # characters of what is written on a node
MOST_LINES = 9


@dataclass(frozen=True)
class CellGraph:
    """Values or operations, and what leads from one to another.

    Attributes:
        title: which cell it is; "" where there is only one.
        nodes: what is written on each, in lines, in an order in which edges run forwards.
        edges: (source, target, label).
    """

    title: str
    nodes: tuple[str, ...]
    edges: tuple[tuple[int, int, str], ...]

    def curve(self, edge: int) -> FloatArray:
        """(POINTS, 2) of an edge between nodes in a row, those with an even source above it and the others below."""
        source, target, _ = self.edges[edge]
        side = 1 if source % 2 == 0 else -1
        t = np.linspace(0, 1, POINTS)
        height = side * BEND * (target - source - 1) * 4 * t * (1 - t)
        return np.stack([source + (target - source) * t, height], axis=1)


def cell_graphs(space: SearchSpace[Hashable], notation: str) -> list[CellGraph]:
    """The cells of an architecture; of a space without cells its parts, one after another."""
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
    parts = ("input", *map(_in_lines, _parts(notation)), "output")
    return [CellGraph("", parts, tuple((node, node + 1, "") for node in range(len(parts) - 1)))]


def _two_input(title: str, cell: TwoInputCell) -> CellGraph:
    states = len(cell.nodes) + 2
    names = ("k-2", "k-1", *map(str, range(2, states)), "output")
    edges = [(source, target, name) for target, inputs in enumerate(cell.nodes, start=2) for name, source in inputs]
    joined = [(state, states, "") for state in cell.concat]
    return CellGraph(title, names, (*edges, *joined))


def _parts(notation: str) -> Sequence[str]:
    """What is written on the parts of a notation."""
    if notation.isdecimal():  # no JSON where the first digit is 0
        return list(notation)
    try:
        parts = json.loads(notation)
    except ValueError:
        return [notation]
    if isinstance(parts, dict):
        return [f"{name} {_words(value)}" for name, value in parts.items()]
    return [_words(part) for part in parts] if isinstance(parts, list) else [notation]


def _words(value: object) -> str:
    """A value of JSON without its punctuation."""
    if isinstance(value, dict):
        return ", ".join(f"{name}\xa0{_words(x)}" for name, x in value.items())  # which are not broken apart
    return " ".join(map(_words, value)) if isinstance(value, list) else str(value)


def _in_lines(words: str) -> str:
    """As much of it as a node has room for."""
    return "\n".join(textwrap.wrap(words, LINE_WIDTH, max_lines=MOST_LINES, placeholder=" …"))
