"""Undoes what torch's exporters write in a roundabout way, node by node while a model is read."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from itertools import accumulate, pairwise

import numpy as np
from onnx import NodeProto
from onnx.helper import make_node, np_dtype_to_tensor_dtype

from converters.constants import Array
from converters.models.one_node import attributes_of, integer_of
from converters.models.onnx_opset import STANDARD_DOMAINS
from converters.models.onnx_values import Values
from converters.tensor_types import element_type
from converters.windows import both_sides

BIASED = frozenset({"Conv", "ConvTranspose"})  # operators whose third input is a bias
POOLS = frozenset({"AveragePool", "MaxPool"})


class Plainer:
    """Replaces nodes by plainer ones that compute the same; needs the values known so far."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._splits: dict[str, NodeProto] = {}  # SplitToSequence nodes by their output

    def plain(self, node: NodeProto) -> NodeProto:
        """Return a plainer node; its types must have been inferred.

        Replaced are casts to the type that a value has, splits into sequences, and gathers of all elements in order
        that only add axes. ``Dropout`` at inference keeps one input, and dilated pools get explicit padding.
        """
        if node.domain not in STANDARD_DOMAINS:
            return node
        if node.op_type == "SplitToSequence":
            self._splits[node.output[0]] = node
        if node.op_type == "SequenceAt":
            return self._slice(node)
        if node.op_type in ("Cast", "CastLike"):
            return self._cast(node)
        if node.op_type == "Dropout" and not self._is_training(node):
            return make_node("Dropout", node.input[:1], node.output, node.name)
        if node.op_type in POOLS:
            return self._with_pads(node)
        if node.op_type == "Gather" and self._keeps_order(node):
            sizes = f"{node.output[0]}\0sizes"
            self._values.arrays[sizes] = np.array(self._values.shape(node.output[0]))
            return make_node("Reshape", [node.input[0], sizes], node.output, node.name)
        return node

    def without_zero_bias(self, node: NodeProto) -> NodeProto:
        """Return a convolution without a bias of zeros, which torch 2.13 makes of a wrong shape for ``Conv3d``."""
        is_biased = node.domain in STANDARD_DOMAINS and node.op_type in BIASED and len(node.input) == 3
        if not is_biased or not self._is_made_of_zeros(node.input[2]):
            return node
        without = deepcopy(node)
        del without.input[2:]
        return without

    def _slice(self, node: NodeProto) -> NodeProto:
        """Replace an element of a split sequence by a slice of the tensor, or by a gather if the axis is dropped."""
        split, index = self._splits.get(node.input[0]), self._values.arrays.get(node.input[1])
        if split is None or index is None:
            return node
        given = self._values.arrays.get(split.input[1]) if len(split.input) > 1 else np.array(1)
        shape, axis = self._values.shape(split.input[0]), integer_of(split, "axis", 0)
        borders = _borders(given, shape[axis]) if given is not None and shape else []
        if index.size != 1 or not -len(borders) <= index.item() < len(borders):
            return node
        # NOTE: this follows torch and ONNX Runtime; the ONNX specification ignores ``keepdims`` if a size is given.
        if given is not None and given.shape == () and given == 1 and not integer_of(split, "keepdims", 1):
            return self._part(node, "Gather", split.input[0], {"index": np.array(index.item())}, axis)
        start, end = borders[int(index.item())]
        bounds = {name: np.array([number]) for name, number in (("starts", start), ("ends", end), ("axes", axis))}
        return self._part(node, "Slice", split.input[0], bounds)

    def _part(
        self, node: NodeProto, op_type: str, x: str, numbers: Mapping[str, Array], axis: int | None = None
    ) -> NodeProto:
        """Return a node that makes the output of ``node`` from ``x`` and constant operands."""
        operands = {f"{node.output[0]}\0{name}": array for name, array in numbers.items()}
        self._values.arrays.update(operands)
        part = make_node(op_type, [x, *operands], node.output, node.name, axis=axis)
        self._values.infer(part)
        return part

    def _cast(self, node: NodeProto) -> NodeProto:
        """Replace a cast to the type that a value already has by Identity."""
        x, output = node.input[0], node.output[0]
        wanted = element_type(self._values.types.get(output))
        if not wanted:
            return node
        array = self._values.arrays.get(x)
        given = element_type(self._values.types.get(x)) if array is None else np_dtype_to_tensor_dtype(array.dtype)
        if given == wanted and x not in self._values.weights:  # Identity would give a weight another identity
            return make_node("Identity", [x], [output], node.name)
        return node if node.op_type == "Cast" else make_node("Cast", [x], [output], node.name, to=wanted)

    def _with_pads(self, node: NodeProto) -> NodeProto:
        """Replace ``auto_pad`` of a dilated pool by explicit padding.

        NOTE: this follows ONNX Runtime, which pads as if windows were not dilated; by the ONNX specification, the
        output would be larger.
        """
        given = attributes_of(node)
        shape, side = self._values.shape(node.input[0]), given.pop("auto_pad", b"")
        if not shape or side not in (b"SAME_LOWER", b"SAME_UPPER") or max(given.get("dilations", (1,))) == 1:
            return node
        strides = given.get("strides", (1,) * len(given["kernel_shape"]))
        sizes = zip(shape[2:], given["kernel_shape"], strides, strict=True)
        missing = [max((-(-n // stride) - 1) * stride + k - n, 0) for n, k, stride in sizes]
        given["pads"] = both_sides(missing, more_behind=side == b"SAME_UPPER")
        padded = make_node(node.op_type, node.input, node.output, node.name, **given)
        self._values.infer(padded)
        return padded

    def _is_training(self, node: NodeProto) -> bool:
        """Return whether a ``Dropout`` is or may be in training mode."""
        mode = node.input[2] if len(node.input) > 2 else ""
        return mode != "" and (mode not in self._values.arrays or bool(self._values.arrays[mode].any()))

    def _keeps_order(self, node: NodeProto) -> bool:
        """Return whether a ``Gather`` takes all elements of an axis in order and only splits the axis."""
        indices, shape = self._values.arrays.get(node.input[1]), self._values.shape(node.input[0])
        if indices is None or indices.ndim < 2 or not shape or self._values.shape(node.output[0]) is None:
            return False
        return bool(np.array_equal(indices.ravel(), np.arange(shape[integer_of(node, "axis", 0)])))

    def _is_made_of_zeros(self, x: str) -> bool:
        """Return whether an array is all zeros and was computed, not stored in the model, so that it is not learned."""
        return x in self._values.computed and not self._values.arrays[x].any()


def _borders(sizes: Array, size: int) -> list[tuple[int, int]]:
    """Return start and end of each part of a split; a scalar is the size of all parts but a smaller last one."""
    given = [int(number) for number in sizes.ravel()]
    if not given or min(given) < (0 if sizes.ndim else 1):  # torch splits 4 into 3 parts as 2, 2 and 0
        return []
    starts = list(accumulate(given, initial=0))[:-1] if sizes.ndim else range(0, size, given[0])
    return list(pairwise((*starts, size)))
