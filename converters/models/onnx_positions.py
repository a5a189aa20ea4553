"""What operators read at which of their inputs: indices, sizes and scales say what is computed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from onnx import FunctionProto, NodeProto

VALUE_INPUTS: Mapping[str, tuple[int, ...]] = {"Resize": (1, 2, 3), "Upsample": (1,), "OneHot": (2,)}
# Inputs that say where, how often and of which size; of whatever type they are cast from.
INDEX_INPUTS: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(("Expand", "Gather", "GatherElements", "GatherND", "Reshape", "Squeeze", "Tile", "TopK"), (1,)),
    **dict.fromkeys(("ScatterElements", "ScatterND", "Unsqueeze"), (1,)),
    **dict.fromkeys(("ConstantOfShape", "Where"), (0,)),
    "Pad": (1, 3),
    "Slice": (1, 2, 3, 4),
}
STATE_INPUTS: Mapping[str, tuple[int, ...]] = {"LSTM": (5, 6), "GRU": (5,), "RNN": (5,)}

VIEWS = frozenset({"Expand", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze"})
PUT_TOGETHER = VIEWS | {"Cast", "Concat"}


def read_by_value(nodes: Sequence[NodeProto], positions: Mapping[str, tuple[int, ...]] = VALUE_INPUTS) -> set[str]:
    """Floats that say what is computed, though they may be more than one number, and what they are put together of."""
    makers = {output: node for node in nodes for output in node.output}
    found = set(read_at(nodes, positions))
    waiting = list(found)
    while waiting:
        maker = makers.get(waiting.pop())
        if maker is not None and maker.op_type in PUT_TOGETHER:
            new = {x for x in maker.input if x} - found
            found |= new
            waiting += new
    return found


def value_inputs(functions: Iterable[FunctionProto]) -> Mapping[str, tuple[int, ...]]:
    """``VALUE_INPUTS``, and those of a model's own functions, which may call each other."""
    positions = VALUE_INPUTS
    while True:
        found = {**VALUE_INPUTS}
        for function in functions:
            by_value = read_by_value(function.node, positions)
            if read := tuple([index for index, x in enumerate(function.input) if x in by_value]):
                found[function.name] = read
        if found == positions:
            return found
        positions = found


def read_at(nodes: Iterable[NodeProto], positions: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """The values that operators have at these positions, "" among them where one is left out."""
    for node in nodes:
        for position in positions.get(node.op_type, ()):
            yield from node.input[position : position + 1]


def trimmed(inputs: Iterable[str]) -> tuple[str, ...]:
    """Drop the optional inputs that are left out at the end."""
    kept = list(inputs)
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept)


def seen_at(
    nodes: Sequence[NodeProto], positions: Mapping[str, Sequence[int]], through: Collection[str] = VIEWS
) -> set[str]:
    """What operators read at these positions, and what that is a view of."""
    viewed = {x.output[0]: x.input[0] for x in nodes if x.op_type in through and x.input and x.output}
    seen = set(read_at(nodes, positions))
    while more := {viewed[x] for x in seen if x in viewed} - seen:
        seen |= more
    return seen
