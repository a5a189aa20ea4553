"""Prepares ONNX models for reading: pinned opset, fixed sizes, functions inlined, weights without values.

Weight values are never used. Of external data only short arrays are read, because these may be constants that decide
what is computed, such as shapes and indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from graphlib import CycleError, TopologicalSorter
from math import prod
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import onnx
import onnx.checker
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto
from onnx.external_data_helper import load_external_data_for_tensor

from converters.errors import OnnxModelError, instead_of_file, one_line_errors
from converters.limits import excess_of_model
from converters.models.inlining import without_functions
from converters.models.input_sizes import InputShape, fix_sizes, shapes_of, with_ranks
from converters.models.one_node import place
from converters.models.onnx_fused import without_fusions
from converters.models.onnx_misfits import refuse_broken_arrays
from converters.models.onnx_opset import STANDARD_DOMAINS, to_pinned_opset
from converters.models.onnx_weights import (
    MAX_CONSTANT_NUMBERS,
    parameters,
    refuse_missing,
    stored_arrays,
    without_weights,
)
from converters.text import OWN_DOMAINS


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
    if not isinstance(path, str | PathLike):
        raise OnnxModelError(
            f"expected an ONNX model or the path of one, got {type(path).__name__}. Convert a torch module with "
            "converters.module_to_onnx_text."
        )
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
        for tensor in stored_arrays(model.graph):
            if tensor.data_location == TensorProto.EXTERNAL and prod(tensor.dims) <= MAX_CONSTANT_NUMBERS:
                _load_if_there(tensor, path.parent)
    return model


def prepare(model: ModelProto, input_shape: InputShape | None = None) -> Source:
    """Prepare a model for ``read_graph``.

    Args:
        model: a model of any opset; it is not changed.
        input_shape: shape of the first input, or of several, needed if the model leaves sizes open; see ``fix_sizes``.

    Raises:
        OnnxModelError: the model is invalid, has loops or branches that outputs depend on, leaves sizes open, lacks
            external data of constants, or cannot be converted to the pinned opset.
    """
    shapes = () if input_shape is None else shapes_of(input_shape)
    with one_line_errors("expected a valid ONNX model"):
        if excess := excess_of_model(model):
            raise OnnxModelError(f"{excess}.")
        refuse_broken_arrays(model.graph)
        light, weights, missing = without_weights(model)
        _refuse_what_the_checker_lets_pass(light)
        if not light.graph.output:
            raise OnnxModelError("expected a model with outputs, got none.")
        _sort_nodes(light.graph)
        light = with_ranks(light, shapes, weights)
        onnx.checker.check_model(light)
        light = without_functions(light)
        onnx.checker.check_model(light)  # again, because it does not look into functions
    with one_line_errors("expected fused operators as ONNX Runtime writes them"):
        without_fusions(light)
    _remove_dead_nodes(light.graph)
    _complete_outputs(light.graph)
    refuse_branches(light)
    refuse_missing(light.graph, missing)
    sizes = fix_sizes([value for value in light.graph.input if value.name not in weights], shapes)
    declared = dict(_declared_types(light, sizes))
    del light.graph.value_info[:]
    for value in light.graph.output:
        value.ClearField("type")
    light = to_pinned_opset(light)
    return Source(
        nodes=light.graph.node,
        inputs={value.name: value.type for value in light.graph.input if value.name not in weights},
        outputs=[value.name for value in light.graph.output],
        weights=weights,
        constants={tensor.name: tensor for tensor in light.graph.initializer},
        declared=declared,
        domains=_other_domains(light),
        learned=parameters(model),
    )


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


def _sort_nodes(graph: GraphProto) -> None:
    """Put every node behind those that it reads, in place; a graph in order or with a cycle is left as it is.

    ONNX demands this order, and runtimes sort the nodes themselves.
    """
    makers = {x: index for index, node in enumerate(graph.node) for x in node.output if x}
    read = {index: {makers[x] for x in node.input if x in makers} for index, node in enumerate(graph.node)}
    if all(max(before, default=-1) < index for index, before in read.items()):
        return
    with suppress(CycleError):
        nodes = [graph.node[index] for index in TopologicalSorter(read).static_order()]
        del graph.node[:]
        graph.node.extend(nodes)


def _remove_dead_nodes(graph: GraphProto) -> None:
    """Remove nodes that no output depends on.

    Nodes that only branches read are removed too; models with branches are refused afterwards.
    """
    needed = {value.name for value in graph.output}
    live: list[NodeProto] = []
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            live.append(node)
            needed.update(filter(None, node.input))
    del graph.node[:]
    graph.node.extend(reversed(live))


def _complete_outputs(graph: GraphProto) -> None:
    """Name the outputs that nodes omit, in place, so that their types are inferred, and drop omitted ones at the end.

    The statistics of a layer norm are dropped too if nothing reads them, since the ``nn`` function does not have them.
    """
    read = {x for node in graph.node for x in node.input} | {value.name for value in graph.output}
    for node in graph.node:
        while not node.output[-1] or (node.op_type == "LayerNormalization" and node.output[-1] not in read):
            node.output.pop()
        for index, x in enumerate(node.output):
            node.output[index] = x or f"{node.output[-1]}\0{index}"


def refuse_branches(model: ModelProto) -> None:
    """Refuse a model with operators that have subgraphs.

    Raises:
        OnnxModelError: there are such operators; the message names the first.
    """
    for node in model.graph.node:
        if has_branches(node):
            raise OnnxModelError(
                f"expected a network without loops and branches, got {place(node)}. Export it for fixed sizes, a torch "
                "module by torch.onnx.export(module, inputs, path, dynamo=True), or unroll it."
            )


def has_branches(node: NodeProto) -> bool:
    """Return whether a node has subgraphs."""
    return any(attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for attribute in node.attribute)


def _declared_types(model: ModelProto, sizes: Mapping[str, int]) -> Iterator[tuple[str, TypeProto]]:
    """Yield the types that the model states for its values, with named sizes filled in."""
    for value in (*model.graph.value_info, *model.graph.output):
        kind = deepcopy(value.type)
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
