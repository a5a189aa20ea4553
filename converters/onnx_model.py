"""Any ONNX model to a graph: weights by shape, constants that shape the computation folded.

Models of opset 11 and later are brought to the pinned opset. Operators that the passes do not know are kept as
they are. Weight values are never looked at: of external data not a byte is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
import onnx.reference
import onnx.shape_inference
import onnx.version_converter
from numpy.typing import NDArray
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, numpy_helper

from converters.graph import Attributes, AttributeValue, Graph, Node, Shape
from converters.text import OPSET

MAX_FOLDED_NUMBERS = 4096  # a constant larger than this is not computed ahead


class OnnxModelError(ValueError):
    """A file or model that cannot be read as a network."""


def read_model(path: Path | str) -> ModelProto:
    """Load an ONNX file without its external data.

    Raises:
        OnnxModelError: no such file, or not an ONNX model; one line naming the file.
    """
    path = Path(path)
    if not path.is_file():
        raise OnnxModelError(f"{path}: expected an ONNX model, got no such file.")
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as e:  # protobuf raises its own kinds
        raise OnnxModelError(f"{path}: expected an ONNX model, got {_one_line(e)}. Is it truncated?") from e
    if not model.graph.node:
        raise OnnxModelError(f"{path}: expected a model with nodes, got none. Is it an ONNX file?")
    return model


def model_to_graph(model: ModelProto) -> Graph:
    """The faithful graph of a model; unknown batch sizes and other free dimensions are 1.

    Raises:
        OnnxModelError: the model is invalid, or cannot be brought to the pinned opset.
    """
    model = _prepared(model)
    return _Reader(model).graph()


def _prepared(model: ModelProto) -> ModelProto:
    try:
        model = onnx.inliner.inline_local_functions(model)
        if any(entry.domain in ("", "ai.onnx") and entry.version != OPSET for entry in model.opset_import):
            model = onnx.version_converter.convert_version(model, OPSET)
        weights = {tensor.name for tensor in model.graph.initializer}
        for value in model.graph.input:
            if value.name not in weights:
                for dimension in value.type.tensor_type.shape.dim:
                    if not dimension.HasField("dim_value"):
                        dimension.dim_value = 1
        del model.graph.value_info[:]
        for value in model.graph.output:
            value.type.tensor_type.ClearField("shape")
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as e:  # checker, converter and inference raise many kinds
        raise OnnxModelError(f"model: expected valid ONNX that converts to opset {OPSET}, got {_one_line(e)}.") from e


class _Reader:
    """One pass over the nodes: what is constant is computed, the rest becomes nodes."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self.shapes = dict(_inferred_shapes(model))
        self.weights = {tensor.name: tensor for tensor in model.graph.initializer}
        self.constants: dict[str, NDArray[np.generic]] = {}
        self.nodes: list[Node] = []
        for tensor in model.graph.initializer:
            if _is_constant(tensor):
                self.constants[tensor.name] = numpy_helper.to_array(tensor)

    def graph(self) -> Graph:
        for node in self.model.graph.node:
            self._read(node)
        inputs = tuple(value.name for value in self.model.graph.input if value.name not in self.weights)
        outputs = tuple(value.name for value in self.model.graph.output)
        for x in outputs:
            if x in self.constants:
                self._spell_constant(x)
        return Graph(inputs, outputs, tuple(self.nodes), self.shapes)

    def _read(self, node: NodeProto) -> None:
        if node.op_type == "Identity" and node.input[0] in self.weights:  # torch names equal weights so
            self.weights[node.output[0]] = self.weights[node.input[0]]
            return
        if folded := self._fold(node):
            self.constants.update(folded)
        else:
            self.nodes += self._layer(node) or self._plain(node)

    def _fold(self, node: NodeProto) -> Mapping[str, NDArray[np.generic]] | None:
        """The outputs of a node whose inputs are all known and small."""
        if node.op_type == "Shape" and node.input[0] in self.shapes:
            start, end = _attribute(node, "start", 0), _attribute(node, "end", None)
            return {node.output[0]: np.array(self.shapes[node.input[0]][start:end], dtype=np.int64)}
        known = all(x in self.constants for x in node.input if x)
        if not known or any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute):
            return None
        if node.op_type.startswith("Random") or node.domain not in ("", "ai.onnx"):
            return None
        try:
            arrays = onnx.reference.ReferenceEvaluator(node).run(None, {x: self.constants[x] for x in node.input if x})
        except Exception:  # an operator that the reference evaluator lacks stays a node
            return None
        if any(np.size(array) > MAX_FOLDED_NUMBERS for array in arrays):
            return None
        return dict(zip(node.output, arrays, strict=True))

    def _layer(self, node: NodeProto) -> list[Node]:
        """A node with weights as one call into the ``nn`` functions, where there is such a function."""
        own = [x for x in node.input[1:] if x]
        if node.domain not in ("", "ai.onnx") or not own or not all(x in self.weights for x in own):
            return []
        attributes = dict(_attributes(node))
        shape = tuple(self.weights[own[0]].dims)
        match node.op_type, len(own):
            case "Conv", (1 | 2) as count:
                attributes["weight_shape"] = shape
                return [self._call(node, "nn.Conv" if count == 1 else "nn.ConvBias", attributes, own)]
            case "BatchNormalization", 4 if not attributes.get("training_mode"):
                return [self._call(node, "nn.BatchNormalization", {"weight_shape": shape}, own)]
            case "Gemm", (1 | 2) as count if _is_linear(attributes):
                rows = shape if attributes.get("transB") else shape[::-1]
                return [self._call(node, "nn.Linear" if count == 1 else "nn.LinearBias", {"weight_shape": rows}, own)]
            case "MatMul", 1 if len(shape) == 2:
                return [self._call(node, "nn.Linear", {"weight_shape": shape[::-1]}, own)]
        return []

    def _call(
        self, node: NodeProto, op_type: str, attributes: Mapping[str, AttributeValue], own: Sequence[str]
    ) -> Node:
        return Node(op_type, (node.input[0],), (node.output[0],), tuple(sorted(attributes.items())), self._tensors(own))

    def _tensors(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.weights[x].name for x in names)

    def _plain(self, node: NodeProto) -> list[Node]:
        """A node as it is; the constants and weights it reads become nodes of its own before it."""
        before: list[Node] = []
        inputs: list[str] = []
        for index, x in enumerate(node.input):
            if x in self.constants:
                name = f"{node.output[0]}.{index}"
                before.append(_constant_node(name, self.constants[x]))
                self.shapes[name] = self.constants[x].shape
                inputs.append(name)
            elif x in self.weights:
                name = f"{node.output[0]}.{index}"
                before.append(_weight_node(name, self.weights[x]))
                self.shapes[name] = tuple(self.weights[x].dims)
                inputs.append(name)
            else:
                inputs.append(x)
        domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}."
        return [*before, Node(domain + node.op_type, tuple(inputs), tuple(node.output), _attributes(node))]

    def _spell_constant(self, x: str) -> None:
        self.nodes.append(_constant_node(x, self.constants[x]))


def _constant_node(name: str, value: NDArray[np.generic]) -> Node:
    """``Constant`` for scalars and lists, ``nn.Weight`` of that shape for larger arrays of floats."""
    kind = "float" if np.issubdtype(value.dtype, np.floating) else "int"
    convert = float if kind == "float" else int
    if value.ndim == 0:
        return Node("Constant", (), (name,), ((f"value_{kind}", convert(value.item())),))
    if value.ndim == 1:
        return Node("Constant", (), (name,), ((f"value_{kind}s", tuple(convert(v) for v in value.tolist())),))
    return Node("nn.Weight", (), (name,), (("weight_shape", tuple(value.shape)),), (name,))


def _weight_node(name: str, tensor: TensorProto) -> Node:
    return Node("nn.Weight", (), (name,), (("weight_shape", tuple(tensor.dims)),), (tensor.name,))


def _is_constant(tensor: TensorProto) -> bool:
    """Integers, flags and single numbers shape the computation; other floats are weights."""
    if tensor.data_location == TensorProto.EXTERNAL:
        return False
    size = int(np.prod(tensor.dims))
    floating = tensor.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)
    return size <= (1 if floating else MAX_FOLDED_NUMBERS)


def _is_linear(attributes: Mapping[str, AttributeValue]) -> bool:
    scales = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
    return scales == (1.0, 1.0) and not attributes.get("transA")


def _inferred_shapes(model: ModelProto) -> Iterator[tuple[str, Shape]]:
    graph = model.graph
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.tensor_type.HasField("shape"):
            dimensions = value.type.tensor_type.shape.dim
            if all(dimension.HasField("dim_value") for dimension in dimensions):
                yield value.name, tuple(dimension.dim_value for dimension in dimensions)


def _attributes(node: NodeProto) -> Attributes:
    return tuple(sorted((a.name, _attribute_value(node, a)) for a in node.attribute))


def _attribute_value(node: NodeProto, attribute: AttributeProto) -> AttributeValue:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, int | float):
        return value
    if isinstance(value, list | tuple) and all(isinstance(v, int | float) for v in value):
        return tuple(value)
    if isinstance(value, list) and all(isinstance(v, bytes) for v in value):
        return tuple(v.decode() for v in value)
    kind = AttributeProto.AttributeType.Name(attribute.type).lower()
    raise OnnxModelError(
        f"node {node.name or node.output[0]}: expected numbers and strings as attributes, "
        f"got a {kind} in {node.op_type}.{attribute.name}. Loops and branches are not supported yet."
    )


def _attribute(node: NodeProto, name: str, default: int | None) -> int | None:
    for attribute in node.attribute:
        if attribute.name == name:
            return int(attribute.i)
    return default


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
