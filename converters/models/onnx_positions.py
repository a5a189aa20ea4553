"""Positions of operator inputs: values that decide what is computed, such as indices and sizes, and weights."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from onnx import FunctionProto, NodeProto

# Inputs that may be several floats and whose values are needed.
VALUE_INPUTS: Mapping[str, tuple[int, ...]] = {"Resize": (1, 2, 3), "Upsample": (1,), "OneHot": (2,)}
# Inputs that are indices, repeats, sizes or flags; they may be cast from any type.
INDEX_INPUTS: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(("Expand", "Gather", "GatherElements", "GatherND", "Reshape", "Squeeze", "Tile", "TopK"), (1,)),
    **dict.fromkeys(("ScatterElements", "ScatterND", "Unsqueeze"), (1,)),
    **dict.fromkeys(("ConstantOfShape", "Where"), (0,)),
    "Pad": (1, 3),
    "Slice": (1, 2, 3, 4),
}
# Inputs that are initial states.
STATE_INPUTS: Mapping[str, tuple[int, ...]] = {"LSTM": (5, 6), "GRU": (5,), "RNN": (5,)}
# Inputs that are weights even if they are a single number, or a short list of integers (quantised bias).
WEIGHT_INPUTS: Mapping[str, range] = {
    "BatchNormalization": range(1, 5),
    "Conv": range(1, 3),
    "ConvTranspose": range(1, 3),
    "DequantizeLinear": range(1),
    "GRU": range(1, 4),
    "Gemm": range(1, 3),
    "GroupNormalization": range(1, 3),
    "InstanceNormalization": range(1, 3),
    "LSTM": range(1, 4),
    "LayerNormalization": range(1, 3),
    "PRelu": range(1, 2),
    "QGemm": range(6, 7),
    "QLinearConv": range(8, 9),
    "RMSNormalization": range(1, 2),
    "RNN": range(1, 4),
}
STATISTICS = range(3, 5)  # of the running statistics of a batch norm, which are not learned
# Inputs that are quantisation scales and zero points, which are no parameters.
QUANTISATION: Mapping[str, Sequence[int]] = {
    "ConvInteger": (2, 3),
    "DequantizeLinear": (1, 2),
    "DynamicQuantizeMatMul": (2, 3),
    "MatMulInteger": (2, 3),
    "QGemm": (1, 2, 4, 5, 7, 8),
    "QLinearConv": (1, 2, 4, 5, 6, 7),
    "QLinearMatMul": (1, 2, 4, 5, 6, 7),
    "QuantizeLinear": (1, 2),
}
# Inputs that may be biases stored as 32-bit integers.
QUANTISED_BIASES: Mapping[str, Sequence[int]] = {"DequantizeLinear": (0,), "QGemm": (6,), "QLinearConv": (8,)}

VIEWS = frozenset({"Expand", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze"})
PUT_TOGETHER = VIEWS | {"Cast", "Concat"}


def read_by_value(nodes: Sequence[NodeProto], positions: Mapping[str, tuple[int, ...]] = VALUE_INPUTS) -> set[str]:
    """Return the values read at these positions, and those that they are views, casts or concatenations of."""
    sources = {x: node.input for node in nodes if node.op_type in PUT_TOGETHER for x in node.output}
    return _with_sources(_read_at(nodes, positions), sources)


def value_inputs(functions: Iterable[FunctionProto]) -> Mapping[str, tuple[int, ...]]:
    """Return ``VALUE_INPUTS`` extended by those of a model's functions, which may call each other."""
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


def seen_at(
    nodes: Sequence[NodeProto], positions: Mapping[str, Sequence[int]], through: Collection[str] = VIEWS
) -> set[str]:
    """Return the values that operators read at these positions, and the values that these are views of."""
    viewed = {x: node.input[:1] for node in nodes if node.op_type in through for x in node.output[:1]}
    return _with_sources(_read_at(nodes, positions), viewed)


def _read_at(nodes: Iterable[NodeProto], positions: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Yield the values that operators read at these positions; an omitted input is ""."""
    for node in nodes:
        for position in positions.get(node.op_type, ()):
            yield from node.input[position : position + 1]


def _with_sources(values: Iterable[str], sources: Mapping[str, Sequence[str]]) -> set[str]:
    """Return values, those that they are made of, those that these are made of, and so on."""
    found = set(values)
    waiting = list(found)
    while waiting:
        new = set(filter(None, sources.get(waiting.pop(), ()))) - found
        found |= new
        waiting += new
    return found
