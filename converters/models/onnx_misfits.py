"""Finds defects of a model that ONNX's checker and shape inference do not detect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from converters.constants import Array
from converters.errors import OnnxModelError
from converters.graph import Shape
from converters.models.one_node import integer_of
from converters.models.onnx_weights import stored_arrays

SLIDING = frozenset({"AveragePool", "Conv", "ConvBias", "LpPool", "MaxPool"})  # windows over all axes but the first two
BITS = {"INT2": 2, "UINT2": 2, "INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4}  # element types smaller than a byte
# Fields of a tensor with one entry per element, used instead of ``raw_data``.
PLACES: Mapping[int, str] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.INT32: "int32_data",
    TensorProto.INT64: "int64_data",
}

Shapes = Callable[[str], Shape | None]


def refuse_broken_arrays(graph: GraphProto) -> None:
    """Refuse two stored arrays of the same name, and arrays with more or less data than their shape requires.

    Arrays without any data are accepted, since their values are never read.

    Raises:
        OnnxModelError: an array is broken; the message names it.
    """
    seen: set[str] = set()
    in_nodes = (x for node in graph.node if node.op_type == "Constant" for x in node.output)
    for name in (*(tensor.name for tensor in graph.initializer), *in_nodes):
        if name in seen:
            raise OnnxModelError(f"expected one array named {name!r}, got two.")
        seen.add(name)
    for tensor in stored_arrays(graph):
        if got := _other_data(tensor):
            sizes = ",".join(map(str, tensor.dims))
            raise OnnxModelError(f"expected data of {tensor.name or 'a constant'!r} for its sizes {sizes}, got {got}.")


def _other_data(tensor: TensorProto) -> str:
    """Describe the data of an array if its amount does not agree with the shape; "" if it does."""
    count, bits = prod(tensor.dims), _bits(tensor.data_type)
    if tensor.raw_data:
        fits = not bits or len(tensor.raw_data) == -(-count * bits // 8)
        return "" if fits else f"{len(tensor.raw_data):,} bytes"
    numbers = len(getattr(tensor, PLACES.get(tensor.data_type, ""), ()))
    return "" if numbers in (0, count) else f"{numbers:,} numbers"


def _bits(dtype: int) -> int:
    """Return the bits per element of a type; 0 if unknown."""
    try:
        name = TensorProto.DataType.Name(dtype)
        return 0 if name == "STRING" else BITS.get(name) or 8 * tensor_dtype_to_np_dtype(dtype).itemsize
    except (KeyError, ValueError):
        return 0


def misfit(node: NodeProto, shape: Shapes, arrays: Mapping[str, Array]) -> str:
    """Describe what does not fit together in a node; "" if everything does.

    Args:
        node: a node with a standard operator or one of ours.
        shape: function from value name to shape, None if unknown.
        arrays: constants by name.
    """
    for made in map(shape, node.output):
        if made and min(made) < (1 if node.op_type in SLIDING else 0):
            return f"a window larger than its input, which would give {_spell(made)}"
    if node.domain == "nn":
        return ""
    inputs = [shape(x) if x else None for x in node.input]
    match node.op_type:
        case "Conv" | "ConvTranspose":
            return _misfit_of_convolution(node, inputs)
        case "Gemm" if len(inputs) > 2:
            return _misfit_of_bias(inputs[2], shape(node.output[0]))
        case "LayerNormalization" if inputs[0]:
            return next(filter(None, (_misfit_of_bias(x, inputs[0]) for x in inputs[1:])), "")
        case "Gather" if inputs[0] and node.input[1] in arrays:
            size, indices = inputs[0][integer_of(node, "axis", 0)], arrays[node.input[1]].ravel().tolist()
            return next((f"the index {index} into {size}" for index in indices if not -size <= index < size), "")
    return ""


def _misfit_of_convolution(node: NodeProto, inputs: Sequence[Shape | None]) -> str:
    (before, weight, bias, *_), groups = (*inputs, None), integer_of(node, "group", 1)
    if not before or not weight:
        return ""
    if len(weight) != len(before):
        return f"weights of {len(weight)} axes for an input of {len(before)}"
    taken, filters = weight[1] * groups, weight[0]
    if node.op_type == "ConvTranspose":
        taken, filters = weight[0], weight[1] * groups
    if before[1] != taken:
        return f"{before[1]} channels for weights that take {taken}"
    if filters % groups:
        return f"{filters} filters in {groups} groups"
    return f"a bias of {_spell(bias)} for {filters} filters" if bias and bias != (filters,) else ""


def _misfit_of_bias(bias: Shape | None, made: Shape | None) -> str:
    """Describe why a weight does not broadcast to the shape of the value that it scales or shifts; "" if it does."""
    if bias is None or made is None:
        return ""
    try:
        fits = np.broadcast_shapes(bias, made) == tuple(made)
    except ValueError:
        fits = False
    return "" if fits else f"weights of {_spell(bias)} for {_spell(made)}"


def _spell(shape: Shape) -> str:
    return ",".join(map(str, shape)) or "one number"
