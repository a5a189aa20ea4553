"""A node by itself: the types of what it makes, and where its inputs are known, what it makes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnx.shape_inference
from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto, numpy_helper

from converters.constants import Array
from converters.text import IR_VERSION, OPSET, prelude_functions


def infer_types(node: NodeProto, types: Mapping[str, TypeProto], arrays: Mapping[str, Array]) -> dict[str, TypeProto]:
    """Types of a node's outputs, those that can be told.

    Raises:
        onnx.shape_inference.InferenceError: the node does not take such inputs.
    """
    inferred = onnx.shape_inference.infer_shapes(_alone(node, types, arrays), check_type=True, strict_mode=True)
    told = {value.name: value.type for value in inferred.graph.output if value.type.WhichOneof("value")}
    if node.op_type == "GroupNormalization" and node.input[0] in types:  # a function; ONNX does not follow its body
        told[node.output[0]] = types[node.input[0]]
    return told


def evaluate(node: NodeProto, arrays: Mapping[str, Array]) -> dict[str, Array] | None:
    """What a node makes of known inputs; None where the reference evaluator cannot tell."""
    from onnx.reference import ReferenceEvaluator  # takes half a second to import

    try:
        with np.errstate(all="ignore"):  # a division by zero is the model's affair
            outputs = ReferenceEvaluator(_alone(node, {}, arrays)).run(None, {})
    except Exception:  # whatever it lacks, the node then stays
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
