"""A single node of a model: its place in messages, its attributes, type inference and evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.shape_inference
from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto, numpy_helper
from onnx.helper import get_attribute_value

from converters.constants import Array
from converters.text import IR_VERSION, OPSET, prelude_functions


def place(node: NodeProto) -> str:
    """Return the place of an error in a model for messages: the operator, and the node's name or its first output."""
    return f"{node.op_type} {node.name or next(iter(node.output), '')!r}"


def attributes_of(node: NodeProto) -> dict[str, Any]:
    """Return the values of a node's attributes by name; text is bytes."""
    return {attribute.name: get_attribute_value(attribute) for attribute in node.attribute}


def integer_of(node: NodeProto, name: str, default: int) -> int:
    """Return an integer attribute of a node."""
    return next((attribute.i for attribute in node.attribute if attribute.name == name), default)


def infer_types(node: NodeProto, types: Mapping[str, TypeProto], arrays: Mapping[str, Array]) -> dict[str, TypeProto]:
    """Return the types of a node's outputs, as far as they can be inferred.

    Raises:
        onnx.shape_inference.InferenceError: the node does not accept such inputs.
    """
    model = onnx.shape_inference.infer_shapes(_alone(node, types, arrays), check_type=True, strict_mode=True)
    inferred = {value.name: value.type for value in model.graph.output if value.type.WhichOneof("value")}
    if node.op_type == "GroupNormalization" and node.input[0] in types:  # ONNX defines it as a function: not inferred
        inferred[node.output[0]] = types[node.input[0]]
    return inferred


def evaluate(node: NodeProto, arrays: Mapping[str, Array]) -> dict[str, Array] | None:
    """Return the outputs of a node for known inputs; None if the reference evaluator cannot compute them."""
    from onnx.reference import ReferenceEvaluator  # takes half a second to import

    try:
        with np.errstate(all="ignore"):  # the model may divide by zero
            outputs = ReferenceEvaluator(_alone(node, {}, arrays)).run(None, {})
    except Exception:  # of any kind; the node then stays in the graph
        return None
    return dict(zip([x for x in node.output if x], outputs, strict=True))


def _alone(node: NodeProto, types: Mapping[str, TypeProto], arrays: Mapping[str, Array]) -> ModelProto:
    model = ModelProto(ir_version=IR_VERSION)
    model.opset_import.add(domain="", version=OPSET)
    if node.domain == "nn":
        model.opset_import.add(domain="nn", version=1)
        model.functions.extend(prelude_functions())
    model.graph.name = "node"
    model.graph.node.append(node)
    for x in dict.fromkeys(node.input):
        if x in arrays:
            model.graph.initializer.append(numpy_helper.from_array(arrays[x], x))
        elif x:
            model.graph.input.append(ValueInfoProto(name=x, type=types.get(x)))
    model.graph.output.extend(ValueInfoProto(name=x) for x in node.output if x)
    return model
