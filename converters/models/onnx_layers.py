"""Recognises layers among ONNX nodes: nodes that own weights and correspond to an ``nn`` function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from onnx import NodeProto, TensorProto

from converters.graph import Attributes, AttributeValue, Shape, attributes

INDICES = (TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL)  # element types of arrays that are no parameters
AS_LARGE = ("SAME_LOWER", "SAME_UPPER")  # values of ``auto_pad`` for which the padding depends on the input's size


class Weight(NamedTuple):
    """An array of which only shape and type are known. Weights of equal identity are the same weight.

    ``params`` are the learned arrays that it is computed from, with their numbers of elements.
    """

    identity: str
    shape: Shape
    dtype: int
    params: Mapping[str, int]

    @classmethod
    def stored(cls, name: str, shape: Shape, dtype: int) -> Weight:
        """Make a weight that is stored in the model."""
        return cls(name, shape, dtype, {} if dtype in INDICES else {name: prod(shape)})


def layer_call(
    node: NodeProto, given: Mapping[str, AttributeValue], own: Sequence[Weight], read: Shape | None
) -> tuple[str, Attributes] | None:
    """Return the ``nn`` function that a node corresponds to and the attributes of its call, or None.

    Args:
        node: the node.
        given: attributes of the node.
        own: all inputs after the first, as weights.
        read: shape of the first input, if known.
    """
    if not own or any(weight.dtype != TensorProto.FLOAT for weight in own):
        return None
    shape = own[0].shape
    match node.op_type, len(own):
        case "Conv", 1 | 2 if read is not None or given.get("auto_pad") not in AS_LARGE:
            return _biased("nn.Conv", own), attributes(**{**given, **_window(given, shape), "weight_shape": shape})
        case "BatchNormalization", 4 if not given.get("training_mode"):
            return "nn.BatchNormalization", attributes(weight_shape=shape)
        case "LayerNormalization", 2 if (
            len(shape) == 1 and len(node.output) == 1 and _is_last(given.get("axis", -1), read)
        ):
            return "nn.LayerNormalization", attributes(epsilon=given.get("epsilon"), weight_shape=shape)
        case "Gemm", 1 | 2 if _is_linear(given, own):
            rows = shape if given.get("transB") else shape[::-1]
            return _biased("nn.Linear", own), attributes(weight_shape=rows)
        case "MatMul", 1 if len(shape) == 2:
            return "nn.Linear", attributes(weight_shape=shape[::-1])
    return None


def _is_last(axis: AttributeValue, read: Shape | None) -> bool:
    return axis == -1 or (read is not None and axis == len(read) - 1)


def _biased(op_type: str, own: Sequence[Weight]) -> str:
    return f"{op_type}Bias" if len(own) == 2 else op_type


def _window(given: Mapping[str, AttributeValue], weight_shape: Shape) -> dict[str, AttributeValue | None]:
    """Return the attributes to drop, which the function does not have, and to set, as its defaults are for two axes."""
    explicit = given.get("auto_pad") not in AS_LARGE
    dropped = dict.fromkeys(("auto_pad", "kernel_shape") if explicit else ("kernel_shape",))
    axes = len(weight_shape) - 2
    if axes == 2:
        return dropped
    ones = (1,) * axes
    defaults = {"dilations": ones, "pads": (0,) * 2 * axes, "strides": ones}
    return dropped | {name: given.get(name, value) for name, value in defaults.items()}


def _is_linear(given: Mapping[str, AttributeValue], own: Sequence[Weight]) -> bool:
    """Return whether Gemm is a linear layer with a bias per column; factors other than 0 are part of the weights."""
    if given.get("transA") or given.get("alpha") == 0 or given.get("beta") == 0:
        return False
    columns = own[0].shape[0 if given.get("transB") else 1]
    return len(own) == 1 or (prod(own[1].shape) == columns and own[1].shape[-1:] == (columns,))
