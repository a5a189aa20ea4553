"""Spellings (rewrite rules, see ``rewriting``) of operators that only move numbers: reshapes, transposes, slices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod

from converters.graph import Node, Shape, attributes
from converters.passes.rewriting import Surroundings, as_integers

RESHAPES = ("Flatten", "nn.Reshape")
KEEP_ORDER = frozenset({"Expand", "Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze", "nn.Reshape"})

Cut = tuple[int, int, int]  # axis, start, end


def spell_view(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace reshapes of every kind by ``nn.Reshape``, or ``Flatten`` if to (N, rest), and merge consecutive ones."""
    if node.op_type == "Transpose" and (moved := _before_new_axes(node, at)):
        return moved
    if node.op_type == "Transpose" and (inner := at.producer(node.inputs[0], "Transpose")):
        node = node._replace(inputs=inner.inputs, attributes=attributes(perm=_composed(inner, node, at)))
    if node.op_type not in KEEP_ORDER or node.inputs[0] not in at.shapes or node.outputs[0] not in at.shapes:
        return None
    before, after = at.shapes[node.inputs[0]], at.shapes[node.outputs[0]]
    if node.op_type == "Transpose":
        node = node.with_attributes(perm=_axes(node, len(before)))
    if 0 in after:  # nn.Reshape takes 0 to mean that the size is kept
        return [node]
    if prod(before) != prod(after) or (node.op_type == "Transpose" and not _keeps_order(node, before)):
        return [node]
    if whole := _of_all_axes(node, at):
        return [*whole[:-1], *(spell_view(whole[-1], at) or whole[-1:])]
    x = node.inputs[0]
    while (inner := at.producer(x, *RESHAPES)) and inner.inputs[0] in at.shapes:
        x = inner.inputs[0]
    before = at.shapes[x]
    if before == after:
        return [Node("Identity", (x,), node.outputs)]
    if len(before) > 2 and after == (before[0], prod(before[1:])):
        return [Node("Flatten", (x,), node.outputs)]
    return [Node("nn.Reshape", (x,), node.outputs, attributes(shape=after))]


def spell_expand(node: Node, at: Surroundings) -> list[Node] | None:
    """Give ``Expand`` its full output shape; replace ``Tile`` that repeats only axes of size 1 by ``Expand``."""
    if node.op_type not in ("Expand", "Tile") or node.inputs[0] not in at.shapes or node.outputs[0] not in at.shapes:
        return None
    before, after = at.shapes[node.inputs[0]], at.shapes[node.outputs[0]]
    if node.op_type == "Tile" and any(size not in (1, made) for size, made in zip(before, after, strict=True)):
        return None
    sizes = f"{node.outputs[0]}.sizes"
    return [
        Node("Constant", (), (sizes,), attributes(value_ints=after)),
        Node("Expand", (node.inputs[0], sizes), node.outputs),
    ]


def _before_new_axes(node: Node, at: Surroundings) -> list[Node] | None:
    """Merge two transposes with a reshape between them that splits or adds axes: one transpose, then a reshape.

    Axes that were one before the reshape must stay together in the second transpose.
    """
    view = at.producer(node.inputs[0], "nn.Reshape")
    inner = at.producer(view.inputs[0], "Transpose") if view else None
    if view is None or inner is None or inner.outputs[0] not in at.shapes or node.outputs[0] not in at.shapes:
        return None
    rows, seen = at.shapes[inner.outputs[0]], at.shapes[view.outputs[0]]
    parts = _parts_of_axes(rows, seen)
    moved = [axis for axis in _axes(node, len(seen)) if seen[axis] != 1]
    order = sorted(range(len(parts)), key=lambda row: moved.index(parts[row][0]))
    if not parts or [axis for row in order for axis in parts[row]] != moved:
        return None
    perm = tuple([_axes(inner, len(rows))[axis] for axis in order])
    turned = at.define(f"{node.outputs[0]}.turned", tuple([rows[axis] for axis in order]), like=node.outputs[0])
    return [
        Node("Transpose", inner.inputs, (turned,), attributes(perm=perm)),
        Node("nn.Reshape", (turned,), node.outputs, attributes(shape=at.shapes[node.outputs[0]])),
    ]


def _parts_of_axes(rows: Shape, seen: Shape) -> list[list[int]]:
    """Return for each axis of ``rows`` the axes larger than 1 that a reshape to ``seen`` makes of it.

    The list is empty if the reshape mixes axes.
    """
    left = [axis for axis, size in enumerate(seen) if size != 1]
    parts: list[list[int]] = []
    for size in rows:
        ends = range(1, len(left) + 1)
        end = next((end for end in ends if prod(seen[axis] for axis in left[:end]) == size), 0)
        if end == 0:
            return []
        parts.append(left[:end])
        left = left[end:]
    return parts


def _of_all_axes(node: Node, at: Surroundings) -> list[Node] | None:
    """Rewrite a transpose for which the first axes were merged, and are split again after it, as one of all axes.

    If the first axes had another form before they were merged, a reshape before the transpose splits them.
    """
    transpose = at.producer(node.inputs[0], "Transpose")
    merged = at.producer(transpose.inputs[0], "nn.Reshape") if transpose else None
    if transpose is None or merged is None or transpose.outputs[0] not in at.shapes:
        return None
    x, after = merged.inputs[0], at.shapes[node.outputs[0]]
    rows, turned = at.shapes[merged.outputs[0]], at.shapes[transpose.outputs[0]]
    first = len(after) - len(turned) + 1  # number of axes that were merged
    perm = _axes(transpose, len(turned))
    if perm[0] != 0 or first < 2 or after[first:] != turned[1:]:
        return None
    order = (*range(first), *[axis + first - 1 for axis in perm[1:]])
    shape = (*after[:first], *rows[1:])
    if at.shapes.get(x) == shape:
        return [Node("Transpose", (x,), node.outputs, attributes(perm=order))]
    apart = at.define(f"{node.outputs[0]}.apart", shape, like=x)
    return [
        Node("nn.Reshape", (x,), (apart,), attributes(shape=shape)),
        Node("Transpose", (apart,), node.outputs, attributes(perm=order)),
    ]


def spell_slice(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace ``Gather``, ``Slice`` and ``Split`` by ``nn.Slice`` where they take ranges, and merge nested slices."""
    if node.op_type not in ("Gather", "Slice", "Split", "nn.Slice") or node.inputs[0] not in at.shapes:
        return None
    x, shape = node.inputs[0], at.shapes[node.inputs[0]]
    if node.op_type == "nn.Slice":  # a view that stood before it may be gone
        return [cut(x, _cuts_of(node), node.outputs[0], at)]
    if node.op_type == "Slice":
        cuts = _slice_cuts(node, shape, at)
        return [cut(x, cuts, node.outputs[0], at)] if cuts is not None else None
    axis = node.attribute("axis", 0)
    assert isinstance(axis, int), f"{node} has no axis"
    if node.op_type == "Split":
        return _split(node, axis % len(shape), at)
    return _gather(node, axis % len(shape), shape, at)


def _split(node: Node, axis: int, at: Surroundings) -> list[Node] | None:
    if any(output not in at.shapes for output in node.outputs):
        return None
    borders = [0, *accumulate(at.shapes[output][axis] for output in node.outputs)]
    return [
        cut(node.inputs[0], [(axis, *border)], output, at)
        for output, border in zip(node.outputs, pairwise(borders), strict=True)
    ]


def _gather(node: Node, axis: int, shape: Shape, at: Surroundings) -> list[Node] | None:
    """Replace a gather of consecutive indices by a slice; a scalar index also drops the axis."""
    indices = at.integers(node.inputs[1])
    if not indices or not shape[axis]:
        return None
    first = indices[0] % shape[axis]
    if any((index - first - offset) % shape[axis] for offset, index in enumerate(indices)):
        return None
    indexed = (axis, first, first + len(indices))
    if indexed[2] > shape[axis]:
        return None
    if isinstance(at.constant(node.inputs[1]), tuple):
        return [cut(node.inputs[0], [indexed], node.outputs[0], at)]
    kept = at.define(f"{node.outputs[0]}.kept", (*shape[:axis], 1, *shape[axis + 1 :]), like=node.inputs[0])
    after = (*shape[:axis], *shape[axis + 1 :])
    return [
        cut(node.inputs[0], [indexed], kept, at),
        Node("nn.Reshape", (kept,), node.outputs, attributes(shape=after)),
    ]


def _slice_cuts(node: Node, shape: Shape, at: Surroundings) -> list[Cut] | None:
    """Return the cuts of a slice with constant bounds and steps of one, else None."""
    given = [at.integers(x) for x in node.inputs[1:]]
    values = [value for value in given if value is not None]
    if len(values) < max(len(given), 2) or (len(values) == 4 and set(values[3]) != {1}):
        return None
    starts, ends = values[:2]
    axes = values[2] if len(values) > 2 else tuple(range(len(starts)))
    bounds = [slice(s, e).indices(shape[axis])[:2] for s, e, axis in zip(starts, ends, axes, strict=True)]
    return [(axis % len(shape), *bound) for axis, bound in zip(axes, bounds, strict=True)]


def cut(x: str, cuts: Sequence[Cut], output: str, at: Surroundings) -> Node:
    """Return a slice of ``x``, merged with the slice that makes ``x`` if any; Identity if nothing is cut off."""
    ranges = {axis: (start, end) for axis, start, end in cuts}
    if inner := at.producer(x, "nn.Slice"):
        x = inner.inputs[0]
        for axis, start, end in _cuts_of(inner):
            offset = ranges.get(axis, (0, end - start))
            ranges[axis] = (start + offset[0], start + offset[1])
    shape = at.shapes[x]
    kept = sorted((axis, *border) for axis, border in ranges.items() if border != (0, shape[axis]))
    if not kept:
        return Node("Identity", (x,), (output,))
    axes, starts, ends = zip(*kept, strict=True)
    return Node("nn.Slice", (x,), (output,), attributes(axes=axes, ends=ends, starts=starts))


def _cuts_of(node: Node) -> list[Cut]:
    given = dict(node.attributes)
    axes, starts, ends = (as_integers(given[name]) for name in ("axes", "starts", "ends"))
    return list(zip(axes, starts, ends, strict=True))


def _keeps_order(node: Node, shape: Shape) -> bool:
    """Return whether a transpose moves only axes of size 1."""
    moved = [axis for axis in _axes(node, len(shape)) if shape[axis] != 1]
    return moved == sorted(moved)


def _composed(first: Node, second: Node, at: Surroundings) -> tuple[int, ...]:
    rank = len(at.shapes.get(first.inputs[0], ()) or _axes(first, 0) or _axes(second, 0))
    inner = _axes(first, rank)
    return tuple([inner[axis] for axis in _axes(second, rank)])


def _axes(node: Node, rank: int) -> tuple[int, ...]:
    """Return the permutation of a transpose; the default reverses the axes."""
    return as_integers(node.attribute("perm")) or tuple(range(rank))[::-1]
