"""NAS-Bench-201 cells that compute the same as another."""

from spaces.nasbench201 import Cell


def mirrored(cell: Cell) -> Cell:
    """The twin of a cell without edge between its two inner nodes: these change places."""
    to_first, to_second, _, to_output, first, second = cell.operations
    return Cell((to_second, to_first, "none", to_output, second, first))


def bypassed(cell: Cell) -> Cell:
    """The twin of a cell whose first node copies the input: what reads one may read the other."""
    _, from_input, from_first, to_output, first, second = cell.operations
    return Cell(("skip_connect", from_first, from_input, first, to_output, second))
