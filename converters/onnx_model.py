"""Any ONNX model made ready to be read: pinned opset, fixed sizes, functions written out, weights without values.

Weight values are never looked at: of external data only small integers are read, which shape the computation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import NamedTuple

import onnx
import onnx.checker
import onnx.inliner
import onnx.shape_inference
import onnx.version_converter
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto
from onnx.external_data_helper import load_external_data_for_tensor
from onnx.helper import make_tensor_type_proto

from converters.graph import Shape
from converters.text import IR_VERSION, OPSET, OWN_DOMAINS, prelude_functions

STANDARD_DOMAINS = ("", "ai.onnx")
LAYER_FUNCTIONS = ("BatchNormalization", "Bias", "Conv", "ConvBias", "LayerNormalization", "Linear", "LinearBias")
MAX_CONSTANT_NUMBERS = 4096  # an array larger than this is a weight, and not computed ahead
CONSTANT_TYPES = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.STRING)
VALUE_INPUTS = {"Resize": (1, 2), "Upsample": (1,), "OneHot": (2,)}


class OnnxModelError(ValueError):
    """A file or model that cannot be read as a network."""


class Source(NamedTuple):
    """What a model computes.

    Weights are known by type alone. ``declared`` are the types that the model gives to what operators of other
    domains make: nothing else knows them.
    """

    nodes: Sequence[NodeProto]
    inputs: Mapping[str, TypeProto]
    outputs: Sequence[str]
    weights: Mapping[str, TypeProto]
    constants: Mapping[str, TensorProto]
    declared: Mapping[str, TypeProto]
    domains: Mapping[str, int]


def read_model(path: Path | str) -> ModelProto:
    """Load an ONNX file; of its external data nothing but small integers.

    Raises:
        OnnxModelError: no such file, or not an ONNX model; one line naming the file.
    """
    path = Path(path)
    if not path.is_file():
        raise OnnxModelError(f"{path}: expected an ONNX model, got no such file.")
    with _one_line_errors(f"{path}: expected an ONNX model", "Is it truncated?"):
        model = onnx.load(path, load_external_data=False)
    if not model.graph.node:
        raise OnnxModelError(f"{path}: expected a model with nodes, got none. Is it an ONNX file?")
    with _one_line_errors(f"{path}: expected readable external data"):
        for tensor in model.graph.initializer:
            if tensor.data_location == TensorProto.EXTERNAL and _shapes_computation(tensor):
                _load_if_there(tensor, path.parent)
    return model


def prepare(model: ModelProto, input_shape: Shape | None = None) -> Source:
    """Bring a model into the one form that is read.

    Args:
        model: of any opset from 11 on; it is left as it is.
        input_shape: of the first input. Other inputs take sizes of the same name from it; a batch size that
            nothing tells is 1.

    Raises:
        OnnxModelError: the model is invalid, has loops or branches, leaves sizes open, or cannot be brought to
            the pinned opset.
    """
    light, weights = _without_weights(model)
    with _one_line_errors("expected a valid ONNX model"):
        onnx.checker.check_model(light)
        light = _without_functions(light)
    _refuse_branches(light)
    own_inputs = [value for value in light.graph.input if value.name not in weights]
    sizes = _fix_sizes(own_inputs, input_shape)
    declared = dict(_declared_types(light, sizes))
    del light.graph.value_info[:]
    for value in light.graph.output:
        value.ClearField("type")
    if any(entry.domain in STANDARD_DOMAINS and entry.version != OPSET for entry in light.opset_import):
        with _one_line_errors(f"expected a model that converts to opset {OPSET}"):
            # Some conversions depend on shapes.
            light = onnx.version_converter.convert_version(onnx.shape_inference.infer_shapes(light), OPSET)
    return Source(
        nodes=light.graph.node,
        inputs={value.name: value.type for value in light.graph.input if value.name not in weights},
        outputs=[value.name for value in light.graph.output],
        weights=weights,
        constants={tensor.name: tensor for tensor in light.graph.initializer},
        declared=declared,
        domains=_other_domains(light),
    )


def is_constant(tensor: TensorProto) -> bool:
    """Does the tensor say what is computed? Integers and flags do, and single numbers; other floats are weights."""
    if tensor.data_location == TensorProto.EXTERNAL:
        return False
    return prod(tensor.dims) <= 1 or _shapes_computation(tensor)


def value_inputs(nodes: Sequence[NodeProto]) -> set[str]:
    """Floats that say what is computed, though they may be more than one number."""
    return {x for node in nodes for i in VALUE_INPUTS.get(node.op_type, ()) for x in node.input[i : i + 1]}


def _shapes_computation(tensor: TensorProto) -> bool:
    return tensor.data_type in CONSTANT_TYPES and prod(tensor.dims) <= MAX_CONSTANT_NUMBERS


def _without_weights(model: ModelProto) -> tuple[ModelProto, dict[str, TypeProto]]:
    """A copy of the model in which weights are inputs, and their types."""
    graph = model.graph
    light = ModelProto(ir_version=IR_VERSION, opset_import=model.opset_import, functions=model.functions)
    light.graph.name = graph.name or "network"
    light.graph.output.extend(graph.output)
    light.graph.value_info.extend(graph.value_info)
    by_value = value_inputs(graph.node)
    weights: dict[str, TypeProto] = {}
    for tensor in graph.initializer:
        small = tensor.name in by_value and prod(tensor.dims) <= MAX_CONSTANT_NUMBERS
        if is_constant(tensor) or (small and tensor.data_location != TensorProto.EXTERNAL):
            light.graph.initializer.append(tensor)
        else:
            weights[tensor.name] = make_tensor_type_proto(tensor.data_type, tensor.dims)
    for sparse in graph.sparse_initializer:
        weights[sparse.values.name] = make_tensor_type_proto(sparse.values.data_type, sparse.dims)
    for node in graph.node:
        tensor = _large_constant(node)
        if tensor is None or node.output[0] in by_value:
            light.graph.node.append(node)
        else:
            weights[node.output[0]] = make_tensor_type_proto(tensor.data_type, tensor.dims)
    named = {tensor.name for tensor in light.graph.initializer} | weights.keys()
    light.graph.input.extend(value for value in graph.input if value.name not in named)
    light.graph.input.extend(ValueInfoProto(name=name, type=kind) for name, kind in weights.items())
    return light, weights


def _large_constant(node: NodeProto) -> TensorProto | None:
    """The tensor of a Constant that is a weight."""
    if node.op_type == "Constant" and len(node.attribute) == 1 and len(node.output) == 1:
        attribute = node.attribute[0]
        if attribute.name == "value" and not is_constant(attribute.t):
            return attribute.t
    return None


def _without_functions(model: ModelProto) -> ModelProto:
    """Functions written out, but for our own layers: those are what the text says."""
    prelude = {function.name: function.SerializeToString(deterministic=True) for function in prelude_functions()}
    layers = [
        (function.domain, function.name)
        for function in model.functions
        if function.name in (*LAYER_FUNCTIONS, "Weight")
        and prelude.get(function.name) == function.SerializeToString(deterministic=True)
    ]
    if layers:
        model = onnx.inliner.inline_selected_functions(model, layers, exclude=True)
    elif model.functions:
        model = onnx.inliner.inline_local_functions(model, convert_version=True)
    for node in model.graph.node:
        if node.domain in OWN_DOMAINS and (node.domain, node.op_type) not in layers:
            raise OnnxModelError(f"expected functions of domain {node.domain} to be ours, got {node.op_type}.")
    return model


def _refuse_branches(model: ModelProto) -> None:
    for node in model.graph.node:
        if any(attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for attribute in node.attribute):
            raise OnnxModelError(
                f"expected a network without loops and branches, got {node.op_type} {node.name or node.output[0]!r}. "
                "Export it for fixed sizes, or unroll it."
            )


def _fix_sizes(inputs: Sequence[ValueInfoProto], input_shape: Shape | None) -> dict[str, int]:
    """Give every input a fixed shape, in place; the sizes that their names stand for."""
    sizes: dict[str, int] = {}
    if input_shape is not None:
        if not inputs:
            raise OnnxModelError(f"expected an input for shape {input_shape}, got a model without inputs.")
        _take_shape(inputs[0], input_shape, sizes)
    for value in inputs:
        if not value.type.tensor_type.HasField("shape"):
            raise OnnxModelError(f"input {value.name!r}: expected a tensor of known rank, got another type.")
        for axis, size in enumerate(value.type.tensor_type.shape.dim):
            if size.dim_value > 0:
                continue
            if axis > 0 and size.dim_param not in sizes:
                shape = ",".join(str(d.dim_value) if d.dim_value > 0 else d.dim_param or "?" for d in _axes(value))
                raise OnnxModelError(
                    f"input {value.name!r}: expected fixed sizes, got {shape}. Say the first input's shape "
                    "(--input-shape, input_shape)."
                )
            size.dim_value = sizes.setdefault(size.dim_param, 1) if size.dim_param else 1
    return sizes


def _take_shape(value: ValueInfoProto, input_shape: Shape, sizes: dict[str, int]) -> None:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        for _ in input_shape:
            tensor.shape.dim.add()
    fits = [size.dim_value in (given, 0, -1) for size, given in zip(_axes(value), input_shape, strict=False)]
    if len(input_shape) != len(_axes(value)) or not all(fits):
        shape = ",".join(str(d.dim_value) if d.dim_value > 0 else d.dim_param or "?" for d in _axes(value))
        raise OnnxModelError(f"input {value.name!r}: expected a shape like {shape}, got {input_shape}.")
    for size, given in zip(_axes(value), input_shape, strict=True):
        if size.dim_param:
            sizes[size.dim_param] = given
        size.dim_value = given


def _axes(value: ValueInfoProto) -> Sequence[onnx.TensorShapeProto.Dimension]:
    return value.type.tensor_type.shape.dim


def _declared_types(model: ModelProto, sizes: Mapping[str, int]) -> Iterator[tuple[str, TypeProto]]:
    """Types that the model itself gives to what other domains' operators make, with the sizes that are known now."""
    made = {x for node in model.graph.node if node.domain not in STANDARD_DOMAINS for x in node.output}
    for value in (*model.graph.value_info, *model.graph.output):
        if value.name in made:
            for size in _axes(value):
                if size.dim_param in sizes:
                    size.dim_value = sizes[size.dim_param]
            yield value.name, value.type


def _other_domains(model: ModelProto) -> dict[str, int]:
    called = {node.domain for node in model.graph.node}.difference(STANDARD_DOMAINS, OWN_DOMAINS)
    return {entry.domain: entry.version for entry in model.opset_import if entry.domain in called}


def _load_if_there(tensor: TensorProto, folder: Path) -> None:
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    if (folder / location).is_file():
        load_external_data_for_tensor(tensor, str(folder))
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


@contextmanager
def _one_line_errors(expected: str, advice: str = "") -> Iterator[None]:
    """Whatever kind of error onnx raises, as one line."""
    try:
        yield
    except OnnxModelError:
        raise
    except Exception as e:  # protobuf, checker, converter and inference raise many kinds
        got = (" ".join(str(e).split())[:300] or type(e).__name__).rstrip(".")
        raise OnnxModelError(f"{expected}, got: {got}. {advice}".rstrip()) from e
