"""Classifies the values of a model: constants with known elements, weights with known shape and type, and others.

A value computed from constants alone is a constant; one computed from weights and constants is a weight.
"""

from __future__ import annotations

import hashlib
from copy import deepcopy
from math import prod

import numpy as np
import onnx.shape_inference
from onnx import NodeProto, TypeProto
from onnx.helper import make_tensor_type_proto, np_dtype_to_tensor_dtype, tensor_dtype_to_np_dtype

from converters.constants import Array, counts_as_weight, read_array
from converters.errors import OnnxModelError
from converters.graph import Shape, union
from converters.models.one_node import attributes_of, evaluate, infer_types, place
from converters.models.onnx_layers import Weight
from converters.models.onnx_misfits import misfit
from converters.models.onnx_model import Source
from converters.models.onnx_opset import STANDARD_DOMAINS
from converters.models.onnx_positions import STATISTICS, WEIGHT_INPUTS, read_by_value
from converters.models.onnx_weights import MAX_CONSTANT_NUMBERS, is_constant
from converters.tensor_types import element_type, static_shape

# Excluded from constant folding: random operators, and the rounding that defines quantised networks.
NEVER_FOLDED = frozenset({"Bernoulli", "DequantizeLinear", "DynamicQuantizeLinear", "Multinomial", "QuantizeLinear"})
ALIASES = frozenset({"Constant", "Identity"})  # operators whose output is a weight with an identity of its own
SIZED_BY_VALUES = frozenset({"Compress", "NonZero", "Unique"})  # their outputs are about as small as their inputs


class Values:
    """The values known so far. For each node, call ``infer`` for the types of its outputs, then ``take_in``."""

    def __init__(self, source: Source) -> None:
        self.types: dict[str, TypeProto] = {**source.inputs, **source.weights}
        self.arrays = {x: read_array(tensor) for x, tensor in source.constants.items()}
        # For arrays made by constant folding, the node that makes them, if the text has its inputs in full.
        self.computed: dict[str, NodeProto] = {}
        self._learned = source.learned
        self.weights = {x: self._stored(x, kind) for x, kind in source.weights.items()}
        self.in_full = read_by_value(source.nodes)
        self._declared = source.declared

    def shape(self, x: str) -> Shape | None:
        """Return the shape of a value, or None if a size is unknown."""
        return static_shape(self.types.get(x))

    def is_empty(self, x: str) -> bool:
        """Return whether a value is known to have no elements; older exporters mark omitted operands that way."""
        return x in self.arrays and not self.arrays[x].size

    def weight_at(self, node: NodeProto, index: int) -> Weight | None:
        """Return an input as a weight, or None; a constant counts as one if this input of the operator is a weight."""
        x = node.input[index]
        if x in self.arrays and index in WEIGHT_INPUTS.get(node.op_type, ()):
            array = self.arrays[x]
            return self._stored(x, make_tensor_type_proto(np_dtype_to_tensor_dtype(array.dtype), array.shape))
        weight = self.weights.get(x)
        if weight and node.op_type == "BatchNormalization" and index in STATISTICS:
            return weight._replace(params={})
        return weight

    def infer(self, node: NodeProto) -> None:
        """Infer the types of a node's outputs.

        Raises:
            OnnxModelError: the node does not accept such inputs.
        """
        if node.domain in (*STANDARD_DOMAINS, "nn"):
            try:
                self.types.update(infer_types(_unbiased(node), self.types, self.arrays))
            except (onnx.shape_inference.InferenceError, ValueError, RuntimeError) as e:
                if all(x in self.types or x in self.arrays for x in node.input if x):
                    got = " ".join(str(e).split())
                    raise OnnxModelError(f"{place(node)}: expected inputs that fit, got: {got}") from e
                # Otherwise it reads an output of another domain's operator, whose type is unknown.
            if got := misfit(node, self.shape, self.arrays):
                raise OnnxModelError(f"{place(node)}: expected inputs that fit, got {got}.")
        for x in node.output:
            if x in self._declared and not self.types.get(x, TypeProto()).tensor_type.HasField("shape"):
                self.types[x] = self._declared[x]

    def take_in(self, node: NodeProto) -> bool:
        """Record the outputs of a node if they are constants or weights; return whether they are."""
        if arrays := self._computed(node):
            self.arrays.update(arrays)
            if node.op_type not in ("Constant", "Shape") and not any(self._has_only_shape(x) for x in node.input):
                self.computed.update(dict.fromkeys(arrays, node))
        elif weights := self._made_of_weights(node):
            for x, weight in weights.items():
                if 0 in weight.shape:  # an empty array is no weight, but a known constant
                    self.arrays[x] = np.empty(weight.shape, tensor_dtype_to_np_dtype(weight.dtype))
                else:
                    self.weights[x] = weight
        else:
            return False
        return True

    def _has_only_shape(self, x: str) -> bool:
        """Return whether the text has only the shape of an array, so that values computed from it are weights."""
        return x in self.arrays and x not in self.computed and counts_as_weight(self.arrays[x])

    def _computed(self, node: NodeProto) -> dict[str, Array] | None:
        """Return the outputs of a node with constant inputs, or of ``Shape`` of a known shape; None otherwise."""
        if node.op_type == "Constant" and node.domain in STANDARD_DOMAINS:
            return self._constant(node)
        if node.op_type == "Shape" and node.domain in STANDARD_DOMAINS:
            shape = self.shape(node.input[0])
            if shape is not None:
                given = {attribute.name: attribute.i for attribute in node.attribute}
                return {node.output[0]: np.array(shape[given.get("start") : given.get("end")], dtype=np.int64)}
        if all(x in self.arrays for x in node.input if x) and self._may_compute(node):
            return evaluate(node, self.arrays)
        return None

    def _constant(self, node: NodeProto) -> dict[str, Array] | None:
        tensor = next((attribute.t for attribute in node.attribute if attribute.name == "value"), None)
        if tensor is None:
            return evaluate(node, {})
        if is_constant(tensor) or node.output[0] in self.in_full:
            return {node.output[0]: read_array(tensor)}
        return None

    def _may_compute(self, node: NodeProto) -> bool:
        if not _is_foldable(node):
            return False
        shapes = [self.shape(x) for x in node.output if x]
        small = all(shape is not None and prod(shape) <= MAX_CONSTANT_NUMBERS for shape in shapes)
        return small or node.op_type in SIZED_BY_VALUES

    def _made_of_weights(self, node: NodeProto) -> dict[str, Weight] | None:
        if node.op_type == "Weight" and node.domain == "nn":
            return {node.output[0]: self._stored(node.output[0], self.types[node.output[0]])}
        operands = [x for x in node.input if x]
        if not all(x in self.weights or x in self.arrays for x in operands) or not _is_foldable(node):
            return None
        if node.op_type != "Constant" and not any(x in self.weights or self._has_only_shape(x) for x in operands):
            return None
        if any(self.shape(x) is None for x in node.output):
            return None
        identity = self._identity(node)
        made = {x: self._stored(f"{identity}.{index}", self.types[x]) for index, x in enumerate(node.output)}
        if node.op_type in ALIASES and self._learned is None:
            return made
        params = union(self.weights[x].params for x in operands if x in self.weights)
        return {x: weight._replace(params=params) for x, weight in made.items()}

    def _stored(self, x: str, kind: TypeProto) -> Weight:
        """Return a weight that is stored in the model."""
        weight = Weight.stored(x, static_shape(kind) or (), element_type(kind))
        return weight if self._learned is None or x in self._learned else weight._replace(params={})

    def _identity(self, node: NodeProto) -> str:
        """Return the identity of a computed weight, which is equal for equal computations on the same weights.

        NOTE: the output of Identity is a different weight, because exporters use Identity to share one array between
        layers whose weights happen to be equal, like those of new batch norms.
        """
        if node.op_type in ALIASES:
            return str(node.output[0])
        operands = [
            self.weights[x].identity if x in self.weights else _digest(self.arrays[x]) if x else "" for x in node.input
        ]
        values = sorted((name, str(value)) for name, value in attributes_of(node).items())
        return f"{node.op_type}{values}({', '.join(operands)})"


def _unbiased(node: NodeProto) -> NodeProto:
    """Return ``LinearBias`` as ``Linear`` for type inference.

    Inference does not know the size of the bias, so adding it might seem to broadcast an output of size 1 to any size.
    """
    if node.domain != "nn" or node.op_type != "LinearBias":
        return node
    plain = deepcopy(node)
    plain.op_type = "Linear"
    return plain


def _is_foldable(node: NodeProto) -> bool:
    by_chance = node.op_type.startswith("Random") or (node.op_type == "Dropout" and len(node.input) > 1)
    return node.domain in STANDARD_DOMAINS and node.op_type not in NEVER_FOLDED and not by_chance


def _digest(array: Array) -> str:
    return f"{array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}"
