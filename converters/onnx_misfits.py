"""What does not fit in a node, where ONNX's own checks and inference let it pass; ONNX Runtime would not run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from converters.constants import Array
from converters.errors import OnnxModelError
from converters.graph import Shape
from converters.onnx_layers import integer_of

SLIDING = frozenset({"AveragePool", "Conv", "ConvBias", "LpPool", "MaxPool"})  # windows over all axes but two
HALF_BYTES = frozenset({TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1})

Shapes = Callable[[str], Shape | None]


def refuse_broken_arrays(graph: GraphProto) -> None:
    """Complain of two initializers of one name, and of data that are not as many as their sizes say.

    Arrays without any data pass: their values are never looked at.

    Raises:
        OnnxModelError: naming the array.
    """
    seen: set[str] = set()
    for tensor in graph.initializer:
        if tensor.name in seen:
            raise OnnxModelError(f"expected one array of the name {tensor.name!r}, got two.")
        seen.add(tensor.name)
        given, bits = 8 * len(tensor.raw_data), _bits(tensor.data_type)
        wanted = prod(tensor.dims) * bits
        if given and bits and -(-wanted // 8) * 8 != given:
            sizes = ",".join(map(str, tensor.dims))
            raise OnnxModelError(f"expected data of {tensor.name!r} for its sizes {sizes}, got {given // 8:,} bytes.")


def _bits(dtype: int) -> int:
    """Of a number; 0 where that is not known."""
    if dtype in HALF_BYTES:
        return 4
    try:
        return 0 if dtype == TensorProto.STRING else 8 * tensor_dtype_to_np_dtype(dtype).itemsize
    except KeyError:
        return 0


def misfit(node: NodeProto, shape: Shapes, arrays: Mapping[str, Array]) -> str:
    """In words what does not fit, or "".

    Args:
        node: of a standard operator, or of our own.
        shape: of a value, None where it is not known.
        arrays: constants by name.
    """
    for made in map(shape, node.output):
        if made and min(made) < (1 if node.op_type in SLIDING else 0):
            return f"a window larger than what it slides over, which would give {_spell(made)}"
    if node.domain == "nn":
        return ""
    inputs = [shape(x) if x else None for x in node.input]
    match node.op_type:
        case "Conv" | "ConvTranspose":
            return _misfit_of_convolution(node, inputs)
        case "Gemm" if len(inputs) > 2:
            return _misfit_of_bias(inputs[2], shape(node.output[0]))
        case "LayerNormalization" if inputs[0]:
            normalised = inputs[0][integer_of(node, "axis", -1) % len(inputs[0]) :]
            return next(filter(None, (_misfit_of_bias(x, normalised) for x in inputs[1:])), "")
        case "Gather" if inputs[0] and node.input[1] in arrays:
            size, indices = inputs[0][integer_of(node, "axis", 0)], arrays[node.input[1]].ravel().tolist()
            return next((f"the index {index} into {size}" for index in indices if not -size <= index < size), "")
    return ""


def _misfit_of_convolution(node: NodeProto, inputs: Sequence[Shape | None]) -> str:
    (before, weight, bias, *_), groups = (*inputs, None), integer_of(node, "group", 1)
    if not before or not weight:
        return ""
    taken, filters = weight[1] * groups, weight[0]
    if node.op_type == "ConvTranspose":
        taken, filters = weight[0], weight[1] * groups
    if before[1] != taken:
        return f"{before[1]} channels where its weights take {taken}"
    if filters % groups:
        return f"{filters} filters in {groups} groups"
    return f"a bias of {_spell(bias)} for {filters} filters" if bias and bias != (filters,) else ""


def _misfit_of_bias(bias: Shape | None, made: Shape | None) -> str:
    """Of weights that are multiplied or added to each of the last axes."""
    if bias is None or made is None:
        return ""
    try:
        fits = np.broadcast_shapes(bias, made) == tuple(made)
    except ValueError:
        fits = False
    return "" if fits else f"weights of {_spell(bias)} for {_spell(made)}"


def _spell(shape: Shape) -> str:
    return ",".join(map(str, shape)) or "one number"
