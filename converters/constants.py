"""Turns arrays of a model into nodes: short lists are kept in full, fills as one number, weights as their shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from onnx.helper import np_dtype_to_tensor_dtype

from converters.errors import one_line_errors
from converters.graph import Node, Shape, attributes

Array = NDArray[np.generic]

MAX_SPELLED = 64  # numbers written in full
FLOATS = frozenset(
    {
        *(TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16),
        *(TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ),
        *(TensorProto.FLOAT8E8M0, TensorProto.FLOAT4E2M1),
    }
)
# Element type of the value that `Constant` makes, by the kind of its attribute.
MADE_FROM = {"float": TensorProto.FLOAT, "int": TensorProto.INT64, "string": TensorProto.STRING}


def read_array(tensor: TensorProto) -> Array:
    """Return the elements of a tensor.

    Raises:
        OnnxModelError: the number of elements does not agree with the shape.
    """
    with one_line_errors(f"tensor {tensor.name!r}: expected as many numbers as its shape requires"):
        return numpy_helper.to_array(tensor)


def counts_as_weight(array: Array, *, in_full: bool = False) -> bool:
    """Return whether ``constant_nodes`` represents an array as a weight, of which only shape and type are kept.

    Unless ``in_full`` is set, these are arrays whose elements are not all equal, and of which there are more than
    ``MAX_SPELLED`` or which are floats.
    """
    return not (in_full or array.size < 2 or _is_short(array) or _is_filled(array))


def constant_nodes(name: str, array: Array, *, in_full: bool = False) -> list[Node]:
    """Return nodes that make ``array`` as the value ``name``; only ``nn.Weight`` if it ``counts_as_weight``."""
    dtype = np_dtype_to_tensor_dtype(array.dtype)
    if counts_as_weight(array, in_full=in_full):
        return [weight_node(name, array.shape, dtype, name)]
    if in_full or array.size == 1 or not _is_filled(array) or (_is_short(array) and array.ndim < 2):
        return _in_full(name, array, dtype)
    return fill_nodes(name, array.shape, array.flat[0] if array.size else array.dtype.type(0), dtype)


def _is_short(array: Array) -> bool:
    """Return whether an array has few elements and no floats."""
    return 0 < array.size <= MAX_SPELLED and np_dtype_to_tensor_dtype(array.dtype) not in FLOATS


def _is_filled(array: Array) -> bool:
    """Return whether all elements of an array are equal."""
    return not array.size or bool(np.all(array == array.flat[0]))


def fill_nodes(name: str, shape: Shape, number: np.generic, dtype: int) -> list[Node]:
    """Return nodes that make an array filled with one number."""
    if dtype == TensorProto.FLOAT and number == 0:
        return [Node("nn.Zeros", (), (name,), attributes(shape=shape))]
    sizes, filler = f"{name}.sizes", f"{name}.number"
    return [
        *_in_full(filler, np.asarray(number), dtype),
        *_in_full(sizes, np.array(shape, dtype=np.int64), TensorProto.INT64),
        Node("Expand", (filler, sizes), (name,)),
    ]


def weight_node(name: str, shape: Shape, dtype: int, identity: str) -> Node:
    """Return an ``nn.Weight`` node: an array of which only shape and type are kept; a scalar becomes a list of one."""
    other_type = dtype if dtype != TensorProto.FLOAT else None
    return Node("nn.Weight", (), (name,), attributes(dtype=other_type, weight_shape=shape or (1,)), (identity,))


def _in_full(name: str, array: Array, dtype: int) -> list[Node]:
    """Return ``Constant`` with all elements, followed by ``nn.Reshape`` and ``Cast`` if shape or type require them."""
    kind = "string" if dtype == TensorProto.STRING else "float" if dtype in FLOATS else "int"
    numbers = [_python_value(number, kind) for number in array.ravel()]
    value = {f"value_{kind}": numbers[0]} if array.ndim == 0 else {f"value_{kind}s": tuple(numbers)}
    steps = [("Constant", attributes(**value))]
    if array.ndim > 1:
        steps.append(("nn.Reshape", attributes(shape=array.shape)))
    if dtype != MADE_FROM[kind]:
        steps.append(("Cast", attributes(to=dtype)))
    nodes: list[Node] = []
    for index, (op_type, values) in enumerate(steps, start=1):
        output = name if index == len(steps) else f"{name}.{index}"
        nodes.append(Node(op_type, nodes[-1].outputs if nodes else (), (output,), values))
    return nodes


def _python_value(number: Any, kind: str) -> float | int | str:
    if kind == "string":
        return number.decode() if isinstance(number, bytes) else str(number)
    return float(number) if kind == "float" else int(number)
