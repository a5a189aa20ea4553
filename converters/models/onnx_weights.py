"""Sorts the arrays that a model stores into constants, which decide what is computed, and weights without values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto
from onnx.helper import make_tensor_type_proto

from converters.constants import FLOATS, read_array
from converters.errors import OnnxModelError
from converters.models.onnx_positions import (
    INDEX_INPUTS,
    QUANTISATION,
    STATE_INPUTS,
    VIEWS,
    WEIGHT_INPUTS,
    read_by_value,
    seen_at,
    value_inputs,
)
from converters.text import IR_VERSION

MAX_CONSTANT_NUMBERS = 4096  # an array with more elements is a weight, and is not constant-folded
CONSTANT_TYPES = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.STRING)
LEARNED = "nasrlm.learned"  # key in a model's metadata under which the initializers that are parameters are listed


def is_constant(tensor: TensorProto) -> bool:
    """Return whether a tensor is a constant: a short array of integers, flags or text, or a single number.

    Other tensors are weights. ``without_weights`` makes exceptions for single numbers that are known to be learned or
    are read where weights are.
    """
    count = prod(tensor.dims)
    return count <= 1 or (tensor.data_type in CONSTANT_TYPES and count <= MAX_CONSTANT_NUMBERS)


def without_weights(model: ModelProto) -> tuple[ModelProto, dict[str, TypeProto], dict[str, str]]:
    """Return a copy of the model with weights as inputs, the weights' types, and the files of constants not loaded."""
    graph = model.graph
    stored = {tensor.name: tensor for tensor in graph.initializer} | _stored_in_nodes(graph)
    needed = _needed(model, stored)
    missing = {x: _location(stored[x]) for x in needed if stored[x].data_location == TensorProto.EXTERNAL}
    constants = {x: tensor for x, tensor in stored.items() if x in needed and x not in missing}
    sizes = {x: (tensor.data_type, tensor.dims) for x, tensor in stored.items() if x not in constants}
    sizes |= {sparse.values.name: (sparse.values.data_type, sparse.dims) for sparse in graph.sparse_initializer}
    weights = {x: make_tensor_type_proto(*size) for x, size in sizes.items()}
    named = weights.keys() | constants.keys()
    light = ModelProto(ir_version=IR_VERSION, opset_import=model.opset_import, functions=model.functions)
    light.graph.name = graph.name or "network"
    light.graph.input.extend(value for value in graph.input if value.name not in named)
    light.graph.input.extend(ValueInfoProto(name=x, type=kind) for x, kind in weights.items())
    light.graph.output.extend(graph.output)
    light.graph.value_info.extend(graph.value_info)
    light.graph.node.extend(node for node in graph.node if tensor_of_constant(node) is None)
    _drop_zero_biases(light.graph.node, graph)
    for x, tensor in constants.items():
        light.graph.initializer.add().CopyFrom(tensor)
        light.graph.initializer[-1].name = x
    return light, weights, missing


def _needed(model: ModelProto, stored: Mapping[str, TensorProto]) -> set[str]:
    """Return the names of the stored arrays whose values decide what is computed."""
    nodes = model.graph.node
    by_value = read_by_value(nodes, value_inputs(model.functions))
    by_value |= seen_at(nodes, STATE_INPUTS)  # exporters store zeros there, which would look like weights
    by_value |= seen_at(nodes, INDEX_INPUTS, through=VIEWS | {"Cast"})
    learned = _learned(model)
    open_masks = _open_masks(model.graph, stored) - learned

    def is_needed(name: str, tensor: TensorProto) -> bool:
        small = prod(tensor.dims) <= MAX_CONSTANT_NUMBERS
        is_weight = name in learned and tensor.data_type in FLOATS
        return (is_constant(tensor) and not is_weight) or (small and name in by_value) or name in open_masks

    return {name for name, tensor in stored.items() if is_needed(name, tensor)}


def _learned(model: ModelProto) -> set[str]:
    """Return arrays that are weights even if of one number: listed parameters and right operands of ``MatMul``."""
    return seen_at(model.graph.node, {"MatMul": (1,)}) | (parameters(model) or set())


def parameters(model: ModelProto) -> frozenset[str] | None:
    """Return the names that the model lists as parameters; None if it has no such list."""
    named = {entry.key: entry.value for entry in model.metadata_props}.get(LEARNED)
    return None if named is None else frozenset(named.split("\n"))


def refuse_missing(graph: GraphProto, missing: Mapping[str, str]) -> None:
    """Refuse a model if external data of constants are missing; ``missing`` has the file of each array."""
    for node in graph.node if missing else ():
        weights = {*WEIGHT_INPUTS.get(node.op_type, ()), *QUANTISATION.get(node.op_type, ())}
        for index, x in enumerate(node.input):
            if x in missing and index not in weights:
                raise OnnxModelError(
                    f"expected the data of {x!r}, which determines what is computed, got none or too little. The file "
                    f"is {missing[x]!r}, next to the model."
                )


def _drop_zero_biases(nodes: Iterable[NodeProto], graph: GraphProto) -> None:
    """Drop, in place, the zeros that torch's older exporter adds as bias to a layer norm with a learned weight only."""
    learned, constants = {tensor.name for tensor in graph.initializer}, _stored_in_nodes(graph)
    norms = [node for node in nodes if node.op_type == "LayerNormalization"]
    biases = {node.input[2] for node in norms if len(node.input) == 3 and node.input[1] in learned}
    zeros = {bias for bias in biases.intersection(constants) if _is_made_of_zeros(constants[bias])}
    for node in norms:
        if node.input[-1] in zeros:
            del node.input[2:]


def _open_masks(graph: GraphProto, stored: Mapping[str, TensorProto]) -> set[str]:
    """Return the attention masks of zeros, which hide nothing, that torch's exporters made by constant folding.

    They are recognised by the guard against NaN behind the softmax, which the exporters write only for boolean masks.
    """
    makers = {x: node for node in graph.node for x in node.output}
    guards = {x: node.input[0] for x, node in makers.items() if node.op_type == "IsNaN"}
    guarded = {guards[node.input[0]] for node in graph.node if node.op_type == "Where" and node.input[0] in guards}
    scores = {makers[x].input[0] for x in guarded if x in makers and makers[x].op_type == "Softmax"}
    masked = {x for score in scores if score in makers and makers[score].op_type == "Add" for x in makers[score].input}
    return {x for x in masked.intersection(stored) if _is_made_of_zeros(stored[x])}


def _stored_in_nodes(graph: GraphProto) -> dict[str, TensorProto]:
    return {node.output[0]: value for node in graph.node if (value := tensor_of_constant(node)) is not None}


def _is_made_of_zeros(tensor: TensorProto) -> bool:
    return tensor.data_location != TensorProto.EXTERNAL and not read_array(tensor).any()


def stored_arrays(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield the arrays that a graph stores as initializers and in constant nodes."""
    yield from graph.initializer
    yield from filter(None, map(tensor_of_constant, graph.node))


def tensor_of_constant(node: NodeProto) -> TensorProto | None:
    """Return the array that a constant node stores; None for other nodes."""
    if node.op_type != "Constant" or len(node.attribute) != 1 or len(node.output) != 1:
        return None
    return node.attribute[0].t if node.attribute[0].name == "value" else None


def _location(tensor: TensorProto) -> str:
    """Return the file of a tensor's external data, as named in the model."""
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
