"""Prepares ONNX models for reading: pinned opset, fixed sizes, functions inlined, weights without values.

Weight values are never used. Of external data only short arrays are read, because these may be constants that decide
what is computed, such as shapes and indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import NamedTuple

import onnx
import onnx.checker
import onnx.shape_inference
import onnx.version_converter
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)
from onnx.external_data_helper import load_external_data_for_tensor
from onnx.helper import make_attribute, make_tensor_type_proto

from converters.constants import FLOATS, read_array
from converters.errors import OnnxModelError, instead_of_file, one_line_errors
from converters.graph import AttributeValue, Shape
from converters.limits import excess_of_model
from converters.models.inlining import without_functions
from converters.models.input_sizes import fix_sizes, with_ranks
from converters.models.node_order import sort_nodes
from converters.models.onnx_fused import without_fusions
from converters.models.onnx_layers import QUANTISATION, WEIGHT_INPUTS
from converters.models.onnx_misfits import refuse_broken_arrays
from converters.models.onnx_positions import INDEX_INPUTS, STATE_INPUTS, VIEWS, read_by_value, seen_at, value_inputs
from converters.text import IR_VERSION, OPSET, OWN_DOMAINS

STANDARD_DOMAINS = ("", "ai.onnx")
MAX_CONSTANT_NUMBERS = 4096  # an array with more elements is a weight, and is not constant-folded
CONSTANT_TYPES = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.STRING)

LEARNED = "nasrlm.learned"  # key in a model's metadata under which the initializers that are parameters are listed
# Defaults of attributes without which onnx infers no type, or a wrong one.
EXPLICIT_DEFAULTS: Mapping[str, Mapping[str, AttributeValue]] = {
    "MeanVarianceNormalization": {"axes": (0, 2, 3)},
    "STFT": {"onesided": 1},
}
OLD_RESIZE = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}  # before opset 11


class Source(NamedTuple):
    """A prepared model.

    Attributes:
        nodes: in topological order.
        inputs: types of the inputs by name, without weights.
        outputs: names of the outputs.
        weights: types of the weights by name; their values are not kept.
        constants: arrays that decide what is computed, by name.
        declared: types that the model states for its values; used for outputs of operators of other domains, whose
            types cannot be inferred.
        domains: versions of other domains' operator sets.
        learned: names of the parameters among the weights; None if the model does not list them.
    """

    nodes: Sequence[NodeProto]
    inputs: Mapping[str, TypeProto]
    outputs: Sequence[str]
    weights: Mapping[str, TypeProto]
    constants: Mapping[str, TensorProto]
    declared: Mapping[str, TypeProto]
    domains: Mapping[str, int]
    learned: frozenset[str] | None


def read_model(path: Path | str) -> ModelProto:
    """Load an ONNX file, with external data only for arrays of up to MAX_CONSTANT_NUMBERS elements.

    Raises:
        OnnxModelError: there is no such file, or it is no ONNX model. The message is one line that names the file.
    """
    if "\n" in str(path):
        raise OnnxModelError(
            f"expected the path of an ONNX model, got text, {str(path)[:40]!r}. Convert ONNX text with "
            "converters.to_model."
        )
    path = Path(path)
    if not path.is_file():
        raise OnnxModelError(f"{path}: expected an ONNX model, got {instead_of_file(path)}.")
    with one_line_errors(f"{path}: expected an ONNX model", "Is it truncated?"):
        model = onnx.load(path, load_external_data=False)
    if not model.graph.node:
        raise OnnxModelError(f"{path}: expected a model with nodes, got none. Is it an ONNX file?")
    with one_line_errors(f"{path}: expected readable external data"):
        constants = (node.attribute[0].t for node in model.graph.node if _tensor_of_constant(node) is not None)
        for tensor in (*model.graph.initializer, *constants):
            if tensor.data_location == TensorProto.EXTERNAL and prod(tensor.dims) <= MAX_CONSTANT_NUMBERS:
                _load_if_there(tensor, path.parent)
    return model


def prepare(model: ModelProto, input_shape: Shape | None = None) -> Source:
    """Prepare a model for ``read_graph``.

    Args:
        model: a model of any opset; it is not changed.
        input_shape: shape of the first input, needed if the model leaves sizes open; see ``fix_sizes``.

    Raises:
        OnnxModelError: the model is invalid, has loops or branches that outputs depend on, leaves sizes open, lacks
            external data of constants, or cannot be converted to the pinned opset.
    """
    with one_line_errors("expected a valid ONNX model"):
        if excess := excess_of_model(model):
            raise OnnxModelError(f"{excess}.")
        refuse_broken_arrays(model.graph, filter(None, map(_tensor_of_constant, model.graph.node)))
        light, weights, missing = _without_weights(model)
        _refuse_what_the_checker_lets_pass(light)
        if not light.graph.output:
            raise OnnxModelError("expected a model with outputs, got none.")
        sort_nodes(light.graph)
        light = with_ranks(light, input_shape)
        onnx.checker.check_model(light)
        light = without_functions(light)
        onnx.checker.check_model(light)  # again, because it does not look into functions
    without_fusions(light)
    _remove_dead_nodes(light.graph)
    refuse_branches(light)
    _refuse_missing(light.graph, missing)
    sizes = fix_sizes([value for value in light.graph.input if value.name not in weights], input_shape)
    declared = dict(_declared_types(light, sizes))
    del light.graph.value_info[:]
    for value in light.graph.output:
        value.ClearField("type")
    resized = _resized_before_11(light)
    if _opset(light) != OPSET:
        _refuse_old_hardmax(light)
        with one_line_errors(f"expected a model that converts to opset {OPSET}"):
            # Some conversions depend on shapes.
            light = onnx.version_converter.convert_version(onnx.shape_inference.infer_shapes(light), OPSET)
    for node in light.graph.node:
        if not resized.isdisjoint(node.output):
            node.input[1] = ""  # the regions, which the conversion invents
            _add_missing(node, OLD_RESIZE)
        _add_missing(node, EXPLICIT_DEFAULTS.get(node.op_type, {}))
        if node.op_type == "Pad" and node.domain in STANDARD_DOMAINS:
            _remove_attribute(node, "value")  # the conversion leaves it in modes that do not use it
    return Source(
        nodes=light.graph.node,
        inputs={value.name: value.type for value in light.graph.input if value.name not in weights},
        outputs=[value.name for value in light.graph.output],
        weights=weights,
        constants={tensor.name: tensor for tensor in light.graph.initializer},
        declared=declared,
        domains=_other_domains(light),
        learned=_parameters(model),
    )


def is_constant(tensor: TensorProto) -> bool:
    """Return whether a tensor is a constant: a short array of integers, flags or text, or a single number.

    Other tensors are weights.
    ``prepare`` makes exceptions for single numbers that are known to be learned or are read where weights are.
    """
    return prod(tensor.dims) <= 1 or _shapes_computation(tensor)


def _learned(model: ModelProto) -> set[str]:
    """Return arrays that are weights even if of one number: listed parameters and right operands of ``MatMul``."""
    return seen_at(model.graph.node, {"MatMul": (1,)}) | (_parameters(model) or set())


def _parameters(model: ModelProto) -> frozenset[str] | None:
    """Return the names that the model lists as parameters; None if it has no such list."""
    named = {entry.key: entry.value for entry in model.metadata_props}.get(LEARNED)
    return None if named is None else frozenset(named.split("\n"))


def _shapes_computation(tensor: TensorProto) -> bool:
    return tensor.data_type in CONSTANT_TYPES and prod(tensor.dims) <= MAX_CONSTANT_NUMBERS


def _without_weights(model: ModelProto) -> tuple[ModelProto, dict[str, TypeProto], dict[str, str]]:
    """Return a copy of the model with weights as inputs, the weights' types, and the files of constants not loaded."""
    graph = model.graph
    light = ModelProto(ir_version=IR_VERSION, opset_import=model.opset_import, functions=model.functions)
    light.graph.name = graph.name or "network"
    light.graph.output.extend(graph.output)
    light.graph.value_info.extend(graph.value_info)
    kept = read_by_value(graph.node, value_inputs(model.functions))
    kept |= seen_at(graph.node, STATE_INPUTS)  # exporters store zeros there, which would look like weights
    kept |= seen_at(graph.node, INDEX_INPUTS, through=VIEWS | {"Cast"})
    learned = _learned(model)
    open_masks = _open_masks(graph) - learned
    missing: dict[str, str] = {}

    def is_kept(name: str, tensor: TensorProto) -> bool:
        small = prod(tensor.dims) <= MAX_CONSTANT_NUMBERS
        is_weight = name in learned and tensor.data_type in FLOATS
        is_needed = (is_constant(tensor) and not is_weight) or (small and name in kept) or name in open_masks
        if is_needed and tensor.data_location == TensorProto.EXTERNAL:
            missing[name] = _location(tensor)
        return is_needed and name not in missing

    zero_biases = _zero_biases(graph)
    weights: dict[str, TypeProto] = {}
    for tensor in graph.initializer:
        if is_kept(tensor.name, tensor):
            light.graph.initializer.append(tensor)
        else:
            weights[tensor.name] = make_tensor_type_proto(tensor.data_type, tensor.dims)
    for sparse in graph.sparse_initializer:
        weights[sparse.values.name] = make_tensor_type_proto(sparse.values.data_type, sparse.dims)
    for node in graph.node:
        value = _tensor_of_constant(node)
        if value is None:
            light.graph.node.append(node)
            if node.op_type == "LayerNormalization" and node.input[-1] in zero_biases:
                del light.graph.node[-1].input[2:]
        elif is_kept(node.output[0], value):
            light.graph.initializer.add().CopyFrom(value)
            light.graph.initializer[-1].name = node.output[0]
        else:
            weights[node.output[0]] = make_tensor_type_proto(value.data_type, value.dims)
    named = {tensor.name for tensor in light.graph.initializer} | weights.keys()
    light.graph.input.extend(value for value in graph.input if value.name not in named)
    light.graph.input.extend(ValueInfoProto(name=name, type=kind) for name, kind in weights.items())
    return light, weights, missing


def _refuse_missing(graph: GraphProto, missing: Mapping[str, str]) -> None:
    """Refuse a model if external data of constants are missing; ``missing`` has the file of each array."""
    for node in graph.node if missing else ():
        weights = {*WEIGHT_INPUTS.get(node.op_type, ()), *QUANTISATION.get(node.op_type, ())}
        for index, x in enumerate(node.input):
            if x in missing and index not in weights:
                raise OnnxModelError(
                    f"expected the data of {x!r}, which determines what is computed, got none or too little. The file "
                    f"is {missing[x]!r}, next to the model."
                )


def _zero_biases(graph: GraphProto) -> set[str]:
    """Return the zeros that torch's older exporter adds as bias to a layer norm which has a learned weight only."""
    learned = {tensor.name for tensor in graph.initializer}
    constants = _stored_in_nodes(graph)
    biases = [
        node.input[2]
        for node in graph.node
        if node.op_type == "LayerNormalization" and len(node.input) == 3 and node.input[1] in learned
    ]
    return {bias for bias in biases if bias in constants and _is_made_of_zeros(constants[bias])}


def _open_masks(graph: GraphProto) -> set[str]:
    """Return the attention masks of zeros, which hide nothing, that torch's exporters made by constant folding.

    They are recognised by the guard against NaN behind the softmax, which the exporters write only for boolean masks.
    """
    makers = {x: node for node in graph.node for x in node.output}
    guards = {x: node.input[0] for x, node in makers.items() if node.op_type == "IsNaN"}
    guarded = {guards[node.input[0]] for node in graph.node if node.op_type == "Where" and node.input[0] in guards}
    scores = {makers[x].input[0] for x in guarded if x in makers and makers[x].op_type == "Softmax"}
    masked = {x for score in scores if score in makers and makers[score].op_type == "Add" for x in makers[score].input}
    arrays = {tensor.name: tensor for tensor in graph.initializer} | _stored_in_nodes(graph) if masked else {}
    return {x for x in masked.intersection(arrays) if _is_made_of_zeros(arrays[x])}


def _stored_in_nodes(graph: GraphProto) -> dict[str, TensorProto]:
    return {node.output[0]: value for node in graph.node if (value := _tensor_of_constant(node)) is not None}


def _is_made_of_zeros(tensor: TensorProto) -> bool:
    return tensor.data_location != TensorProto.EXTERNAL and not read_array(tensor).any()


def _tensor_of_constant(node: NodeProto) -> TensorProto | None:
    if node.op_type != "Constant" or len(node.attribute) != 1 or len(node.output) != 1:
        return None
    return node.attribute[0].t if node.attribute[0].name == "value" else None


def _refuse_what_the_checker_lets_pass(model: ModelProto) -> None:
    """Refuse names that are not UTF-8 and unknown element types."""
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    names = [x for node in nodes for x in (node.op_type, node.domain, *node.input, *node.output)]
    names += [attribute.name for node in nodes for attribute in node.attribute]
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        tensor = value.type.tensor_type
        names += [value.name, *(size.dim_param for size in tensor.shape.dim)]
        if tensor.elem_type not in TensorProto.DataType.values():
            raise OnnxModelError(f"value {value.name!r}: expected a known element type, got {tensor.elem_type}.")
    for name in names:
        if not isinstance(name, str):  # protobuf gives bytes where they are not UTF-8
            raise OnnxModelError(f"expected names in UTF-8, got {name!r}.")


def _remove_dead_nodes(graph: GraphProto) -> None:
    """Remove nodes that no output depends on.

    Nodes that only branches read are removed too; models with branches are refused afterwards.
    """
    needed = {value.name for value in graph.output}
    live: list[NodeProto] = []
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            live.append(node)
            needed.update(node.input)
    del graph.node[:]
    graph.node.extend(reversed(live))


def refuse_branches(model: ModelProto) -> None:
    """Refuse a model with operators that have subgraphs.

    Raises:
        OnnxModelError: there are such operators; the message names the first.
    """
    for node in model.graph.node:
        if has_branches(node):
            raise OnnxModelError(
                f"expected a network without loops and branches, got {node.op_type} "
                f"{node.name or next(iter(node.output), '')!r}. Export it for fixed sizes, a torch module by "
                "torch.onnx.export(module, inputs, path, dynamo=True), or unroll it."
            )


def has_branches(node: NodeProto) -> bool:
    """Return whether a node has subgraphs."""
    return any(attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for attribute in node.attribute)


def _opset(model: ModelProto) -> int:
    """Return the lowest opset of the standard operators that the model imports; the pinned one if it imports none."""
    return min([entry.version for entry in model.opset_import if entry.domain in STANDARD_DOMAINS], default=OPSET)


def _add_missing(node: NodeProto, defaults: Mapping[str, AttributeValue]) -> None:
    """Add default attributes that the node does not have."""
    for name, value in defaults.items():
        if all(attribute.name != name for attribute in node.attribute):
            node.attribute.append(make_attribute(name, value))


def _remove_attribute(node: NodeProto, name: str) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)


def _resized_before_11(model: ModelProto) -> set[str]:
    """Return outputs of resizes before opset 11, whose coordinates differ; onnx's version converter ignores that."""
    resizes = [node for node in model.graph.node if node.op_type in ("Resize", "Upsample") and _opset(model) < 11]
    return {output for node in resizes if node.domain in STANDARD_DOMAINS for output in node.output}


def _refuse_old_hardmax(model: ModelProto) -> None:
    """Refuse Hardmax before opset 13: it flattened all axes from its axis on, and onnx's converter ignores that."""
    for node in model.graph.node:
        if node.op_type == "Hardmax" and node.domain in STANDARD_DOMAINS and _opset(model) < 13:
            raise OnnxModelError(
                f"expected Hardmax of opset 13 or later, got {next(iter(node.output))!r} of opset {_opset(model)}. "
                "Export it with a later opset."
            )


def _declared_types(model: ModelProto, sizes: Mapping[str, int]) -> Iterator[tuple[str, TypeProto]]:
    """Yield the types that the model states for its values, with named sizes filled in."""
    for value in (*model.graph.value_info, *model.graph.output):
        kind = TypeProto()
        kind.CopyFrom(value.type)
        for size in kind.tensor_type.shape.dim if kind.tensor_type.HasField("shape") else ():
            if size.dim_param in sizes:
                size.dim_value = sizes[size.dim_param]
        yield value.name, kind


def _other_domains(model: ModelProto) -> dict[str, int]:
    called = {node.domain for node in model.graph.node}.difference(STANDARD_DOMAINS, OWN_DOMAINS)
    return {entry.domain: entry.version for entry in model.opset_import if entry.domain in called}


def _load_if_there(tensor: TensorProto, folder: Path) -> None:
    with suppress(OSError, ValueError, onnx.checker.ValidationError):  # treated as missing
        load_external_data_for_tensor(tensor, str(folder))
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def _location(tensor: TensorProto) -> str:
    """Return the file of a tensor's external data, as named in the model."""
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
