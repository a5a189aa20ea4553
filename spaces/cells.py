"""Networks of stacked cells, as introduced by NASNet: two kinds of cell, each reading the two cells before it.

A cell has numbered states. State 0 is the output of the cell before the previous one, state 1 that of the previous
cell. Each node adds a state: the sum of two operations on earlier states. The output of the cell concatenates some of
its nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from spaces.isomorphism import ZERO, Dataflow, Value, add
from spaces.shown import shown
from spaces.space import ArchitectureError

NUM_INPUTS = 2
MIN_DEPTH = 4  # with fewer cells no normal cell follows another cell, and its two inputs would be the same value
MAX_DEPTH = 1000  # published networks have 20 cells; without a limit, reading a notation could take for ever
WEIGHTLESS = frozenset(f"{kind}_pool_{size}x{size}" for kind in ("avg", "max") for size in (3, 5, 7))

Edge = tuple[str, int]  # operation, and the state that it reads
Node = tuple[Edge, Edge]


@dataclass(frozen=True)
class Cell:
    """One kind of cell.

    Both edges of a node and the states in ``concat`` are kept in ascending order: swapping operands of a sum changes
    nothing, and swapping parts of a concatenation only permutes weights of the convolutions that read the cell.

    Attributes:
        nodes: the two edges into state 2, state 3, and so on.
        concat: the states that are concatenated to the output.
    """

    nodes: tuple[Node, ...]
    concat: tuple[int, ...]

    def __post_init__(self) -> None:
        nodes = tuple((first, second) if first[1] <= second[1] else (second, first) for first, second in self.nodes)
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "concat", tuple(sorted(self.concat)))
        for state, node in enumerate(self.nodes, start=NUM_INPUTS):
            for _, source in node:
                if not 0 <= source < state:
                    raise ArchitectureError(
                        f"cell: expected node {state} to read states 0..{state - 1}, got {source} in {node}. "
                        "States 0 and 1 are the cell's inputs, the others its nodes."
                    )
        states = range(NUM_INPUTS, NUM_INPUTS + len(self.nodes))
        if not self.concat or len(set(self.concat)) < len(self.concat) or not set(self.concat) <= set(states):
            raise ArchitectureError(
                f"cell: expected concat to name different nodes of {states.start}..{states.stop - 1}, "
                f"got {list(self.concat)}. Nodes are numbered from {NUM_INPUTS}, after the cell's inputs."
            )

    @property
    def all_nodes(self) -> tuple[int, ...]:
        """The states of all nodes."""
        return tuple(range(NUM_INPUTS, NUM_INPUTS + len(self.nodes)))

    @property
    def loose_ends(self) -> tuple[int, ...]:
        """The nodes that no other node reads."""
        read = {source for node in self.nodes for _, source in node}
        return tuple(state for state in self.all_nodes if state not in read)


@dataclass(frozen=True)
class CellNetwork:
    """A network of stacked cells.

    Attributes:
        normal: the cell that keeps the resolution.
        reduce: the cell that halves the resolution; the network has two of it.
        width: channels of an operation in the first cell; they double at each reduction.
        depth: number of cells.
        aux: whether training adds an auxiliary head. It is ignored when networks are built and compared.
    """

    normal: Cell
    reduce: Cell
    width: int
    depth: int
    aux: bool = False

    def __post_init__(self) -> None:
        if self.width < 1 or not MIN_DEPTH <= self.depth <= MAX_DEPTH:
            raise ArchitectureError(
                f"cell network: expected a width of 1 or more and a depth of {MIN_DEPTH} to {MAX_DEPTH}, "
                f"got width {shown(self.width)} and depth {shown(self.depth)}. Depth counts the two reductions too."
            )

    def is_reduction(self, index: int) -> bool:
        """Return whether the cell at this position halves the resolution."""
        return index in (self.depth // 3, 2 * self.depth // 3)

    def channels(self, index: int) -> int:
        """Return the channels of an operation in the cell at this position."""
        return self.width << sum(self.is_reduction(before) for before in range(index + 1))


def canonical_cell(cell: Cell) -> Cell:
    """Return the same cell for all numberings of its nodes; edges from one state are in the order of operation names.

    Cost: every order of the nodes is tried, which takes a millisecond for five nodes.
    """
    renumbered = [_renumbered(cell, order) for order in permutations(cell.all_nodes) if _is_topological(cell, order)]
    return min(renumbered, key=lambda cell: (cell.nodes, cell.concat))


def _is_topological(cell: Cell, order: Sequence[int]) -> bool:
    known = set(range(NUM_INPUTS))
    for state in order:
        if not all(source in known for _, source in cell.nodes[state - NUM_INPUTS]):
            return False
        known.add(state)
    return True


def _renumbered(cell: Cell, order: Sequence[int]) -> Cell:
    number = {state: new for new, state in enumerate((*range(NUM_INPUTS), *order))}
    nodes: list[Node] = []
    for state in order:
        edges = sorted((number[source], operation) for operation, source in cell.nodes[state - NUM_INPUTS])
        nodes.append(((edges[0][1], edges[0][0]), (edges[1][1], edges[1][0])))
    return Cell(tuple(nodes), tuple(number[state] for state in cell.concat))


def cell_key(cell: Cell, *, reduction: bool) -> str:
    """Return the canonical key of what a cell computes; inputs that are used appear as ``input0`` and ``input1``."""
    graph = Dataflow()
    values = [graph.fresh(f"input{index}") for index in range(NUM_INPUTS)]
    for node in cell.nodes:
        terms = [_term(graph, operation, values[state], strided=reduction and state < 2) for operation, state in node]
        values.append(add(*terms))
    return graph.key(add(*[graph.shared("concat", values[state]) for state in cell.concat]))


def network_key(network: CellNetwork) -> str:
    """Return a key, equal if and only if two networks are isomorphic without dead cells and auxiliary heads.

    If a cell ignores the previous cell, that one is dead unless the next cell reads it. The key therefore has the keys
    of both kinds of cell, then the live cells: ``n16(-,-) r32(-,0)`` is a normal cell of 16 channels that reads the
    stem twice, and a reduction that reads the stem and cell 0.
    """
    keys = {False: cell_key(network.normal, reduction=False), True: cell_key(network.reduce, reduction=True)}
    live = _live_cells(network, keys)
    number = {-1: "-"} | {index: str(position) for position, index in enumerate(live)}
    cells: list[str] = []
    for index in live:
        kind = "r" if network.is_reduction(index) else "n"
        sources = ",".join(number[source] for source in _sources(network, keys, index))
        cells.append(f"{kind}{network.channels(index)}({sources})")
    kinds = {network.is_reduction(index) for index in live}
    return " | ".join([*(key for is_reduction, key in keys.items() if is_reduction in kinds), " ".join(cells)])


def _term(graph: Dataflow, operation: str, source: Value, *, strided: bool) -> Value:
    if operation == "none":
        return ZERO
    if operation == "skip_connect" and not strided:
        return source
    if operation in WEIGHTLESS:
        return graph.shared(operation, source) if source else ZERO
    return graph.fresh(operation, source)


def _live_cells(network: CellNetwork, keys: dict[bool, str]) -> list[int]:
    live = {network.depth - 1}
    for index in range(network.depth - 1, -1, -1):
        if index in live:
            live.update(_sources(network, keys, index))
    return sorted(live - {-1})


def _sources(network: CellNetwork, keys: dict[bool, str], index: int) -> list[int]:
    """Return the positions of the cells that a cell reads; -1 is the stem."""
    key = keys[network.is_reduction(index)]
    return [max(index - NUM_INPUTS + number, -1) for number in range(NUM_INPUTS) if f"input{number}" in key]
